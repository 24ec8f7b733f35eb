"""The work of one task: look up keys, merge, write files, report."""

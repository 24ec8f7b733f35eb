"""Record keys and partition paths of rows."""

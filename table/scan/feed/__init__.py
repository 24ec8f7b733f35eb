"""CHANGES: inserts, updates and deletes of a range of commits, with old values, computed from file slices."""

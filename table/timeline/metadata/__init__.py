"""The contents of instant files: one module for each record."""

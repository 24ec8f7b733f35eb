"""What is in a table, and what a writer would do with it."""

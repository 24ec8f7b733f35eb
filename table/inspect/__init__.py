"""What a table is like, and what a writer would say about it."""

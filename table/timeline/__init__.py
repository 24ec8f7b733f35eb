"""What happened to a table."""

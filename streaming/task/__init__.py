"""What one task does with its rows."""

"""Arrow columns: casting, text, equality."""

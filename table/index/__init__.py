"""Where a key lives."""

"""Which of a key's records wins."""

"""One stream into many tables."""

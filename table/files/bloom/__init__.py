"""Bloom filters and the hashes of keys."""

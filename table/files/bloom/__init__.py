"""Bloom filters, and the hashes of record keys."""

"""Erasure: where deleted rows still lie, until no file holds them."""

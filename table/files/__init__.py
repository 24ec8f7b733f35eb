"""Bytes on storage."""

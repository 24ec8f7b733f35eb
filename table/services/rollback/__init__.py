"""Rollback."""

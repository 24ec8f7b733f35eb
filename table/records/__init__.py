"""Decides which of several records of one key stays."""

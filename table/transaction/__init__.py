"""One commit among others."""

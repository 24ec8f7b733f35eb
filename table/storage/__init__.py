"""Storage: the interface, and the places that tables live in."""

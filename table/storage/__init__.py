"""Storage: the interface, and its implementations for local and remote stores."""

"""Options: strings and typed groups, and the meaning of each key."""

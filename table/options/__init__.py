"""Options: strings and typed groups, and what each key means."""

"""The transaction of one commit: lease, locks, conflicts, completion."""

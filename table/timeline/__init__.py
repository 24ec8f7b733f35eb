"""The timeline of a table: its instants, their files, and the archive."""

"""A report about a table: one HTML file that needs no network."""

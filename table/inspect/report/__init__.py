"""A report to look at: one HTML file about a table, without a network."""

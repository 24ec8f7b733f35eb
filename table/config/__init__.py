"""`hoodie.properties`: the properties of a table."""

"""`hoodie.properties`: what a table says about itself."""

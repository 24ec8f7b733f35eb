"""What instants hold: one module for each record."""

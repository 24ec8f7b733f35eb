"""What is where."""

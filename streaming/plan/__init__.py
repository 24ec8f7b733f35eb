"""What the tasks of a batch get: values and decisions."""

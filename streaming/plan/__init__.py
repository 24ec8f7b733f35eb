"""The plan that the tasks of a batch get, and the decisions behind it."""

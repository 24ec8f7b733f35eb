"""One micro-batch after another, on the driver."""

"""Base files as Hudi wants them."""

"""Check: a whole table is examined. What does not fit together is reported, and repaired where that is safe."""

"""Check: a whole table is looked at, and what does not fit together is told, and mended where that is safe."""

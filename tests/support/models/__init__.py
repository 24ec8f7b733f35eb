"""Models of protocols: every interleaving of a few actors, with each rule taken out in turn."""

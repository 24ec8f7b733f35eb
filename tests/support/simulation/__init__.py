"""One process, one seed, one world: actors that run one at a time, in an order that the seed decides."""

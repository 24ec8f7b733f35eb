"""Schemes of addresses that name one store (pure)."""

PROTOCOLS = {"s3a": "s3", "s3n": "s3", "wasb": "abfs", "wasbs": "abfs", "abfss": "abfs"}
"""Scheme -> fsspec's name of its store, where that is another word."""


def spellings_of(address: str) -> tuple[str, ...]:
    """An address, then the same place with each other scheme of its store.

    Args:
        address: ``s3a://bucket/t``; a path of a disk has no other spelling here.
    """
    scheme, found, place = address.partition("://")
    protocol = PROTOCOLS.get(scheme, scheme)
    schemes = (protocol, *(other for other, name in PROTOCOLS.items() if name == protocol)) if found else ()
    return address, *(f"{other}://{place}" for other in schemes if other != scheme)

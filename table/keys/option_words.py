"""How errors name an option that has a short name: by both, as people give either (pure)."""

SHORT_NAMES = {
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.partitionpath.field": "partition_by",
    "hoodie.datasource.write.precombine.field": "order_by",
    "hoodie.datasource.write.table.type": "table_type",
}


def in_words(option: str, value: str) -> str:
    """An option with its value, such as ``key='id' (hoodie.datasource.write.recordkey.field=id)``.

    Args:
        option: its key.
        value: as an option has it.
    """
    short = SHORT_NAMES.get(option)
    return f"{option}={value}" if short is None else f"{short}={value!r} ({option}={value})"

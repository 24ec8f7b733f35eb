"""The key generators that this project supports (pure; KeyGeneratorType)."""

from table.config.choice import Choice


class KeyGenerator(Choice):
    """``hoodie.datasource.write.keygenerator.type``: how columns make record key and partition path."""

    SIMPLE = "SIMPLE"
    NON_PARTITION = "NON_PARTITION"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"

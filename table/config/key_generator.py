"""The key generators whose keys can be made here (pure; KeyGeneratorType)."""

from table.config.choice import Choice


class KeyGenerator(Choice):
    """``hoodie.datasource.write.keygenerator.type``: how record key and partition path are made of columns."""

    SIMPLE = "SIMPLE"
    NON_PARTITION = "NON_PARTITION"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"

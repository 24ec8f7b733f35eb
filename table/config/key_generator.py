"""The key generators that this project supports, and how they spell keys (pure; KeyGeneratorType)."""

from collections.abc import Mapping

from table.config.choice import Choice


class KeyGenerator(Choice):
    """``hoodie.datasource.write.keygenerator.type``: how columns make record key and partition path."""

    SIMPLE = "SIMPLE"
    NON_PARTITION = "NON_PARTITION"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"


class KeyEncoding(Choice):
    """How the complex key generator spells a record key of one field (ComplexKeyGenEncoding).

    Hudi up to 0.14.0, and from 1.1 on in tables of version 9, puts the field's name before the value. The releases
    between, and Hudi 1.0.2, store the value alone.
    """

    FIELD_PREFIXED = "FIELD_PREFIXED"
    VALUE_ONLY = "VALUE_ONLY"


ENCODING_KEY = "hudistream.complex.key.encoding"
# A later Hudi keeps it under this name, and its writers obey it.
_ENCODING_OF_HUDI = "hoodie.table.complex.keygen.encoding"
_PREFIXED_SINCE = 9  # table version


def encoding_in(properties: Mapping[str, str]) -> KeyEncoding | None:
    """The spelling that the properties of a table state; None where they state none that is known."""
    named = properties.get(_ENCODING_OF_HUDI) or properties.get(ENCODING_KEY) or ""
    return next((each for each in KeyEncoding if each == named.strip().upper()), None)


def encoding_of_version(version: int) -> KeyEncoding:
    """The spelling of a table without rows.

    It is that of Hudi 1.1 and later in version 9, where they know no other, and of Hudi 1.0.2 in earlier versions.

    Args:
        version: the table's.
    """
    return KeyEncoding.FIELD_PREFIXED if version >= _PREFIXED_SINCE else KeyEncoding.VALUE_ONLY

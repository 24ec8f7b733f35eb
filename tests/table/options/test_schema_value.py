"""An option whose value is an Avro schema."""

import pytest

from table.errors import InvalidConfigError
from table.options.schema_value import AvroSchema

TEXT = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}'


def test_a_record_is_taken_as_its_text():
    assert AvroSchema().read("key", f" {TEXT}\n") == TEXT
    assert AvroSchema().read("key", "  ") is None


@pytest.mark.parametrize("value", [3, None, "{", '"string"', "[]", '{"type": "record"}', '{"type": "nothing"}'])
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(InvalidConfigError, match=r"key=.*Avro"):
        AvroSchema().read("key", value)

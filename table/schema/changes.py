"""Describes the differences between two schemas in words (pure)."""

from collections.abc import Iterator

import pyarrow as pa


def describe_changes(before: pa.Schema | None, after: pa.Schema) -> tuple[str, ...]:
    """The changes of a table's columns, one sentence each; order and nullability of columns do not count.

    Args:
        before: columns of the table before the change (Arrow); None: there was no table, so nothing changed.
        after: columns of the table after the change (Arrow).
    """
    return tuple(_differences("", list(before), list(after))) if before is not None else ()


def _differences(prefix: str, before: list[pa.Field], after: list[pa.Field]) -> Iterator[str]:
    known, now = ({field.name: field for field in fields} for fields in (before, after))
    for name, field in now.items():
        path = prefix + name
        if name not in known:
            yield f"column {path} added ({field.type})"
            continue
        old, new = known[name].type, field.type
        if pa.types.is_struct(old) and pa.types.is_struct(new):
            yield from _differences(f"{path}.", list(old), list(new))
        elif not _is_same(old, new):
            yield f"column {path} was {old}, is {new}"
    yield from (f"column {prefix}{name} removed" for name in known.keys() - now.keys())


def _is_same(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether two types hold the same values. The name and the nullability of list elements do not count."""
    if pa.types.is_list(old) and pa.types.is_list(new):
        return not tuple(_differences("", [old.value_field.with_name("")], [new.value_field.with_name("")]))
    if pa.types.is_map(old) and pa.types.is_map(new):
        pairs = ((old.key_field, new.key_field), (old.item_field, new.item_field))
        return not any(tuple(_differences("", [a.with_name("")], [b.with_name("")])) for a, b in pairs)
    return bool(old == new)

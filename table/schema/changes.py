"""What one schema has that another has not, in words (pure)."""

from collections.abc import Iterator

import pyarrow as pa


def describe_changes(before: pa.Schema | None, after: pa.Schema) -> tuple[str, ...]:
    """How a table's columns changed, one sentence each; the order of columns and their nullability are no change.

    Args:
        before: columns of the table (Arrow); None: there was none, and nothing changed.
        after: columns as they are now.
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
    """Whether values are the same: how an element of a list is called, or whether it may be null, does not matter."""
    if pa.types.is_list(old) and pa.types.is_list(new):
        return not tuple(_differences("", [old.value_field.with_name("")], [new.value_field.with_name("")]))
    if pa.types.is_map(old) and pa.types.is_map(new):
        pairs = ((old.key_field, new.key_field), (old.item_field, new.item_field))
        return not any(tuple(_differences("", [a.with_name("")], [b.with_name("")])) for a, b in pairs)
    return bool(old == new)

"""Java ``Properties`` text: the format of ``hoodie.properties`` and option files (pure)."""

import re
from collections.abc import Mapping
from datetime import datetime, timezone

from table.errors import CorruptFileError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(data: bytes) -> dict[str, str]:
    """Reads Java ``Properties`` text (ISO-8859-1, backslash escapes, ``=`` or ``:`` or a blank).

    Raises:
        CorruptFileError: when an escape is cut short.
    """
    properties: dict[str, str] = {}
    logical = ""
    for raw in re.split(r"\r\n|\n|\r", data.decode("latin-1")):
        line = raw.lstrip(" \t\f")
        if not logical and line[:1] in ("", "#", "!"):
            continue
        logical += line
        trailing = len(logical) - len(logical.rstrip("\\"))
        if trailing % 2:
            logical = logical[:-1]
            continue
        key, value = _split_property(logical)
        properties[key] = value
        logical = ""
    return properties


def _split_property(line: str) -> tuple[str, str]:
    end, separator = len(line), len(line)
    escaped = False
    for index, char in enumerate(line):
        if not escaped and char in "=: \t\f":
            end = index
            rest = line[index:].lstrip(" \t\f")
            separator = len(line) - len(rest)
            if rest[:1] in ("=", ":"):
                separator += 1 + len(rest[1:]) - len(rest[1:].lstrip(" \t\f"))
            break
        escaped = char == "\\" and not escaped
    return _unescape(line[:end]), _unescape(line[separator:])


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, index = [], 0
    while index < len(text):
        char = text[index]
        if char != "\\" or index + 1 == len(text):
            out.append(char)
            index += 1
            continue
        escape = text[index + 1]
        if escape == "u":
            digits = text[index + 2 : index + 6]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise CorruptFileError(f"hoodie.properties holds a broken escape: {text!r}")
            out.append(chr(int(digits, 16)))
            index += 6
        else:
            out.append(_ESCAPES.get(escape, escape))
            index += 2
    # characters outside the BMP are stored as two escaped surrogates
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def format_properties(properties: Mapping[str, str], saved_ms: int, verb: str = "Properties saved on") -> bytes:
    """Java ``Properties`` text, keys in order, with the two comment lines that Hudi writes."""
    moment = datetime.fromtimestamp(saved_ms / 1000, tz=timezone.utc)
    lines = [f"#{verb} {moment.isoformat().replace('+00:00', 'Z')}", moment.strftime("#%a %b %d %H:%M:%S UTC %Y")]
    lines += [f"{_escape(key, key=True)}={_escape(value)}" for key, value in sorted(properties.items())]
    return ("\n".join(lines) + "\n").encode("ascii")


def _escape(text: str, *, key: bool = False) -> str:
    out = []
    for index, char in enumerate(text):
        if char == " " and (key or index == 0):
            out.append("\\ ")
        elif char in "\\=:#!":
            out.append("\\" + char)
        elif char in "\t\n\r\f":
            out.append("\\" + {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}[char])
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(out)

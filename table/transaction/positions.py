"""The positions of a stream in its sources: read from Spark's checkpoint, recorded in commits, compared (pure).

A position is the end of one source after a batch, as Spark writes it: JSON text, for Kafka
``{"topic":{"0":120,"1":98}}``. The offsets are exclusive: they are the offsets of the next batch's first rows.
"""

import json
from collections.abc import Mapping

from table.errors import BatchOrderError

STREAMER_KEY = "deltastreamer.checkpoint.key"  # HoodieStreamer, up to table version 6 (StreamerCheckpointV1)
STREAMER_KEY_8 = "streamer.checkpoint.key.v2"  # from version 8 on (StreamerCheckpointV2)
_VERSION_LINE = "v1"  # of Spark's offset logs
_SHARES_KEY = 8  # least table version for which the newer key is written

Positions = tuple[str | None, ...]  # one for each source of the query; None: the source has sent nothing yet
Offsets = Mapping[str, Mapping[int, int]]  # topic -> partition -> offset
Bounds = Mapping[str, Mapping[int, tuple[int, int]]]  # topic -> partition -> first offset, end


def decode_offset_log(text: str) -> Positions:
    """The positions in a file ``offsets/N`` of a checkpoint: the end of each source after batch N.

    Args:
        text: a line ``v1``, a line about the batch, and a line for each source; ``-``: the source has sent nothing.

    Raises:
        ValueError: the file is not one of Spark's offset logs.
    """
    version, *lines = text.strip().split("\n")
    if version.strip() != _VERSION_LINE or len(lines) < 2:
        raise ValueError(f"not an offset log of Spark: it begins with {text[:40]!r}")
    return tuple(None if line.strip() == "-" else canonical(line) for line in lines[1:])


def decode_initial_offsets(content: bytes) -> str:
    """The position in a file ``sources/N/0`` of a checkpoint: the start of a Kafka source's first batch.

    Args:
        content: a zero byte, which older versions of Spark need, a line ``v1``, and the position.

    Raises:
        ValueError: the file is not one of Spark's.
    """
    version, _, position = content.lstrip(b"\0").decode().partition("\n")
    if version.strip() != _VERSION_LINE or not position.strip():
        raise ValueError(f"not an initial offset of Spark: it begins with {content[:40]!r}")
    return canonical(position)


def canonical(position: str) -> str:
    """One spelling for equal positions.

    Raises:
        ValueError: it is not JSON.
    """
    return json.dumps(json.loads(position), sort_keys=True, separators=(",", ":"))


def kafka_offsets(position: str | None) -> Offsets | None:
    """Topic -> partition -> offset; None: the position is not one of a Kafka source."""
    document = None if position is None else json.loads(position)
    if not isinstance(document, dict) or not document:
        return None
    found: dict[str, dict[int, int]] = {}
    for topic, partitions in document.items():
        if not isinstance(partitions, dict) or not partitions:
            return None
        if not all(number.isdigit() and type(offset) is int for number, offset in partitions.items()):
            return None
        found[topic] = {int(number): offset for number, offset in partitions.items()}
    return found


def position_of(offsets: Offsets) -> str:
    """The position of a Kafka source that stands at these offsets."""
    return canonical(json.dumps({topic: {str(n): at for n, at in found.items()} for topic, found in offsets.items()}))


def find_break(end: Positions, start: Positions, named: str = "this query begins at") -> str | None:
    """Why a batch does not continue at the end of an earlier one, in words; None if it does.

    Args:
        end: positions of the sources after the earlier batch.
        start: positions of the sources before the later batch.
        named: what the start is called where the offsets of a source are not known to be Kafka's.
    """
    if len(end) != len(start):
        return f"the earlier query read {len(end)} sources, and this one reads {len(start)}"
    for number, (before, now) in enumerate(zip(end, start, strict=True)):
        if before == now:
            continue
        offsets, begin = kafka_offsets(before), kafka_offsets(now)
        if offsets is None or begin is None:
            return f"source {number} ended at {before}, and {named} {now}{_between(before, now)}"
        parts = _find_breaks(offsets, begin)
        if parts:
            return "; ".join(parts)
    return None


def _between(before: str | None, now: str | None) -> str:
    """What a skipped part means, where positions are plain numbers, as those of Spark's rate source."""
    first, last = (None if position is None else json.loads(position) for position in (before, now))
    if type(first) is not int or type(last) is not int:
        return ""
    what = "be lost" if last > first else "be written a second time"
    return f": what comes after {min(first, last)}, up to {max(first, last)}, would {what}"


def _find_breaks(offsets: Offsets, begin: Offsets) -> list[str]:
    breaks = []
    for topic, partition in sorted({(t, p) for found in (offsets, begin) for t in found for p in found[t]}):
        committed, first = offsets.get(topic, {}).get(partition, 0), begin.get(topic, {}).get(partition)
        where = f"{topic}-{partition}"
        if first is None:
            breaks.append(f"{where} is not read by this query, and the table has its rows up to offset {committed - 1}")
        elif first > committed:
            breaks.append(f"{where}: offsets {committed} to {first - 1} would be lost")
        elif first < committed:
            breaks.append(f"{where}: offsets {first} to {committed - 1} would be written a second time")
    return breaks


def continue_within(position: str, bounds: Bounds) -> str:
    """The position from which a Kafka source continues, with the present partitions of its topics.

    Args:
        position: position at the end of the table's last batch.
        bounds: the offsets that the broker holds of each topic of the position.

    Raises:
        BatchOrderError: the broker no longer holds some rows; the message names their offsets.
    """
    committed = kafka_offsets(position)
    if committed is None:
        raise BatchOrderError(f"the table's last batch ended at {position}, which is no position of a Kafka source")
    missing, found = [], {}
    for topic, offsets in committed.items():
        there = bounds.get(topic, {})
        if not there:
            missing.append(f"the topic {topic} is gone")
        found[topic] = {number: offsets.get(number, 0) for number in sorted(there)}
        for number, offset in found[topic].items():
            first, end = there[number]
            if offset < first:
                missing.append(
                    f"{topic}-{number}: offsets {offset} to {first - 1} are lost, the broker has deleted them"
                )
            elif offset > end:
                missing.append(
                    f"{topic}-{number}: the table has its rows up to offset {offset - 1}, and the topic ends at {end}: "
                    "the topic was made anew"
                )
        missing += [f"{topic}-{number} is gone" for number in sorted(set(offsets) - set(there)) if there]
    if missing:
        raise BatchOrderError(
            f"the stream cannot go on where the table ends: {'; '.join(missing)}. Get the rows from elsewhere with "
            "HudiSink.write, or accept the loss; then start the stream with startingOffsets of your own and another "
            "hoodie.datasource.write.streaming.checkpoint.identifier"
        )
    return position_of(found)


def encode_streamer(positions: Positions, version: int) -> dict[str, str]:
    """The position from which Hudi's own HoodieStreamer continues, as extra metadata: ``topic,0:120,1:98``.

    Args:
        positions: positions of the stream; only a single Kafka source of one topic has such an entry.
        version: version of the table.
    """
    offsets = kafka_offsets(positions[0]) if len(positions) == 1 else None
    if offsets is None or len(offsets) != 1:
        return {}
    ((topic, found),) = offsets.items()
    key = STREAMER_KEY_8 if version >= _SHARES_KEY else STREAMER_KEY
    return {key: ",".join([topic, *(f"{number}:{found[number]}" for number in sorted(found))])}


def decode_streamer(extra: Mapping[str, str]) -> Positions:
    """The positions of HoodieStreamer after a commit; empty if the commit has none, or the source was not Kafka."""
    topic, *parts = (extra.get(STREAMER_KEY_8) or extra.get(STREAMER_KEY) or "").split(",")
    pairs = [part.split(":") for part in parts]
    if not topic or not pairs or not all(len(pair) == 2 and "".join(pair).isdigit() for pair in pairs):
        return ()
    return (position_of({topic: {int(number): int(offset) for number, offset in pairs}}),)

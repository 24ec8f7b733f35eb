"""Where a Kafka stream goes on if its checkpoint is lost: at the offsets that the table's last batch recorded."""

from collections.abc import Mapping
from typing import Any

from table.errors import InvalidConfigError, TableNotFoundError
from table.extras import needs_extra
from table.hudi_table import HudiTable
from table.options.write_groups import DEFAULT_SINK_ID
from table.snapshot import Snapshot
from table.transaction.last_batch import find_last_batch, find_last_batches, find_streamer_positions
from table.transaction.positions import Bounds, Positions, continue_within, kafka_offsets

_PREFIX = "kafka."
_PATIENCE_S = 30.0


def starting_offsets(
    path: str,
    *,
    sink: str = DEFAULT_SINK_ID,
    otherwise: str | None = None,
    broker: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """The value of Spark's option ``startingOffsets`` with which a new query goes on where the table ends.

    Spark uses the option only if the query's checkpoint is empty, so it can be given always. A table that Hudi's
    HoodieStreamer has written is continued, too.

    Args:
        path: the table.
        sink: the sink's name (``hoodie.datasource.write.streaming.checkpoint.identifier``).
        otherwise: what to return where the table is absent or records no offsets, such as ``earliest``; None: an error.
        broker: options of Spark's Kafka source, ``kafka.bootstrap.servers`` and others that begin with ``kafka.``: the
            broker is asked which partitions and offsets there are. Needs the extra ``kafka``, which takes the names of
            librdkafka. None: the offsets are returned as they were recorded.
        storage_options: what fsspec's file system gets (keys, endpoint).

    Returns:
        JSON, such as ``{"orders":{"0":120,"1":98}}``. With `broker`, partitions that were added are part of it.

    Raises:
        InvalidConfigError: the table records no offsets, and `otherwise` is not given.
        TableNotFoundError: there is no table, and `otherwise` is not given.
        BatchOrderError: rows are missing in the broker and in the table; the message names their offsets.
    """
    try:
        snapshot = Snapshot.load(HudiTable.open(path, storage_options))
    except TableNotFoundError:
        if otherwise is None:
            raise
        return otherwise
    position = _find_position(snapshot, sink)
    if position is None:
        if otherwise is not None:
            return otherwise
        named = sorted(name for name, last in find_last_batches(snapshot).items() if last.positions)
        others = f"; these sinks tell theirs: {', '.join(map(repr, named))} (sink=)" if named else ""
        raise InvalidConfigError(
            f"no commit of the table at {path} tells at which offsets of one Kafka source the sink {sink!r} stood: it "
            f"wrote without hudistream.checkpoint.location, or reads several sources{others}. Start the stream with "
            "its own checkpoint; or give otherwise='earliest', where the operation is upsert and the topic has all its "
            "rows"
        )
    if broker is None:
        return position
    offsets = kafka_offsets(position)
    return continue_within(position, ask_broker(broker, tuple(offsets or ())))


def _find_position(snapshot: Snapshot, sink: str) -> str | None:
    last = find_last_batch(snapshot, sink)
    positions: Positions = last.positions if last is not None else find_streamer_positions(snapshot)
    found = [position for position in positions if kafka_offsets(position) is not None]
    return found[0] if len(found) == 1 and len(positions) == 1 else None


def ask_broker(options: Mapping[str, Any], topics: tuple[str, ...]) -> Bounds:
    """What a broker holds of topics: partition -> first offset, and the offset after the last one.

    Args:
        options: of Spark's Kafka source; those that begin with ``kafka.`` are used.
        topics: their names; a topic that does not exist is left out.

    Raises:
        InvalidConfigError: the extra ``kafka`` is not installed, or the broker does not answer.
    """
    try:
        from confluent_kafka import Consumer, KafkaException, TopicPartition  # noqa: PLC0415 an extra
    except ModuleNotFoundError as error:
        raise InvalidConfigError(f"{needs_extra('a broker', 'kafka')}, or leave broker out ({error})") from error
    named = {key.removeprefix(_PREFIX): value for key, value in options.items() if key.startswith(_PREFIX)}
    found: dict[str, dict[int, tuple[int, int]]] = {}
    try:
        consumer = Consumer({"log_level": 0, **named, "group.id": "hudistream", "enable.auto.commit": False})
    except KafkaException as error:
        raise InvalidConfigError(
            f"librdkafka refuses the options of the broker: {error}. It has names of its own: instead of "
            "kafka.sasl.jaas.config it takes kafka.sasl.username and kafka.sasl.password"
        ) from error
    try:
        for topic in topics:
            listed = consumer.list_topics(topic, timeout=_PATIENCE_S).topics[topic].partitions
            for number in listed:
                first, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_PATIENCE_S)
                found.setdefault(topic, {})[number] = (first, end)
    except KafkaException as error:
        raise InvalidConfigError(
            f"the broker at {named.get('bootstrap.servers')} does not answer: {error}; correct kafka.bootstrap.servers "
            "and what goes with it, or try again when it is back"
        ) from error
    finally:
        consumer.close()
    return found

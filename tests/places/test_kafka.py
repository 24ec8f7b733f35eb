"""Kafka for real: a broker, Spark's source, processes that are killed, and checkpoints that are lost."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka_broker import Broker

from hudistream import BatchOrderError, HudiTable, read_table, starting_offsets
from table.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.places]
EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka_cdc.py"
INSERTS = Path(__file__).with_name("kafka_inserts.py")
PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7"
KILLS = int(os.environ.get("KILLS", "20"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("kafka") / "k") as found:
        yield found


def administer(broker, action, what):
    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in getattr(admin, action)([what]).values():
        future.result(30)


def make_topic(broker, name, partitions=3):
    administer(broker, "create_topics", NewTopic(name, partitions, 1))


def send(broker, topic, pairs, partition=None):
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50})
    where = {} if partition is None else {"partition": partition}
    for key, value in pairs:
        producer.produce(topic, key=key, value=value, **where)
        producer.poll(0)
    assert producer.flush(60) == 0


def send_numbers(broker, topic, numbers, partition=None):
    send(broker, topic, ((None, f"n{number}") for number in numbers), partition)


def changes(count, keys, seed):
    """Debezium's events of one table, and the rows that stand at the end."""
    rng, live, events = random.Random(seed), {}, []
    for lsn in range(count):
        key = rng.randrange(keys)
        before = live.get(key)
        operation = "c" if before is None else rng.choice("uuud")
        after = None if operation == "d" else {"id": key, "customer": f"c{rng.randrange(99)}", "amount": float(lsn)}
        source = {"lsn": lsn, "db": "shop", "table": "orders"}
        # several changes have one time: the order is the position in the log
        event = {"before": before, "after": after, "op": operation, "ts_ms": 1_700_000_000_000 + lsn // 7}
        events.append((json.dumps({"id": key}), json.dumps({**event, "source": source})))
        if operation == "d":
            del live[key]
            events.append((json.dumps({"id": key}), None))  # the tombstone
        else:
            live[key] = after
    return events, live


def example(broker, topic, table, checkpoint, *more):
    command = [sys.executable, EXAMPLE, "--broker", broker.address, "--topic", topic, "--table", table]
    return [*map(str, command), "--checkpoint", checkpoint, "--rows-per-batch", "1500", *more]


def rows_of(table):
    found = read_table(table, columns=["id", "customer", "amount"]).to_pylist()
    assert len(found) == len({row["id"] for row in found})
    return {row["id"]: row for row in found}


def insert(broker, topic, table, checkpoint, start="table"):
    command = [sys.executable, INSERTS, broker.address, topic, table, checkpoint, start, PACKAGE]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def ids_of(table):
    return sorted(read_table(table).column("id").to_pylist())


def expected(*ranges):
    return sorted(f"n{number}" for numbers in ranges for number in numbers)


def test_changes_of_a_database_survive_processes_that_are_killed(broker, tmp_path, capsys):
    table, checkpoint, rng = str(tmp_path / "t"), str(tmp_path / "c"), random.Random()
    make_topic(broker, "shop.public.orders")
    events, live = changes(8000 * max(KILLS, 5), 4000, seed=5)  # more than is read between two kills
    send(broker, "shop.public.orders", events)
    command = example(broker, "shop.public.orders", table, checkpoint)
    for kill in range(KILLS):
        planned = len(os.listdir(f"{checkpoint}/offsets")) if os.path.isdir(f"{checkpoint}/offsets") else 0
        with open(tmp_path / f"killed-{kill}.log", "wb") as told:
            process = subprocess.Popen(command, stdout=told, stderr=told, start_new_session=True)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if os.path.isdir(f"{checkpoint}/offsets") and len(os.listdir(f"{checkpoint}/offsets")) > planned:
                break
            time.sleep(0.1)
        time.sleep(rng.random() * 3)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*command, "--once"], check=True, capture_output=True)
    assert rows_of(table) == live
    assert main(["checkpoint", table, "--format", "json"]) == 0
    (sink,) = json.loads(capsys.readouterr().out)["sinks"]
    (position,) = sink["positions"]
    assert sum(json.loads(position)["shop.public.orders"].values()) == len(events)
    assert HudiTable.open(table).check().is_sound
    # the checkpoint is lost, and more changes come
    shutil.rmtree(checkpoint)
    added = {"id": 10_000, "customer": "late", "amount": 0.5}
    late = json.dumps({"before": None, "after": added, "op": "c", "ts_ms": 1, "source": {"lsn": 1_000_000}})
    send(broker, "shop.public.orders", [('{"id": 10000}', late)])
    subprocess.run([*command, "--once"], check=True, capture_output=True)
    assert rows_of(table) == {**live, 10_000: added}


def test_a_lost_checkpoint_is_continued_from_the_table_and_each_row_is_there_once(broker, tmp_path):
    table, topic = str(tmp_path / "t"), "once"
    make_topic(broker, topic, 2)
    send_numbers(broker, topic, range(1000))
    assert insert(broker, topic, table, str(tmp_path / "c1")).returncode == 0
    assert ids_of(table) == expected(range(1000))
    send_numbers(broker, topic, range(1000, 1500))
    # from the beginning: refused, and the rows that would be doubled are named
    refused = insert(broker, topic, table, str(tmp_path / "c2"), "earliest")
    assert refused.returncode != 0
    assert "would be written a second time" in refused.stderr
    # only what is new: refused, and the rows that would be lost are named
    send_numbers(broker, topic, range(1500, 1501))
    ends = {str(n): end for n, (_, end) in _bounds(broker, topic).items()}
    skipping = json.dumps({topic: {**ends, "0": ends["0"] - 1}})
    send_numbers(broker, topic, range(1501, 1600))
    refused = insert(broker, topic, table, str(tmp_path / "c3"), skipping)
    assert refused.returncode != 0
    assert "would be lost" in refused.stderr
    assert ids_of(table) == expected(range(1000))
    # where the table ends, twice over, because the second checkpoint is lost, too
    for checkpoint in ("c4", "c5"):
        done = insert(broker, topic, table, str(tmp_path / checkpoint))
        assert done.returncode == 0, done.stderr[-3000:]
        assert ids_of(table) == expected(range(1600))
    send_numbers(broker, topic, range(1600, 1700))
    assert insert(broker, topic, table, str(tmp_path / "c5")).returncode == 0
    assert ids_of(table) == expected(range(1700))
    assert HudiTable.open(table).checkpoints().column("epoch").to_pylist() == [2]


def _bounds(broker, topic):
    from streaming.kafka import ask_broker

    return ask_broker({"kafka.bootstrap.servers": broker.address}, (topic,))[topic]


def test_partitions_that_were_added_are_read_and_rows_that_are_gone_are_named(broker, tmp_path):
    table, topic = str(tmp_path / "t"), "grows"
    kafka = {"kafka.bootstrap.servers": broker.address}
    make_topic(broker, topic, 1)
    send_numbers(broker, topic, range(300))
    assert insert(broker, topic, table, str(tmp_path / "c1")).returncode == 0
    administer(broker, "create_partitions", NewPartitions(topic, 2))
    time.sleep(2)
    send_numbers(broker, topic, range(300, 400), partition=1)
    done = insert(broker, topic, table, str(tmp_path / "c2"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert ids_of(table) == expected(range(400))
    # rows expire before they were read
    send_numbers(broker, topic, range(400, 500), partition=0)
    administer(broker, "delete_records", TopicPartition(topic, 0, 350))
    with pytest.raises(BatchOrderError, match=f"{topic}-0: offsets 300 to 349 are lost"):
        starting_offsets(table, broker=kafka)
    # the topic is made anew
    administer(broker, "delete_topics", topic)
    time.sleep(2)
    with pytest.raises(BatchOrderError, match=f"the topic {topic} is gone"):
        starting_offsets(table, broker=kafka)
    make_topic(broker, topic, 2)
    send_numbers(broker, topic, range(10), partition=0)
    with pytest.raises(BatchOrderError, match="the topic was made anew"):
        starting_offsets(table, broker=kafka)


def test_a_broker_that_goes_away_and_comes_back_costs_no_row(broker, tmp_path):
    table, checkpoint, topic = str(tmp_path / "t"), str(tmp_path / "c"), "away"
    make_topic(broker, topic)
    events, live = changes(20_000, 1000, seed=8)
    send(broker, topic, events)
    with open(tmp_path / "stream.log", "wb") as told:
        process = subprocess.Popen(
            example(broker, topic, table, checkpoint), stdout=told, stderr=told, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and b"batch 2:" not in (tmp_path / "stream.log").read_bytes():
            time.sleep(0.2)
        broker.stop()
        time.sleep(15)
        broker.start()
        time.sleep(20)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(
        example(broker, topic, table, checkpoint, "--once"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert rows_of(table) == live

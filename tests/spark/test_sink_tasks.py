"""Tests of the sink's tasks in a worker, without Spark: published columns, timeouts, and publications that stay
open.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.commands import driver_directory, running_driver
from tests.conftest import eventually

import aeron
from aeron._aeron import SharedPublications, SinkTask
from aeron.spark import AeronBackPressureError, AeronDriverTimeout, AeronNoSubscriberError, AeronRecordError

IPC = "aeron:ipc"
Tasks = Callable[..., SinkTask]


def client_settings(directory: str) -> Any:
    return {
        "aeron_dir": directory,
        "driver_timeout_ms": 2000,
        "client_name": "sink",
        "resource_linger_duration_ns": None,
        "idle_sleep_duration_ns": None,
        "pre_touch_mapped_memory": None,
    }


@pytest.fixture
def publications() -> Iterator[SharedPublications]:
    publications = SharedPublications(idle_ms=300)
    yield publications
    publications.close()


@pytest.fixture
def task(driver: aeron.MediaDriver, publications: SharedPublications, stream_id: int) -> Tasks:
    def make(stream: int | None = stream_id, *, shared: SharedPublications = publications, **settings: Any) -> SinkTask:
        settings = {"query": "0123abcd", "partition": 3, "client": client_settings(driver.dir), **settings}
        return shared.task(IPC, stream, **settings)

    return make


class Reader:
    """Collects messages on a separate thread."""

    def __init__(self, client: aeron.Aeron, stream_id: int, pause_s: float = 0.0, limit: int = 4096) -> None:
        self.messages: list[bytes] = []
        self.reserved_values: list[int] = []
        self.sessions: set[int] = set()
        self.subscription = client.add_subscription(IPC, stream_id)
        self._pause_s, self._limit = pause_s, limit
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ended.wait(self._pause_s):
            batch = self.subscription.poll_batch(self._limit)
            # The messages are added last, because a test waits for the messages and then reads the other lists at once.
            self.reserved_values += batch.reserved_values.tolist()
            self.sessions.update(batch.session_ids.tolist())
            self.messages += batch.to_list()

    def take(self, count: int) -> list[bytes]:
        eventually(lambda: len(self.messages) >= count)
        return self.messages

    def end(self) -> None:
        self._is_ended.set()
        self._thread.join()
        self.subscription.close()


@pytest.fixture
def reader(client: aeron.Aeron, stream_id: int) -> Iterator[Callable[..., Reader]]:
    readers: list[Reader] = []

    def start(stream: int = stream_id, **how: Any) -> Reader:
        readers.append(Reader(client, stream, **how))
        return readers[-1]

    yield start
    for each in readers:
        each.end()


def read(subscription: aeron.Subscription, count: int) -> list[bytes]:
    """Returns the next `count` messages."""
    messages: list[bytes] = []
    eventually(
        lambda: messages.extend(subscription.poll_batch(count - len(messages)).to_list()) or len(messages) >= count
    )
    return messages


def rows(values: Any, type_: pa.DataType | None = None, **columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, type_ or pa.binary()), **columns})


def test_each_value_of_any_length_and_type_becomes_one_message(task: Tasks, reader: Callable[..., Reader]) -> None:
    """08-66, 08-67"""
    subscriber = reader()
    one = task()
    longest = 8192  # in a log of 64 KiB, over several fragments
    values = [b"", b"a", os.urandom(1376), os.urandom(1377), os.urandom(longest), b"z" * 500]
    one.write(rows(values))
    one.write(rows(values, pa.large_binary()))
    one.write(rows(["", "é", "x" * 2000], pa.string()))
    one.write(rows(["ß"], pa.large_string()))
    one.write(rows([b"cut off", *values, b"cut off"]).slice(1, len(values)))
    one.write(rows([]))
    published = one.finish()
    texts = [text.encode() for text in ["", "é", "x" * 2000, "ß"]]
    expected = [*values, *values, *texts, *values]
    assert subscriber.take(len(expected)) == expected
    assert (published["rows"], published["messages"]) == (len(expected), len(expected))
    assert published["bytes"] == sum(map(len, expected))
    [(_, session, first, last, count)] = published["streams"]
    assert ({session}, first, count) == (subscriber.sessions, 0, len(expected))
    assert last > published["bytes"]


def test_a_message_over_the_maximum_is_refused_with_its_row_and_the_limit(
    task: Tasks, reader: Callable[..., Reader]
) -> None:
    """08-66"""
    subscriber = reader()
    one = task()
    one.write(rows([b"a", b"b"]))
    with pytest.raises(AeronRecordError) as error:
        one.write(rows([b"c", b"x" * 8193, b"d"]))
    text = str(error.value)
    assert text.startswith("row 3 of partition 3: ")
    assert "length 8193 exceeds the maximum of 8192 bytes" in text
    assert text.endswith("rows 0..2 of partition 3 (attempt 0) were published, 3..4 were not")
    assert subscriber.take(3) == [b"a", b"b", b"c"]


def test_a_slow_subscriber_receives_more_rows_than_the_log_can_contain(
    task: Tasks, reader: Callable[..., Reader]
) -> None:
    """08-66, 08-72, 08-73"""
    subscriber = reader(pause_s=0.002, limit=500)
    one = task()
    values = [number.to_bytes(4, "little") + b"." * (number % 300) for number in range(20_000)]
    for start in range(0, len(values), 3000):
        one.write(rows(values[start : start + 3000]))
    assert one.finish()["rows"] == len(values)
    assert subscriber.take(len(values)) == values


def test_each_row_is_published_on_the_stream_that_it_names(
    task: Tasks, reader: Callable[..., Reader], stream_id: int
) -> None:
    """08-70, 08-72"""
    streams = [stream_id, stream_id + 1, stream_id + 2]
    readers = [reader(stream) for stream in streams]
    one = task(None)
    routes = [streams[number * number % 3] for number in range(1000)]
    values = [b"%d" % number for number in range(1000)]
    one.write(rows(values, stream_id=pa.array(routes, pa.int32())))
    published = one.finish()
    for stream, subscriber in zip(streams, readers, strict=True):
        expected = [value for value, route in zip(values, routes, strict=True) if route == stream]
        assert subscriber.take(len(expected)) == expected
    counts = {stream: count for stream, *_, count in published["streams"]}
    assert counts == {stream: routes.count(stream) for stream in streams if routes.count(stream)}


def test_nulls_and_too_many_streams_are_refused_before_a_row_is_sent(
    task: Tasks, publications: SharedPublications
) -> None:
    """08-67, 08-70"""
    with pytest.raises(AeronRecordError, match=r"row 5 of partition 3: column 'value' is null"):
        first = task()
        first.write(rows([], pa.binary()))
        first.write(rows([b"0"] * 5 + [None]))
    with pytest.raises(AeronRecordError, match=r"row 1 of partition 3: column 'stream_id' is null"):
        task().write(rows([b"0", b"1"], stream_id=pa.array([1, None], pa.int32())))
    with pytest.raises(AeronRecordError, match=r"1025 distinct values or more in this worker, the limit is 1024"):
        task().write(rows([b""] * 1025, stream_id=pa.array(range(1025), pa.int32())))
    assert len(publications) == 0


def test_without_a_subscriber_a_task_fails_after_its_timeout(task: Tasks, stream_id: int) -> None:
    """08-74"""
    began = time.monotonic()
    with pytest.raises(AeronNoSubscriberError) as error:
        task(connect_timeout_ms=300).write(rows([b"a"] * 7))
    assert 0.3 <= time.monotonic() - began < 5
    assert str(error.value) == (
        f"no subscriber on channel=aeron:ipc streamId={stream_id} for 300 ms (connectTimeoutMs); "
        "7 rows of partition 3 not sent"
    )
    assert error.value.code == "NO_SUBSCRIBER"


def test_a_subscriber_that_connects_before_the_timeout_receives_each_row(
    task: Tasks, reader: Callable[..., Reader]
) -> None:
    """08-74"""
    writing = threading.Thread(target=lambda: task().write(rows([b"a", b"b"])))
    writing.start()
    time.sleep(0.3)
    assert reader().take(2) == [b"a", b"b"]
    writing.join()


def test_a_task_with_a_stopped_subscriber_fails_after_its_timeout_with_the_accepted_rows(
    task: Tasks, client: aeron.Aeron, stream_id: int
) -> None:
    """08-73"""
    subscription = client.add_subscription(IPC, stream_id)
    one = task(offer_timeout_ms=400, attempt=2)
    began = time.monotonic()
    with pytest.raises(AeronBackPressureError) as error:
        one.write(rows([b"x" * 1000] * 500))
    assert 0.4 <= time.monotonic() - began < 5
    sent = one.published["rows"]
    assert 0 < sent < 500
    text = str(error.value)
    assert text.startswith(f"back pressure on channel=aeron:ipc streamId={stream_id} for 400 ms (offerTimeoutMs): ")
    assert "subscribers at position 0, publisher limit 32768; " in text
    assert text.endswith(f"rows 0..{sent - 1} of partition 3 (attempt 2) were published, {sent}..499 were not")
    assert len(read(subscription, sent)) == sent
    assert not subscription.poll_batch()


def test_each_accepted_row_resets_the_time_of_back_pressure(task: Tasks, reader: Callable[..., Reader]) -> None:
    """08-73"""
    subscriber = reader(pause_s=0.1, limit=10)
    one = task(offer_timeout_ms=2000)
    began = time.monotonic()
    one.write(rows([b"x" * 1000] * 300))
    assert time.monotonic() - began > 2
    subscriber.take(300)


def test_all_tasks_of_a_machine_share_one_session(task: Tasks, reader: Callable[..., Reader]) -> None:
    """08-71"""
    subscriber = reader()
    # Each worker keeps its publication open between tasks.
    workers = SharedPublications(), SharedPublications()
    for number in range(4):
        one = task(shared=workers[number % 2])
        one.write(rows([b"%d" % number]))
        one.finish()
    assert subscriber.take(4) == [b"0", b"1", b"2", b"3"]
    assert len(subscriber.sessions) == 1
    for worker in workers:
        worker.close()


def test_publications_stay_open_after_a_task_and_are_closed_when_unused(
    task: Tasks, publications: SharedPublications, reader: Callable[..., Reader]
) -> None:
    """08-71, 08-78"""
    subscriber = reader()
    one = task()
    one.write(rows([b"a"]))
    one.finish()
    time.sleep(0.5)
    assert len(publications) == 1  # in use by the task
    one.write(rows([b"b"]))
    subscriber.take(2)
    unused_since = time.monotonic()
    del one
    eventually(lambda: len(publications) == 0)
    assert time.monotonic() - unused_since >= 0.3
    eventually(lambda: not subscriber.subscription.images)
    task().write(rows([b"c"]))
    assert subscriber.take(3) == [b"a", b"b", b"c"]


def test_rows_are_counted_for_aeron_stat(
    task: Tasks, client: aeron.Aeron, reader: Callable[..., Reader], stream_id: int
) -> None:
    reader()
    one = task()
    one.write(rows([b"a"] * 12))
    label = f"spark-sink rows query=0123abcd stream={stream_id}"
    [counter] = [counter for counter in client.counters_reader if counter.label == label]
    assert counter.value == 12
    assert counter.type_id != 100


def test_drain_waits_for_the_slowest_subscriber(task: Tasks, client: aeron.Aeron, stream_id: int) -> None:
    """08-79"""
    fast, slow = (client.add_subscription(IPC, stream_id) for _ in range(2))
    one = task(offer_timeout_ms=5000)
    one.write(rows([b"x"] * 100))
    draining = threading.Thread(target=lambda: one.finish(drain=True))
    draining.start()
    assert read(fast, 100) == [*read(slow, 99), b"x"]
    time.sleep(0.2)
    assert draining.is_alive()
    read(slow, 1)
    draining.join(3)
    assert not draining.is_alive()


def test_drain_fails_with_the_positions_if_a_subscriber_does_not_read(
    task: Tasks, client: aeron.Aeron, stream_id: int
) -> None:
    """08-79"""
    _subscription = client.add_subscription(IPC, stream_id)
    one = task(offer_timeout_ms=200)
    one.write(rows([b"x"] * 10))
    with pytest.raises(
        AeronBackPressureError, match=r"subscribers at position 0, the last row ends at 640; all 10 rows"
    ):
        one.finish(drain=True)


def test_drain_waits_for_the_sender_and_for_network_subscribers_of_this_machine(
    driver: aeron.MediaDriver, publications: SharedPublications, client: aeron.Aeron, stream_id: int
) -> None:
    """08-79"""
    channel = "aeron:udp?endpoint=localhost:24555|term-length=64k"
    subscription = client.add_subscription(channel, stream_id)
    settings = {"query": "q", "partition": 0, "client": client_settings(driver.dir), "offer_timeout_ms": 5000}
    one = publications.task(channel, stream_id, **settings)
    one.write(rows([b"x"] * 100))
    draining = threading.Thread(target=lambda: one.finish(drain=True))
    draining.start()
    read(subscription, 99)
    time.sleep(0.2)
    assert draining.is_alive()
    read(subscription, 1)
    draining.join(5)
    assert not draining.is_alive()


def test_each_attempt_has_the_same_keys_of_batch_partition_and_row(task: Tasks, reader: Callable[..., Reader]) -> None:
    """08-76"""
    subscriber = reader()
    for attempt in range(2):
        one = task(reserved_value="dedup", batch_id=(1 << 24) + 9, attempt=attempt)
        one.write(rows([b"a", b"b" * 2000]))
        one.write(rows([b"c"]))
    assert subscriber.take(6) == [b"a", b"b" * 2000, b"c"] * 2
    assert subscriber.reserved_values == [9 << 40 | 3 << 28 | row for row in range(3)] * 2
    with pytest.raises(AeronRecordError, match="at most 4096 partitions"):
        task(reserved_value="dedup", partition=4096)


def test_reserved_values_come_from_their_column(task: Tasks, reader: Callable[..., Reader], stream_id: int) -> None:
    """08-70, 08-76"""
    subscriber = reader()
    values = [-(2**63), 2**63 - 1, 0, 7]
    routes = [stream_id, stream_id, stream_id + 1, stream_id]
    other = reader(stream_id + 1)
    one = task(None, reserved_value="column")
    columns = {"stream_id": pa.array(routes, pa.int32()), "reserved_value": pa.array(values, pa.int64())}
    one.write(rows([b"a", b"b", b"c", b"d"], **columns))
    assert subscriber.take(3) == [b"a", b"b", b"d"]
    assert subscriber.reserved_values == [-(2**63), 2**63 - 1, 7]
    assert other.take(1) == [b"c"]


def test_records_are_packed_into_messages_per_stream_and_the_last_message_is_shorter(
    task: Tasks, reader: Callable[..., Reader], stream_id: int
) -> None:
    """08-64, 08-70"""
    even, odd = reader(), reader(stream_id + 1)
    one = task(None, value_schema="n i32, @8, text char[4]", records_per_message=3, reserved_value="dedup", batch_id=1)
    numbers = range(10)
    routes = [stream_id + 1 * (number % 2) for number in numbers]
    columns = {"stream_id": pa.array(routes, pa.int32()), "text": pa.array([f"t{number}" for number in numbers])}
    batch = pa.record_batch({"n": pa.array(numbers, pa.int32()), **columns})
    one.write(batch.slice(0, 7))
    one.write(batch.slice(7))
    published = one.finish()

    def record(number: int) -> bytes:
        return number.to_bytes(4, "little") + bytes(4) + b"t%d" % number + bytes(2)

    def message(*numbers: int) -> bytes:
        return b"".join(map(record, numbers))

    assert even.take(2) == [message(0, 2, 4), message(6, 8)]
    assert odd.take(2) == [message(1, 3, 5), message(7, 9)]
    assert even.reserved_values == odd.reserved_values == [1 << 40 | 3 << 28 | number for number in range(2)]
    assert (published["rows"], published["messages"]) == (10, 4)


def test_too_many_records_per_message_are_refused_before_a_record_is_packed(task: Tasks) -> None:
    one = task(value_schema="n i64", records_per_message=1025)
    with pytest.raises(
        AeronRecordError,
        match=r"^partition 3: recordsPerMessage=1025 of 8 bytes are more than the longest message of channel=aeron:ipc "
        r"streamId=\d+, 8192 bytes: at most 1024 fit; no row .* was published, 0..0 were not$",
    ):
        one.write(pa.record_batch({"n": pa.array([1], pa.int64())}))


def test_times_with_any_time_zone_are_written_in_utc(task: Tasks, reader: Callable[..., Reader]) -> None:
    subscriber = reader()
    one = task(value_schema="t ts_us")
    for zone in ("UTC", "America/New_York", "+05:30"):
        one.write(pa.record_batch({"t": pa.array([7], pa.timestamp("us", zone))}))
    assert subscriber.take(3) == [(7).to_bytes(8, "little")] * 3
    with pytest.raises(AeronRecordError, match="column 't' is Timestamp"):
        one.write(pa.record_batch({"t": pa.array([7], pa.timestamp("us"))}))


def test_a_value_that_does_not_fit_into_a_record_is_refused_with_its_row(
    task: Tasks, reader: Callable[..., Reader]
) -> None:
    reader()
    one = task(value_schema="n u8")
    one.write(pa.record_batch({"n": pa.array([255], pa.int16())}))
    with pytest.raises(AeronRecordError, match=r"^row 5001 of partition 3: column 'n' .*256"):
        one.write(pa.record_batch({"n": pa.array([0] * 5000 + [256], pa.int16())}))


def test_a_signal_ends_a_wait(task: Tasks) -> None:
    """08-78"""
    one = task()
    ending = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ending.start()
        one.write(rows([b"a"]))
    assert time.monotonic() - began < 5


def test_a_task_fails_if_its_driver_dies_and_the_next_task_uses_a_new_driver(publications: SharedPublications) -> None:
    """08-75"""
    with driver_directory() as directory:
        settings = {"query": "q", "partition": 0, "client": client_settings(str(directory))}
        with running_driver(directory) as media_driver, aeron.connect(str(directory)) as client:
            _subscription = client.add_subscription(IPC, 1)
            one = publications.task(IPC, 1, **settings)
            one.write(rows([b"a"]))
            media_driver.send(signal.SIGKILL)
            began = time.monotonic()
            with pytest.raises(
                AeronDriverTimeout, match=r"channel=aeron:ipc streamId=1: .*; rows 0\.\.\d+ of"
            ) as error:
                one.write(rows([b"x" * 100_000] * 1000))
            assert time.monotonic() - began < 10
            assert error.value.code == "DRIVER_TIMEOUT"
        shutil.rmtree(directory)  # a driver that has just died still counts as active
        with running_driver(directory), aeron.connect(str(directory)) as client:
            subscription = client.add_subscription(IPC, 1)
            publications.task(IPC, 1, **settings).write(rows([b"again"]))
            assert read(subscription, 1) == [b"again"]


def test_a_client_connects_again_to_a_replaced_driver(publications: SharedPublications) -> None:
    """08-75"""
    with driver_directory() as directory:
        settings = {"query": "q", "partition": 0, "client": client_settings(str(directory))}
        for _ in range(2):
            media_driver = aeron.MediaDriver(dir=directory, ipc_term_buffer_length=64 * 1024)
            with media_driver, aeron.connect(media_driver) as client:
                subscription = client.add_subscription(IPC, 1)
                publications.task(IPC, 1, **settings).write(rows([b"a"]))
                assert read(subscription, 1) == [b"a"]


def test_a_forked_child_opens_its_own_publications() -> None:
    """08-71"""
    program = """
        import os, sys, aeron, pyarrow as pa
        from aeron.spark import sink

        def send(driver):
            task = sink._shared_publications().task("aeron:ipc", 1, query="q", partition=0, client={
                "aeron_dir": driver, "driver_timeout_ms": 5000, "client_name": None,
                "resource_linger_duration_ns": None, "idle_sleep_duration_ns": None, "pre_touch_mapped_memory": None})
            task.write(pa.record_batch({"value": pa.array([b"%d" % os.getpid()], pa.binary())}))

        driver = aeron.MediaDriver()
        client = aeron.connect(driver)
        subscription = client.add_subscription("aeron:ipc", 1)
        directory = driver.dir
        send(directory)
        child = os.fork()
        if child == 0:
            send(directory)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        send(directory)
        messages, sessions = [], set()
        while len(messages) < 3:
            batch = subscription.poll_batch()
            messages += batch.to_list()
            sessions.update(batch.session_ids.tolist())
        assert messages == [b"%d" % pid for pid in (os.getpid(), child, os.getpid())], messages
        assert len(sessions) == 1
    """
    with driver_directory() as directory:
        result = subprocess.run(
            [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
            env={**os.environ, "AERON_DIR": str(directory)},
        )
    assert (result.returncode, result.stderr) == (0, "")

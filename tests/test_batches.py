"""Tests of `offer_batch` and `poll_batch`, which send and receive many messages with one call, in all their forms."""

from __future__ import annotations

import array
import collections
import collections.abc
import gc
import itertools
import os
import pickle
import signal
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Stream, eventually

import aeron
from aeron import _aeron

TRADE = np.dtype([("time", "<M8[ns]"), ("price", "<f8"), ("size", "<f4"), ("symbol", "S12")])


def trades(count: int) -> np.ndarray:
    rows = np.zeros(count, TRADE)
    rows["time"] = np.arange(count)
    rows["price"] = np.linspace(1, 2, count)
    rows["symbol"] = b"EURUSD"
    return rows


def batch_of(stream: Stream, count: int) -> aeron.Batch:
    """Polls until a batch has `count` messages, and returns that batch."""
    batches = []
    eventually(lambda: batches.append(stream.subscription.poll_batch(count)) or len(batches[-1]) == count)
    return batches[-1]


MESSAGES = [b"one", b"", b"three", bytes(5000)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (MESSAGES, MESSAGES),
        ([bytearray(b"a"), memoryview(b"bc"), np.arange(2, dtype="u1")], [b"a", b"bc", b"\0\1"]),
        ([], []),
        (np.arange(12, dtype="<i4").reshape(3, 4), [bytes(row) for row in np.arange(12, dtype="<i4").reshape(3, 4)]),
        (np.arange(24, dtype="u1").reshape(6, 4)[::2], [bytes(range(i, i + 4)) for i in (0, 8, 16)]),
        (np.arange(24, dtype="u1").reshape(6, 4)[:, 1:3], [bytes((i + 1, i + 2)) for i in range(0, 24, 4)]),
        (np.zeros((0, 4)), []),
        (trades(5), [row.tobytes() for row in trades(5)]),
        (trades(6)[::2], [row.tobytes() for row in trades(6)[::2]]),
        (np.array([(1, 2), (3, 4)], [("a", "<i4"), ("b", "<i4")]), [b"\1\0\0\0\2\0\0\0", b"\3\0\0\0\4\0\0\0"]),
        (np.array([b"abcd", b"ef"], "S4"), [b"abcd", b"ef\0\0"]),
        (pa.array(MESSAGES, pa.binary()), MESSAGES),
        (pa.array(MESSAGES, pa.large_binary()), MESSAGES),
        (pa.array([b"ab", b"cd"], pa.binary(2)), [b"ab", b"cd"]),
        (pa.array([b"ab", b"cd", b"ef"], pa.binary(2))[1:], [b"cd", b"ef"]),
        (pa.array(["text", ""], pa.string()), [b"text", b""]),
        (pa.array(MESSAGES, pa.binary())[1:3], MESSAGES[1:3]),
    ],
    ids=[
        "bytes", "buffers", "empty", "rows", "every second row", "columns", "no rows", "structured with dates",
        "structured, every second", "structured", "fixed text", "arrow", "arrow large", "arrow fixed",
        "arrow fixed slice", "arrow string", "arrow slice",
    ],
)  # fmt: skip
def test_offer_batch_accepts_every_form_of_messages(stream: Stream, source: object, expected: list[bytes]) -> None:
    sent = 0
    got: list[bytes] = []

    def step() -> bool:
        nonlocal sent
        sent += stream.publication.offer_batch(source, start=sent)
        got.extend(stream.subscription.poll_batch().to_list())
        return len(got) == len(expected)

    eventually(step)
    assert sent == len(expected)
    assert got == expected


@pytest.mark.parametrize(
    "offsets",
    [[0, 1, 3, 6], array.array("i", [0, 1, 3, 6]), np.array([0, 1, 3, 6], "<i8"), np.array([0, 1, 3, 6], "<u4")],
)
def test_offer_batch_accepts_a_buffer_with_offsets(stream: Stream, offsets: object) -> None:
    assert stream.publication.offer_batch(b"abbccc", offsets=offsets) == 3
    assert stream.receive(3) == [b"a", b"bb", b"ccc"]


@pytest.mark.parametrize(
    ("offsets", "error"),
    [
        ([0, 7], ValueError),
        ([3, 1], ValueError),
        ([], ValueError),
        ([-1, 2], (ValueError, OverflowError)),
        (np.array([-1, 2]), ValueError),
        (np.array([0.0, 2.0]), TypeError),
        (5, TypeError),
        (["x"], TypeError),
    ],
)
def test_invalid_offsets_are_refused(stream: Stream, offsets: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        stream.publication.offer_batch(b"abbccc", offsets=offsets)


@pytest.mark.parametrize("offsets", [np.array([0, 1 << 31], "<u4"), np.array([0, 1 << 63], "<u8")])
def test_a_large_unsigned_offset_is_not_negative(stream: Stream, offsets: object) -> None:
    with pytest.raises(ValueError, match="offsets must ascend to at most 6"):
        stream.publication.offer_batch(b"abbccc", offsets=offsets)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (b"bytes", TypeError),
        (5, (TypeError, AttributeError)),
        (None, (TypeError, AttributeError)),
        (["text"], TypeError),
        ([b"good", 5], TypeError),
        (np.arange(5), TypeError),
        (np.arange(8).reshape(2, 2, 2), TypeError),
        (np.arange(8).reshape(4, 2).T, TypeError),
        (np.arange(8).reshape(4, 2)[::-1], TypeError),
        (pa.array([1, 2]), TypeError),
        (pa.array([b"a", None]), ValueError),
    ],
)
def test_an_argument_that_is_not_a_batch_is_refused_and_nothing_is_sent(
    stream: Stream, source: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        stream.publication.offer_batch(source)
    assert stream.publication.position == 0


def test_start_beyond_the_messages_is_refused(stream: Stream) -> None:
    for source in ([b"a"], np.zeros((1, 4)), pa.array([b"a"])):
        assert stream.publication.offer_batch(source, start=1) == 0
        with pytest.raises(ValueError, match="start=2"):
            stream.publication.offer_batch(source, start=2)


def test_offer_batch_stops_at_back_pressure_and_the_caller_continues_with_the_next_message(stream: Stream) -> None:
    rows = np.arange(40_000, dtype="<i8").reshape(10_000, 4)
    sent, got, calls = 0, [], 0
    while len(got) < len(rows):
        if sent < len(rows):
            sent += stream.publication.offer_batch(rows[sent:])
            calls += 1
        got.extend(stream.subscription.poll_batch(500).to_list())
    assert calls > 5
    assert np.array_equal(np.frombuffer(b"".join(got), "<i8").reshape(-1, 4), rows)


def test_a_message_that_is_too_long_raises_after_the_earlier_messages_were_sent(stream: Stream) -> None:
    messages = [b"first", bytes(stream.publication.max_message_length + 1)]
    assert stream.publication.offer_batch(messages) == 1
    with pytest.raises(aeron.MessageTooLongError):
        stream.publication.offer_batch(messages, start=1)
    assert stream.receive() == [b"first"]


def test_a_batch_has_the_session_and_position_of_each_message(stream: Stream) -> None:
    stream.publication.offer(b"a", reserved_value=7)
    stream.publication.offer(bytes(5000), reserved_value=8)
    batch = batch_of(stream, 2)
    assert len(batch) == 2
    assert batch.stream_id == stream.stream_id
    assert list(batch.offsets) == [0, 1, 5001]
    assert list(batch.session_ids) == [stream.publication.session_id] * 2
    assert list(batch.reserved_values) == [7, 8]
    assert batch.positions[0] == 64
    assert batch.positions[1] == stream.publication.position
    assert batch.payload.nbytes == 5001
    assert batch.payload.readonly
    assert "2 messages" in repr(batch)


def test_a_batch_is_a_sequence_of_views(stream: Stream) -> None:
    stream.publication.offer_batch([b"one", b"two"])
    batch = batch_of(stream, 2)
    assert [bytes(view) for view in batch] == [b"one", b"two"]
    assert bytes(batch[-1]) == b"two"
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"no message {index}: the batch has 2"):
            batch[index]


def test_an_empty_batch_is_falsy_and_has_no_messages(stream: Stream) -> None:
    batch = stream.subscription.poll_batch()
    assert not batch
    assert list(batch) == batch.to_list() == []
    assert len(batch.as_records(TRADE)) == 0
    assert pa.table(batch).num_rows == 0
    assert list(batch.offsets) == [0]


def test_records_are_views_of_the_batch(stream: Stream) -> None:
    rows = trades(1000)
    # The term window of an IPC publication is half a term of 64 KiB, and a frame has 64 bytes.
    assert stream.publication.offer_batch(rows) == 512
    batch = stream.subscription.poll_batch()
    records = batch.as_records(TRADE)
    assert records.dtype == TRADE
    assert not records.flags.writeable
    assert np.array_equal(records, rows[: len(batch)])
    payload = np.frombuffer(batch.payload, "u1")
    assert records.ctypes.data == payload.ctypes.data, "the records are a copy of the payload, and not a view"


def test_each_record_of_a_message_becomes_a_row(stream: Stream) -> None:
    stream.publication.offer(trades(3).tobytes())
    stream.publication.offer(trades(2).tobytes())
    assert len(batch_of(stream, 2).as_records(TRADE)) == 5


def test_messages_that_are_not_a_whole_number_of_records_are_refused(stream: Stream) -> None:
    stream.publication.offer(bytes(TRADE.itemsize + 1))
    batch = batch_of(stream, 1)
    with pytest.raises(ValueError, match="whole number of records"):
        batch.as_records(TRADE)
    with pytest.raises(TypeError):
        batch.as_records("no such dtype")
    with pytest.raises(ValueError, match="whole number"):
        batch.as_records("V0")


def test_a_batch_is_an_arrow_table_without_a_copy(stream: Stream) -> None:
    stream.publication.offer_batch(MESSAGES)
    batch = batch_of(stream, len(MESSAGES))
    table = pa.table(batch)
    assert table.schema == pa.schema(
        [
            pa.field("payload", pa.binary(), nullable=False),
            pa.field("position", pa.int64(), nullable=False),
            pa.field("session_id", pa.int32(), nullable=False),
            pa.field("stream_id", pa.int32(), nullable=False),
            pa.field("reserved_value", pa.int64(), nullable=False),
        ]
    )
    table.validate(full=True)
    assert table["payload"].to_pylist() == MESSAGES
    assert table["position"].to_pylist() == list(batch.positions)
    assert table["stream_id"].to_pylist() == [stream.stream_id] * len(MESSAGES)
    data = table["payload"].chunk(0).buffers()[2]
    assert data.address == np.frombuffer(batch.payload, "u1").ctypes.data
    assert pa.array(batch).type == pa.struct(table.schema)


def test_arrays_of_a_batch_stay_unchanged_after_its_memory_could_be_reused(stream: Stream) -> None:
    kept = []
    for i in range(20):
        stream.publication.publish(i.to_bytes(8, "little") * 100, timeout=5)
        batch = batch_of(stream, 1)
        kept.append((i, batch[0], batch.as_records("<u8"), pa.table(batch)["payload"], batch.offsets))
    stream.subscription.close()
    stream.client.close()
    del batch
    gc.collect()
    for i, view, records, column, offsets in kept:
        expected = i.to_bytes(8, "little") * 100
        assert bytes(view) == expected
        assert records.tobytes() == expected
        assert column[0].as_py() == expected
        assert list(offsets) == [0, 800]


def test_a_batch_does_not_exceed_its_limits_of_messages_and_bytes(stream: Stream) -> None:
    stream.publication.offer_batch([bytes(100)] * 50)
    assert len(batch_of(stream, 10)) == 10
    assert len(stream.subscription.poll_batch(max_bytes=250)) == 3
    assert len(stream.subscription.poll_batch()) == 37
    for wrong in ({"limit": 0}, {"max_bytes": 0}):
        with pytest.raises(ValueError, match="at least one"):
            stream.subscription.poll_batch(**wrong)
    with pytest.raises(OverflowError):
        stream.subscription.poll_batch(-1)


def test_batches_iterates_until_the_subscription_is_closed(stream: Stream) -> None:
    def send() -> None:
        for i in range(100):
            stream.publication.publish(bytes([i]), timeout=5)
        eventually(lambda: stream.subscription.images[0].position == stream.publication.position)
        stream.subscription.close()

    sender = threading.Thread(target=send)
    sender.start()
    got = [message[0] for batch in stream.subscription.batches(limit=7) for message in batch]
    sender.join()
    assert got == list(range(100))


def test_the_iterator_over_batches_ends_if_no_message_arrives_before_the_timeout(stream: Stream) -> None:
    stream.publication.offer(b"x")
    assert [batch.to_list() for batch in stream.subscription.batches(timeout=0.1)] == [[b"x"]]


def test_a_batch_of_more_than_1_mib_is_complete(driver: aeron.MediaDriver, stream_id: int) -> None:
    with aeron.connect(driver) as client:
        channel = "aeron:ipc?term-length=16m"
        publication = client.add_exclusive_publication(channel, stream_id)
        subscription = client.add_subscription(channel, stream_id)
        publication.wait_connected(5)
        rows = np.arange(1 << 19, dtype="<u8").reshape(-1, 4)
        sent, got = 0, []

        def step() -> bool:
            nonlocal sent
            if sent < len(rows):
                sent += publication.offer_batch(rows[sent:])
            got.append(subscription.poll_batch(1 << 20).as_records("<u8"))
            return sum(map(len, got)) == rows.size

        eventually(step)
        assert np.array_equal(np.concatenate(got), rows.ravel())
        assert max(map(len, got)) * 8 > 1 << 20


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=st.lists(st.binary(max_size=3000), max_size=40), limit=st.integers(1, 50))
def test_every_message_of_a_batch_arrives(stream: Stream, messages: list[bytes], limit: int) -> None:
    sent, got = 0, []

    def step() -> bool:
        nonlocal sent
        sent += stream.publication.offer_batch(messages, start=sent)
        got.extend(stream.subscription.poll_batch(limit).to_list())
        return len(got) == len(messages)

    eventually(step)
    assert got == messages


SLICES = [
    slice(2, 5),
    slice(None),
    slice(-3, None),
    slice(None, None, -2),
    slice(1, 9, 3),
    slice(20, 30),
    slice(5, 2),
    slice(7, 7),
]


def ten_messages(stream: Stream) -> tuple[aeron.Batch, list[bytes]]:
    """Returns a batch of ten messages, and the bytes of the messages. All differ in length, content, position and
    reserved value."""
    messages = [bytes([i]) * i for i in range(10)]
    for i, message in enumerate(messages):
        assert stream.publication.offer(message, reserved_value=100 + i)
    return batch_of(stream, 10), messages


@pytest.mark.parametrize("part", SLICES, ids=str)
def test_a_slice_of_a_batch_is_a_batch_with_all_properties_of_its_messages(stream: Stream, part: slice) -> None:
    batch, messages = ten_messages(stream)
    sliced = batch[part]
    assert isinstance(sliced, aeron.Batch)
    assert sliced.to_list() == [bytes(payload) for payload in sliced] == messages[part]
    assert len(sliced) == len(messages[part])
    for column in ("positions", "session_ids", "reserved_values"):
        assert list(getattr(sliced, column)) == list(getattr(batch, column))[part]
    assert sliced.stream_id == batch.stream_id
    assert bytes(sliced.payload) == b"".join(messages[part])
    ends = list(sliced.offsets)
    assert [bytes(sliced.payload[start:end]) for start, end in itertools.pairwise(ends)] == messages[part]
    assert f"Batch of {len(messages[part])} messages" in repr(sliced)
    table = pa.array(sliced)
    table.validate(full=True)
    assert table.field("payload").to_pylist() == messages[part]
    assert table.field("reserved_value").to_pylist() == list(sliced.reserved_values)
    again = sliced[1:]
    assert again.to_list() == messages[part][1:]
    if len(sliced):
        assert bytes(sliced[-1]) == messages[part][-1]
    with pytest.raises(IndexError, match=f"no message {len(sliced)}: the batch has {len(sliced)}"):
        sliced[len(sliced)]


def test_a_slice_of_consecutive_messages_shares_the_memory_of_its_batch(stream: Stream) -> None:
    batch, messages = ten_messages(stream)
    whole, part = np.frombuffer(batch.payload, "u1"), np.frombuffer(batch[3:7].payload, "u1")
    assert np.shares_memory(whole, part)
    assert not np.shares_memory(whole, np.frombuffer(batch[3:7:2].payload, "u1"))
    del batch, whole
    gc.collect()
    assert part.tobytes() == b"".join(messages[3:7])


def test_the_records_of_a_slice_are_those_of_its_messages(stream: Stream) -> None:
    assert stream.publication.offer_batch(trades(10)) == 10
    batch = batch_of(stream, 10)
    records = batch.as_records(TRADE)
    assert (batch[4:6].as_records(TRADE) == records[4:6]).all()
    assert len(batch[4:4].as_records(TRADE)) == 0
    with pytest.raises(ValueError, match="not every message is a whole number of records"):
        batch[4:6].as_records("V7")


def test_batches_with_equal_messages_are_equal_and_batches_can_be_pickled(stream: Stream) -> None:
    batch, _ = ten_messages(stream)
    for part in SLICES:
        sliced = batch[part]
        again = pickle.loads(pickle.dumps(sliced))
        assert again == sliced
        assert again.to_list() == sliced.to_list()
        assert list(again.offsets) == list(sliced.offsets)
    assert batch[2:4] == batch[2:5][:2]
    assert batch[2:4] != batch[3:5]
    assert batch != batch.to_list()
    with pytest.raises(ValueError, match="offsets of a batch must ascend from 0 to the 3 bytes"):
        _aeron._batch_of_columns(1, b"abc", bytes(8), bytes(8), bytes(4), bytes(8))
    with pytest.raises(ValueError, match="one offset more"):
        _aeron._batch_of_columns(1, b"", bytes(4), bytes(8), bytes(4), bytes(8))


def test_an_index_of_a_batch_is_an_integer_or_a_slice(stream: Stream) -> None:
    batch, _ = ten_messages(stream)
    with pytest.raises(TypeError, match="index='x' is not an integer"):
        batch["x"]  # type: ignore[call-overload]


def test_offer_batch_accepts_any_sequence_of_messages(stream: Stream) -> None:
    class Sequence(collections.abc.Sequence[bytes]):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: Any) -> Any:
            return [b"one", b"two"][index]

    for messages in (
        (b"one", b"two"),
        collections.deque([b"one", b"two"]),
        collections.UserList([b"one", b"two"]),
        Sequence(),
    ):
        assert stream.publication.offer_batch(messages) == 2
        assert stream.publication.offer_batch(messages, start=1) == 1
        assert stream.receive(3) == [b"one", b"two", b"two"]
    for wrong in ("text", {b"one": 1}, {b"one"}, 5, (message for message in [b"one"])):
        with pytest.raises(TypeError, match="offer_batch takes a list or another sequence"):
            stream.publication.offer_batch(wrong)  # type: ignore[arg-type]


def test_offer_batch_returns_the_count_of_messages_before_an_invalid_item_and_then_raises(stream: Stream) -> None:
    messages: list[Any] = [b"x"] * 600 + [1]
    sent = stream.publication.offer_batch(messages)
    assert sent > 0
    with pytest.raises(TypeError):
        stream.publication.offer_batch(messages, start=sent)
    assert len(batch_of(stream, sent)) == sent
    assert len(stream.subscription.poll_batch()) == 0


def test_a_signal_during_a_wait_loses_no_message(stream: Stream) -> None:
    class Interruption(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interruption

    def signal_and_send() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        stream.publication.publish(b"message", timeout=5)

    received: list[aeron.Batch] = []
    sender = threading.Timer(0.2, signal_and_send)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        sender.start()
        with pytest.raises(Interruption):
            for batch in stream.subscription.batches(timeout=10):
                received.append(batch)
    finally:
        signal.signal(signal.SIGUSR1, before)
        sender.join()
    if not received:
        received.append(batch_of(stream, 1))
    assert [batch.to_list() for batch in received] == [[b"message"]]

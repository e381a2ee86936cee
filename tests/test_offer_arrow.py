"""Tests of `offer_arrow` of both kinds of publications: it publishes the values of columns as messages, without
Spark."""

from __future__ import annotations

import threading

import duckdb
import pyarrow as pa
import pytest
from tests.conftest import Stream, eventually

import aeron
from aeron._aeron import Layout


@pytest.fixture(params=["exclusive", "concurrent"])
def publication(request: pytest.FixtureRequest, stream: Stream) -> aeron.Publication | aeron.ExclusivePublication:
    if request.param == "exclusive":
        return stream.publication
    shared = stream.client.add_publication("aeron:ipc", stream.stream_id)
    shared.wait_connected(timeout=5)
    # The publication may be connected before the client has read the event of the second image, so the test waits.
    eventually(lambda: stream.subscription.image_count == 2)
    return shared


Publication = aeron.Publication | aeron.ExclusivePublication


def test_each_row_of_a_record_batch_becomes_a_message_with_its_reserved_value(
    publication: Publication, stream: Stream
) -> None:
    """08-67"""
    batch = pa.record_batch({"reserved_value": [7, -1, 0], "value": [b"a", b"", b"b" * 3000]})
    assert publication.offer_arrow(batch) == 3
    received = stream.subscription.poll_batch()
    assert received.to_list() == [b"a", b"", b"b" * 3000]
    assert received.reserved_values.tolist() == [7, -1, 0]


def test_each_value_of_an_array_becomes_a_message(publication: Publication, stream: Stream) -> None:
    """08-67"""
    for type_ in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        assert publication.offer_arrow(pa.array(["zero", "one", "two"], type_).slice(1), timeout=1) == 2
        assert stream.receive(2) == [b"one", b"two"]
    assert publication.offer_arrow(pa.array([b"ab", b"cd"], pa.binary(2)), start=1) == 1
    assert stream.receive() == [b"cd"]


def test_back_pressure_ends_the_call_and_the_caller_continues_with_the_next_row(
    publication: Publication, stream: Stream
) -> None:
    values = [b"%06d" % number + b"." * 994 for number in range(200)]
    batch = pa.record_batch({"value": values})
    sent = publication.offer_arrow(batch)
    assert 0 < sent < 200
    received = stream.receive(sent)
    while sent < 200:
        if now := publication.offer_arrow(batch, start=sent):
            received += stream.receive(now)
            sent += now
    assert received == values


def test_a_call_with_a_timeout_waits_during_back_pressure(publication: Publication, stream: Stream) -> None:
    values = [b"%06d" % number + b"." * 994 for number in range(500)]
    received: list[bytes] = []
    reading = threading.Thread(target=lambda: received.extend(stream.receive(500)))
    reading.start()
    assert publication.offer_arrow(pa.record_batch({"value": values}), timeout=10) == 500
    reading.join()
    assert received == values
    # The driver raises the publisher limit some time after the subscriber has read all messages, and possibly after the
    # timeout of the next call.
    eventually(lambda: publication.available_window > publication.term_buffer_length // 4)
    sent = publication.offer_arrow(pa.record_batch({"value": values}), timeout=0.1)
    assert 0 < sent < 500


def test_columns_and_values_that_cannot_be_sent_are_refused(publication: Publication) -> None:
    """08-67, 08-68"""
    with pytest.raises(TypeError, match="offer_arrow takes"):
        publication.offer_arrow([b"a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="offer_arrow takes"):
        publication.offer_arrow(pa.array([1, 2]))
    with pytest.raises(ValueError, match="nulls"):
        publication.offer_arrow(pa.array([b"a", None]))
    with pytest.raises(ValueError, match="row 1: column 'value' is null"):
        publication.offer_arrow(pa.record_batch({"value": [b"a", None]}))
    with pytest.raises(ValueError, match="no column 'value'"):
        publication.offer_arrow(pa.record_batch({"payload": [b"a"]}))
    with pytest.raises(ValueError, match="drop the column"):
        publication.offer_arrow(pa.record_batch({"value": [b"a"], "stream_id": pa.array([1], pa.int32())}))
    with pytest.raises(ValueError, match="start=2 is beyond the 1 messages"):
        publication.offer_arrow(pa.array([b"a"]), start=2)
    with pytest.raises(aeron.MessageTooLongError):
        publication.offer_arrow(pa.array([b"x" * 8193]))
    publication.close()
    with pytest.raises(aeron.PublicationClosedError):
        publication.offer_arrow(pa.array([b"a"]))


@pytest.mark.parametrize(("offsets", "length"), [([0, 3, 1, 4], 3), ([0, -1, 4], 2), ([0, 1_000_000, 4], 2)])
@pytest.mark.parametrize("width", [4, 8])
def test_an_array_with_offsets_outside_its_data_is_refused(
    publication: Publication, offsets: list[int], length: int, width: int
) -> None:
    type_, kind = (pa.binary(), pa.int32()) if width == 4 else (pa.large_string(), pa.int64())
    buffers = [None, pa.array(offsets, kind).buffers()[1], pa.py_buffer(b"abcd")]
    array = pa.Array.from_buffers(type_, length, buffers)
    layout = Layout("value bytes[1]" if width == 4 else "value char[1]")
    for use in (
        lambda: publication.offer_arrow(array),
        lambda: publication.offer_arrow(pa.record_batch({"value": array})),
        lambda: layout.encode(pa.record_batch({"value": array})),
    ):
        with pytest.raises(ValueError, match="ffset"):
            use()


def test_an_exported_array_can_be_used_only_once(publication: Publication) -> None:
    class Twice:
        capsules = pa.array([b"a"]).__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return self.capsules

    once = Twice()
    assert publication.offer_arrow(once) == 1  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ask for it anew"):
        publication.offer_arrow(once)  # type: ignore[arg-type]


@pytest.mark.parametrize("type_", [pa.int32(), pa.list_(pa.binary()), pa.dictionary(pa.int8(), pa.int64())])
def test_the_error_for_another_type_of_column_names_the_column(publication: Publication, type_: pa.DataType) -> None:
    array = pa.array([[b"a"]] if pa.types.is_list(type_) else [1], type_)
    with pytest.raises(ValueError, match=r"column 'value' is .*, expected binary or string: cast it"):
        publication.offer_arrow(pa.record_batch({"value": array}))


class StreamOnly:
    """Data with the stream interface only, like a frame of Polars or pandas."""

    def __init__(self, data: pa.Table | pa.ChunkedArray) -> None:
        self.data = data

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.data.__arrow_c_stream__(requested_schema)


def test_tables_and_series_of_several_chunks_are_sent(publication: Publication, stream: Stream) -> None:
    """08-67"""
    chunks = [["a", "bc"], [], ["def"], ["", "gh"]]
    expected = [b"a", b"bc", b"def", b"", b"gh"]
    for type_ in (pa.string(), pa.string_view(), pa.binary_view(), pa.dictionary(pa.int8(), pa.string())):
        column = pa.chunked_array([pa.array(chunk, pa.string()).cast(type_) for chunk in chunks])
        reserved = pa.chunked_array([[1, 2], [], [3], [4, 5]], pa.int16())
        table = pa.table({"value": column, "reserved_value": reserved})
        for data in (column, StreamOnly(column), table, StreamOnly(table)):
            assert publication.offer_arrow(data) == 5
            received = stream.subscription.poll_batch()
            assert received.to_list() == expected
            if not isinstance(data, pa.ChunkedArray) and getattr(data, "data", data) is table:
                assert received.reserved_values.tolist() == [1, 2, 3, 4, 5]
            assert publication.offer_arrow(data, start=3) == 2
            assert stream.receive(2) == expected[3:]
        for chunk in column.chunks:
            assert publication.offer_arrow(chunk) == len(chunk)
        assert stream.receive(5) == expected


def test_a_relation_of_duckdb_is_sent(publication: Publication, stream: Stream) -> None:
    relation = duckdb.sql("SELECT 'row ' || range AS value FROM range(3)")
    assert publication.offer_arrow(relation) == 3
    assert stream.receive(3) == [b"row 0", b"row 1", b"row 2"]


def test_errors_of_a_table_name_its_type_and_not_its_rows(publication: Publication) -> None:
    table = pa.table({"payload": ["a secret"], "b": [1]})
    with pytest.raises(ValueError, match="no column 'value' to send, only payload, b"):
        publication.offer_arrow(table)
    with pytest.raises(ValueError, match="column 'value' is Struct"):
        publication.offer_arrow(pa.table({"value": [{"a": 1}]}))
    with pytest.raises(ValueError, match="row 2: column 'value' is null"):
        publication.offer_arrow(pa.table({"value": pa.chunked_array([["a", "b"], [None]], pa.string())}))
    with pytest.raises(TypeError, match=r"data is of type pyarrow\.lib\.ChunkedArray with values of type Int64"):
        publication.offer_arrow(pa.chunked_array([[1, 2]]))
    with pytest.raises(TypeError, match="data is of type list: offer_arrow takes") as refused:
        publication.offer_arrow(["a secret"])  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("kind", ["key", "view"])
def test_dictionaries_and_views_with_indexes_outside_of_their_data_are_refused(
    publication: Publication, kind: str
) -> None:
    if kind == "key":
        keys = pa.array([0, 7], pa.int8())
        array = pa.DictionaryArray.from_arrays(keys, pa.array(["a"]), safe=False)
    else:
        views = pa.py_buffer((100).to_bytes(4, "little") + b"abcd" + (3).to_bytes(4, "little") + bytes(4))
        array = pa.Array.from_buffers(pa.string_view(), 1, [None, views, pa.py_buffer(b"abcd")])
    for data in (array, StreamOnly(pa.chunked_array([array])), pa.record_batch({"value": array})):
        with pytest.raises(ValueError, match=r"nvalid|ndex|view|buffer"):
            publication.offer_arrow(data)

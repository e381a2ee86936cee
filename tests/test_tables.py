"""Tests of batches as Arrow tables with typed columns, in DuckDB, and as tables of notebooks."""

from __future__ import annotations

import struct
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.conftest import Stream

import aeron

TRADES = [(1_700_000_000_000_000_001, 1.5, 7), (-(2**63), 2.5, 8), (3, 3.5, 2**32 - 1)]


@pytest.fixture
def trades(stream: Stream) -> aeron.Batch:
    for trade in TRADES:
        stream.publication.offer(struct.pack("<qdI", *trade), reserved_value=trade[2])
    return stream.subscription.poll_batch()


@pytest.mark.parametrize(
    "layout",
    [
        "ts ts_ns, px f64, qty u32",
        [("ts", "<M8[ns]"), ("px", "<f8"), ("qty", "<u4")],
        pa.schema([("ts", pa.timestamp("ns", "UTC")), ("px", pa.float64()), ("qty", pa.uint32())]),
    ],
    ids=["text", "dtype", "schema"],
)
def test_a_batch_becomes_a_table_of_typed_columns_in_one_call(trades: aeron.Batch, layout: Any) -> None:
    table = trades.to_arrow(layout)
    assert table.schema.names == ["ts", "px", "qty", "position", "session_id", "stream_id", "reserved_value"]
    assert table["ts"].cast(pa.int64()).to_pylist() == [TRADES[0][0], None, 3]
    assert table["px"].to_pylist() == [1.5, 2.5, 3.5]
    assert table["qty"].to_pylist() == table["reserved_value"].to_pylist() == [7, 8, 2**32 - 1]
    assert table["position"].to_pylist() == trades.positions.tolist()
    if isinstance(layout, pa.Schema):
        assert pa.schema(list(table.schema)[:3]) == layout
    assert trades[1:].to_arrow(layout).equals(table.slice(1))
    assert trades[:0].to_arrow(layout).equals(table.slice(0, 0))


def test_a_message_of_several_records_becomes_several_rows(stream: Stream) -> None:
    for count in (2, 0, 1):
        stream.publication.offer(struct.pack(f"<{count}i", *range(count)))
    batch = stream.subscription.poll_batch()
    table = batch.to_arrow("number i32")
    assert table["number"].to_pylist() == [0, 1, 0]
    positions = batch.positions.tolist()
    assert table["position"].to_pylist() == [positions[0], positions[0], positions[2]]


def test_layouts_that_do_not_fit_are_refused(trades: aeron.Batch) -> None:
    for layout, reason in (
        ("a i64", "not every message is a whole number of records of 8 bytes"),
        ("a nonsense", "layout: "),
        ("position i32, b i64, c i64", "the layout has a field 'position'"),
        (pa.schema([("sym", pa.string())]), "column 'sym' is string, which has no fixed length"),
    ):
        with pytest.raises(aeron.InvalidArgumentError, match=reason):
            trades.to_arrow(layout)
    with pytest.raises(aeron.ArgumentTypeError, match="is not a layout"):
        trades.to_arrow(object())  # type: ignore[arg-type]
    assert trades.to_arrow().equals(pa.table(trades))


def test_duckdb_reads_batches_and_typed_tables(trades: aeron.Batch) -> None:
    connection = duckdb.connect()
    batch, typed = trades, trades.to_arrow("ts ts_ns, px f64, qty u32")
    assert connection.sql("SELECT count(*), sum(reserved_value) FROM batch").fetchall() == [(3, 15 + 2**32 - 1)]
    assert connection.sql("SELECT max(px), count(ts) FROM typed").fetchall() == [(3.5, 2)]
    assert len(batch) + len(typed) == 6


def test_notebooks_show_batches_recordings_and_counters_as_escaped_tables(stream: Stream, client: aeron.Aeron) -> None:
    for number in range(25):
        stream.publication.offer(b"<script>%d" % number + bytes(50))
    shown = stream.subscription.poll_batch()._repr_html_()
    assert shown.count("<tr>") == 21
    assert "and 5 more" in shown
    assert "&lt;script&gt;0" in shown
    assert "<script" not in shown
    assert "type_id" in client.counters_reader._repr_html_()
    recording = aeron.Recording(
        recording_id=3,
        start_position=0,
        stop_position=None,
        start_timestamp_ms=0,
        stop_timestamp_ms=None,
        session_id=1,
        stream_id=2,
        stripped_channel="",
        original_channel="aeron:ipc?alias=<b>",
        source_identity="",
        initial_term_id=0,
        term_buffer_length=65536,
        segment_file_length=65536,
        mtu_length=1408,
    )
    shown = aeron.Recordings([recording])._repr_html_()
    assert "aeron:ipc?alias=&lt;b&gt;" in shown
    assert "active" in shown
    assert "1970-01-01 00:00:00.000+00:00" in shown

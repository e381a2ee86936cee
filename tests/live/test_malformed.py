"""Tests of the report on malformed messages that workers drop. A finished batch counts each of them once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from aeron import _aeron
from aeron.sbe import Schema
from live.conftest import Start
from live.query import Query

pa = pytest.importorskip("pyarrow")

RECORD, TOO_SHORT = b"12345678", b"123"


MARKET = Path(__file__).parents[1] / "sbe" / "market.xml"


def drop_malformed(partitions: list[str]) -> int:
    """Reads partitions as a task does. Returns the number of rows."""
    rows = 0
    schema = pa.schema([("id", pa.int64())])
    for text in partitions:
        reader = _aeron.PartitionReader(text, schema, value_format="struct", value_schema="id i64", malformed="drop")
        rows += sum(len(batch) for batch in reader)
        reader.report_counts()
    return rows


def notes(home: Path) -> list[Path]:
    return list((home / "archives").glob("*/malformed-*"))


@pytest.fixture
def query(start: Start, client: aeron.Aeron, stream_id: int) -> Iterator[Query]:
    """Runs a query up to batch 1, which has four records and three malformed messages.

    The recording stays active, because the source would remove an ended recording.
    """
    query = start(record_length=8, min_partitions=3)
    query.run_batch()
    publication = client.add_exclusive_publication("aeron:ipc", stream_id)
    for payload in (RECORD, TOO_SHORT, RECORD, RECORD, TOO_SHORT, TOO_SHORT, RECORD):
        publication.publish(payload, timeout=10)
    eventually(lambda: query.report()["retainedBytes"] == 7 * 64)
    assert len(query.run_batch() or ()) == 7
    yield query
    publication.close()


def pieces(query: Query, batch: int) -> list[str]:
    return query.source.partitions(query.offset(batch - 1), query.offset(batch))


def publish_more(query: Query, client: aeron.Aeron, stream_id: int) -> None:
    """Publishes one record and runs batches until the record is a row."""
    with client.add_exclusive_publication("aeron:ipc", stream_id) as publication:
        publication.publish(RECORD, timeout=10)
        query.run_until(len(query.rows()) + 1)


def test_a_finished_batch_counts_its_malformed_messages_once_although_its_tasks_ran_several_times(
    query: Query, client: aeron.Aeron, stream_id: int, home: Path
) -> None:
    """08-63"""
    for _ in range(2):
        assert drop_malformed(pieces(query, 1)) == 4
    late = pieces(query, 1)
    assert query.report()["malformed"] == 0
    for _ in range(2):
        publish_more(query, client, stream_id)
        assert query.report()["malformed"] == 3
        assert notes(home) == []
        # This attempt of a task runs after the batch has finished.
        drop_malformed(late)
        assert notes(home)


@pytest.mark.parametrize("is_finished", [True, False])
def test_after_a_restart_only_batches_that_are_read_again_count_again(
    query: Query, start: Start, client: aeron.Aeron, stream_id: int, is_finished: bool
) -> None:
    """08-63: a finished batch is not read again, and an unfinished batch may have other partitions."""
    drop_malformed(pieces(query, 1))
    if not is_finished:
        (query.checkpoint / "commits" / "1").unlink()
    query = start(record_length=8, min_partitions=1)
    rows = query.run_batch()
    if is_finished:
        assert rows is None
    else:
        assert len(rows or ()) == 7
        assert drop_malformed(pieces(query, 1)) == 4
    publish_more(query, client, stream_id)
    assert query.report()["malformed"] == 3


def test_a_finished_batch_counts_messages_of_other_templates_and_unknown_values_of_enums(
    start: Start, client: aeron.Aeron, stream_id: int
) -> None:
    """08-63"""
    trade = Schema(MARKET)["Trade"]
    values = {"transactTime": 5, "tradeId": 1, "side": "Buy", "price": 1, "symbol": "ES", "expiry": 9}
    known = trade.encode_one(values)
    unknown = known[:20] + b"?" + known[21:]
    other = trade.schema["BookUpdate"].encode_one({"transactTime": 5, "flags": []})
    schema = pa.schema([trade.arrow_schema().field("side")])
    query = start(min_partitions=2)
    query.run_batch()
    with client.add_exclusive_publication("aeron:ipc", stream_id) as publication:
        messages = [known, other, unknown, other, unknown, other]
        for payload in messages:
            publication.publish(payload, timeout=10)
        eventually(lambda: query.report()["retainedBytes"] > 0)
        while len(query.rows()) < len(messages):
            query.run_batch()
        for text in pieces(query, 1):
            reader = _aeron.PartitionReader(text, schema, value_format="sbe", value_schema=trade._format_text())
            list(reader)
            reader.report_counts()
        publication.publish(RECORD, timeout=10)
        query.run_until(len(messages) + 1)
        report = query.report()
    assert (report["malformed"], report["skipped"], report["unknownEnums"]) == (0, 3, 2)

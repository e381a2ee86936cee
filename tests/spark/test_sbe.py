"""Tests of ``valueFormat=sbe``: the columns of SBE messages in Spark, and the options."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
from pyspark.sql.types import IntegerType, StructField, StructType
from tests.segments import BOOT_ID, Segment
from tests.spark.test_recordings import Recorder

import aeron
from aeron.sbe import Schema
from aeron.spark.columns import source_schema
from aeron.spark.errors import AeronOptionError, AeronRecordError
from aeron.spark.options import read_options, write_options
from aeron.spark.rows import AeronPartition, read_partition
from aeron.spark.sink import check_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARKET = Path(__file__).parents[1] / "sbe" / "market.xml"
TRADES = {"valueFormat": "sbe", "sbe.schema": str(MARKET), "sbe.template": "Trade"}
BOOKS = {**TRADES, "sbe.template": "BookUpdate"}
NS = 1_700_000_000_123_456_000

needs_boot_id = pytest.mark.skipif(not BOOT_ID.exists(), reason="only Linux has the file with the boot id")


def trade(number: int) -> bytes:
    values = {"transactTime": NS, "tradeId": number, "side": "Buy", "price": Decimal("1.25"), "quantity": 3}
    return Schema(MARKET)["Trade"].encode_one({**values, "symbol": "ESZ6", "expiry": date(2026, 12, 18)})


def book(*prices: str) -> bytes:
    entry = {"size": 1, "securityId": 5, "action": "New", "side": "Sell", "orders": [{"orderId": 9, "quantity": 8}]}
    entries = [{"price": Decimal(price), **entry} for price in prices]
    return Schema(MARKET)["BookUpdate"].encode_one(
        {"transactTime": NS, "flags": ["EndOfEvent"], "entries": entries, "note": "n"}
    )


def rows(messages: list[bytes], directory: Path, columns: list[str] | None = None, **options: str) -> pa.Table:
    """Returns the rows that a task reads from a recording with these messages, with all or some columns."""
    segment = Segment(directory)
    for message in messages:
        segment.frame(message)
    checked = pickle.loads(pickle.dumps(read_options({"archiveDir": str(directory), **options})))
    schema = source_schema(checked)
    if columns is not None:
        schema = type(schema)([field for field in schema.fields if field.name in columns])
    return pa.Table.from_batches(list(read_partition(AeronPartition(segment.partition()), checked, schema)))


def types(**options: str) -> dict[str, str]:
    schema = source_schema(read_options({"archiveDir": "/nowhere", **options}))
    return {field.name: field.dataType.simpleString() for field in schema.fields}


def test_columns_have_types_of_spark() -> None:
    assert types(**TRADES) == {
        "transactTime": "timestamp",
        "tradeId": "bigint",
        "side": "string",
        "price": "decimal(19,9)",
        "quantity": "int",
        "symbol": "string",
        "venue": "int",
        "expiry": "date",
    }
    entries = types(**BOOKS)["entries"]
    assert entries.startswith("array<struct<price:decimal(19,9),size:int,securityId:int,action:string,side:string,")
    assert types(**BOOKS)["flags"] == "array<string>"
    assert types(**BOOKS, **{"sbe.sets": "integer"})["flags"] == "smallint"
    headers = types(**TRADES, includeHeaders="true")
    assert [headers[name] for name in ("template_id", "schema_id", "version", "stream_id")] == ["bigint"] * 3 + ["int"]


@needs_boot_id
def test_integers_become_timestamps_and_decimals_by_options(tmp_path: Path) -> None:
    fields = [("ts", "uint64"), ("price", "int64"), ("places", "int8")]
    body = "".join(f'<field name="{name}" id="{id}" type="{type_}"/>' for id, (name, type_) in enumerate(fields))
    text = MARKET.read_text()
    head = text[: text.index("</types>") + len("</types>")]
    schema = f'{head}<message name="Tick" id="9">{body}</message></sbe:messageSchema>'
    options = {"valueFormat": "sbe", "sbe.schemaText": schema, "sbe.template": "Tick"}
    meanings = {"sbe.timestamps": "ts ms", "sbe.decimals": "price places"}
    assert types(**options, **meanings) == {"ts": "timestamp", "price": "decimal(38,9)", "places": "tinyint"}
    message = Schema(text=schema)["Tick"].encode_one({"ts": 1_500, "price": 125, "places": -2})
    (row,) = rows([message], tmp_path, **options, **meanings).to_pylist()
    assert (row["ts"].timestamp(), row["price"]) == (1.5, Decimal("1.25"))
    with pytest.raises(AeronOptionError, match=r"option sbe\.timestamps 'nothing'"):
        types(**options, **{"sbe.timestamps": "nothing us"})


@needs_boot_id
def test_messages_of_the_template_are_rows_and_others_are_skipped(tmp_path: Path) -> None:
    table = rows([trade(1), book("2.5"), trade(2)], tmp_path, **TRADES)
    assert table["tradeId"].to_pylist() == [1, 2]
    assert table["transactTime"].cast(pa.int64()).to_pylist() == [NS // 1000] * 2
    assert table.to_pylist()[0]["price"] == Decimal("1.25")
    assert table.to_pylist()[0]["expiry"] == date(2026, 12, 18)


@needs_boot_id
def test_groups_are_arrays_of_structures(tmp_path: Path) -> None:
    (row,) = rows([book("2.5", "3.5"), trade(2)], tmp_path, **BOOKS).to_pylist()
    assert [entry["price"] for entry in row["entries"]] == [Decimal("2.5"), Decimal("3.5")]
    assert row["entries"][1]["orders"] == [{"orderId": 9, "quantity": 8}]
    assert (row["flags"], row["note"]) == (["EndOfEvent"], "n")


@needs_boot_id
def test_each_entry_of_a_group_is_a_row_with_its_index_and_the_columns_of_its_message(tmp_path: Path) -> None:
    options = {**BOOKS, "sbe.group": "entries", "includeHeaders": "true"}
    columns = ["note", "price", "record_index", "version", "position"]
    table = rows([book("1", "2"), book(), book("3")], tmp_path, columns, **options)
    assert table["price"].to_pylist() == [Decimal(1), Decimal(2), Decimal(3)]
    assert table["record_index"].to_pylist() == [0, 1, 0]
    assert table["note"].to_pylist() == ["n"] * 3
    assert table["version"].to_pylist() == [2] * 3
    first, second, third = table["position"].to_pylist()
    assert first == second < third


@needs_boot_id
def test_malformed_messages_fail_the_task_or_are_dropped(tmp_path: Path) -> None:
    late = trade(2)[:8] + b"\xff" * 8 + trade(2)[16:]
    messages = [trade(1), late, trade(3)[:-1], trade(4)]
    with pytest.raises(AeronRecordError, match=r"transactTime|block length"):
        rows(messages, tmp_path, **TRADES)
    table = rows(messages, tmp_path, **TRADES, mode="DROPMALFORMED")
    assert table["tradeId"].to_pylist() == [1, 4]
    table = rows(messages, tmp_path, **TRADES, mode="PERMISSIVE")
    assert table["tradeId"].to_pylist() == [1, None, None, 4]
    assert table["_corrupt_record"].to_pylist() == [None, late, messages[2], None]


@needs_boot_id
def test_a_kept_message_with_a_group_is_one_row(tmp_path: Path) -> None:
    good = book("1", "2")
    bad = good[:8] + b"\xff" * 8 + good[16:]
    for group, indexes in ({"sbe.group": "entries"}, [0, 1, 0, 0, 1]), ({}, [0, 0, 0]):
        options = {**BOOKS, **group, "mode": "PERMISSIVE", "includeHeaders": "true"}
        (tmp_path / str(len(group))).mkdir()
        table = rows([good, bad, good], tmp_path / str(len(group)), **options)
        kept = table["_corrupt_record"].to_pylist()
        assert [row for row in kept if row is not None] == [bad]
        assert kept.index(bad) == len(kept) // 2
        if group:
            assert table["record_index"].to_pylist() == indexes
        assert table.num_rows == len(indexes)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"sbe.template": None}, "option sbe.template: missing; valueFormat=sbe needs the name of a message"),
        ({"sbe.schema": None}, "option sbe.schema: valueFormat=sbe needs sbe.schema or sbe.schemaText"),
        ({"sbe.schemaText": MARKET.read_text()}, "give one of them"),
        ({"valueFormat": "binary"}, "option sbe.schema: given with valueFormat=binary"),
        ({"sbe.template": "Quote"}, "the schema has no message 'Quote': it has Trade, BookUpdate, Instrument"),
        ({"sbe.group": "legs"}, "message 'Trade' has no group 'legs'"),
    ],
)
def test_wrong_options_are_refused(changed: dict[str, Any], text: str) -> None:
    given = {**TRADES, **changed}
    with pytest.raises(AeronOptionError, match=text):
        types(**{name: value for name, value in given.items() if value is not None})


def test_a_sink_refuses_columns_that_the_message_does_not_have() -> None:
    options = write_options({"channel": "aeron:ipc", "streamId": "1", **BOOKS}, streaming=False)
    right = source_schema(read_options({"archiveDir": "/nowhere", **BOOKS}))
    check_schema(right, options)

    def refused(change: Callable[[StructType], StructType]) -> str:
        with pytest.raises(AeronOptionError) as error:
            check_schema(change(right), options)
        return str(error.value)

    assert "column 'flags' is missing, a required field of message BookUpdate" in refused(
        lambda schema: StructType([field for field in schema.fields if field.name != "flags"])
    )
    assert "column 'depth' is not in message BookUpdate; drop it" in refused(
        lambda schema: StructType([*schema.fields, StructField("depth", IntegerType())])
    )
    assert "column 'note' cannot be INT; format aeron writes STRING" in refused(
        lambda schema: StructType([*schema.fields[:-1], StructField("note", IntegerType())])
    )


@needs_boot_id
@pytest.mark.slow
def test_spark_reads_trades_and_entries_of_a_recording(
    spark: SparkSession, media_driver: aeron.MediaDriver, shared_memory: Path
) -> None:
    recorder = Recorder(media_driver, shared_memory, [3101])
    with aeron.connect(media_driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", 3101)
        publication.wait_connected(timeout=20)
        for message in [trade(number) for number in range(100)] + [book("1", "2")]:
            publication.publish(message, timeout=20)
        recorder.wait_for([publication])
        recorder.source.close()
        read = spark.read.format("aeron").option("archiveDir", str(shared_memory))
        trades = read.options(**TRADES).load()
        assert trades.selectExpr("count(*)", "sum(tradeId)", "sum(price)").first() == (100, 4950, Decimal(125))
        books = read.options(**BOOKS).load()
        assert books.selectExpr("explode(entries.price) as price").agg({"price": "sum"}).first() == (Decimal(3),)
        with client.add_subscription("aeron:ipc", 3102) as subscription:
            sink = trades.repartition(1).sortWithinPartitions("tradeId").write.format("aeron").mode("append")
            sink.options(**{"aeron.dir": media_driver.dir, "channel": "aeron:ipc", "streamId": "3102"}, **TRADES).save()
            assert [bytes(message) for message in subscription.poll_batch(1000)] == [trade(n) for n in range(100)]
        entries = read.options(**BOOKS, **{"sbe.group": "entries"}).load()
        assert [row.price for row in entries.orderBy("price").collect()] == [Decimal(1), Decimal(2)]

"""Tests of `aeron.sbe`: schemas, and messages as columns, values and bytes."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import aeron
from aeron.sbe import Schema
from test_sbe_objects import message_of

MARKET = Path(__file__).parent / "sbe" / "market.xml"
NS = 1_700_000_000_123_456_789


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema(MARKET)


def trade(trade_id: int, **changed: Any) -> dict[str, Any]:
    values = {
        "transactTime": NS,
        "tradeId": trade_id,
        "side": "Buy",
        "price": Decimal("123.45"),
        "quantity": 10,
        "symbol": "ESZ6",
        "venue": None,
        "expiry": date(2026, 12, 18),
    }
    return values | changed


def book(*prices: str | None, orders: int = 0, note: str = "") -> dict[str, Any]:
    entry = {"size": 1, "securityId": 5, "action": "New", "side": "Sell"}
    order = [{"orderId": number, "quantity": 7} for number in range(orders)]
    entries = [{"price": price and Decimal(price), **entry, "orders": order} for price in prices]
    return {"transactTime": NS, "flags": ["LastTrade"], "entries": entries, "note": note}


def messages(schema: Schema, *values: tuple[str, dict[str, Any]]) -> pa.BinaryArray:
    return pa.array([schema[name].encode_one(each) for name, each in values], pa.binary())


def test_a_schema_lists_its_messages_and_shows_them_in_a_notebook(schema: Schema) -> None:
    assert list(schema) == ["Trade", "BookUpdate", "Instrument"]
    assert (schema.package, schema.id, schema.version, schema.semantic_version) == ("market", 71, 2, "1.2")
    assert "market" in repr(schema)
    assert "3 messages" in repr(schema)
    assert "<td>BookUpdate</td>" in schema._repr_html_()
    assert "decimal of int64" in schema["Trade"]._repr_html_()
    assert schema["Trade"].id == 1
    with pytest.raises(KeyError, match="no message 'Quote': it has Trade, BookUpdate, Instrument"):
        schema["Quote"]


def test_a_schema_that_breaks_a_rule_is_refused_with_line_and_element() -> None:
    broken = MARKET.read_text().replace('type="Side"', 'type="Sides"', 1)
    with pytest.raises(aeron.InvalidArgumentError, match=r"(?s)line \d+.*Sides"):
        Schema(text=broken)
    with pytest.raises(aeron.InvalidArgumentError, match="pass one of them"):
        Schema()


def test_messages_become_columns_of_the_types_of_their_fields(schema: Schema) -> None:
    table = schema["Trade"].to_arrow(messages(schema, ("Trade", trade(1)), ("Trade", trade(2, quantity=None))))
    assert table.schema.field("transactTime").type == pa.timestamp("ns", "UTC")
    assert table["transactTime"].cast(pa.int64()).to_pylist() == [NS, NS]
    assert table["tradeId"].to_pylist() == [1, 2]
    assert table["side"].type == pa.dictionary(pa.int32(), pa.string())
    assert table["price"].to_pylist() == [Decimal("123.45"), Decimal("123.45")]
    assert table["quantity"].to_pylist() == [10, None]
    assert table["expiry"].to_pylist()[0] == date(2026, 12, 18)
    assert table.schema == schema["Trade"].arrow_schema().with_metadata(table.schema.metadata)


def test_messages_of_other_templates_are_skipped_and_counted(schema: Schema) -> None:
    mixed = messages(schema, ("Trade", trade(1)), ("BookUpdate", book("1.5")), ("Trade", trade(3)))
    table = schema["Trade"].to_arrow(mixed)
    assert table["tradeId"].to_pylist() == [1, 3]
    assert table.schema.metadata[b"sbe.skipped"] == b"1"


def test_a_schema_makes_a_table_for_each_template_with_the_index_of_each_message(schema: Schema) -> None:
    mixed = messages(schema, ("Trade", trade(1)), ("BookUpdate", book("1.5", None)), ("Trade", trade(3)))
    tables = schema.to_arrow(mixed)
    assert list(tables) == ["Trade", "BookUpdate"]
    assert tables["Trade"]["message_index"].to_pylist() == [0, 2]
    assert tables["BookUpdate"]["message_index"].to_pylist() == [1]
    chunked = schema.to_arrow(pa.table({"value": pa.chunked_array([mixed, mixed])}))
    assert chunked["Trade"]["message_index"].to_pylist() == [0, 2, 3, 5]


def test_groups_are_lists_of_structures_or_rows(schema: Schema) -> None:
    books = messages(schema, ("BookUpdate", book("1.5", None, orders=2, note="é")), ("BookUpdate", book()))
    table = schema["BookUpdate"].to_arrow(books)
    first, second = table["entries"].to_pylist()
    assert [entry["price"] for entry in first] == [Decimal("1.5"), None]
    assert [order["orderId"] for order in first[0]["orders"]] == [0, 1]
    assert second == []
    assert table["note"].to_pylist() == ["é", ""]
    assert table["flags"].to_pylist() == [["LastTrade"], ["LastTrade"]]
    rows = schema["BookUpdate"].to_arrow(books, group="entries", columns=["note", "price"])
    assert rows.to_pylist() == [{"note": "é", "price": Decimal("1.5")}, {"note": "é", "price": None}]


def test_entries_of_a_nested_group_are_rows_with_the_columns_of_all_entries_around_them(schema: Schema) -> None:
    """13-34"""
    template = schema["BookUpdate"]
    books = messages(schema, ("BookUpdate", book("1.5", None, orders=2, note="a")), ("BookUpdate", book("2", orders=1)))
    rows = template.to_arrow(books, group="entries.orders", columns=["note", "price", "orderId"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("a", Decimal("1.5"), 0),
        ("a", Decimal("1.5"), 1),
        ("a", None, 0),
        ("a", None, 1),
        ("", Decimal(2), 0),
    ]
    assert template.to_arrow(books, group="BookUpdate.entries.orders", columns=rows.column_names).equals(rows)
    assert (
        template.arrow_schema(group="entries.orders").names
        == template.to_arrow(books, group="entries.orders").column_names
    )
    with pytest.raises(aeron.InvalidArgumentError, match=r"has no group 'orders': it has entries, entries\.orders"):
        template.to_arrow(books, group="orders")


def test_a_table_without_columns_has_the_number_of_rows(schema: Schema) -> None:
    trades = messages(schema, ("Trade", trade(1)), ("Trade", trade(2)))
    assert schema["Trade"].to_arrow(trades, columns=[]).num_rows == 2
    books = messages(schema, ("BookUpdate", book("1", "2", "3", orders=2)))
    assert schema["BookUpdate"].to_arrow(books, columns=[], group="entries").num_rows == 3
    assert schema["BookUpdate"].to_arrow(books, columns=[], group="entries.orders").num_rows == 6


def test_columns_are_selected_by_name_and_the_header_has_columns_too(schema: Schema) -> None:
    table = schema["Trade"].to_arrow(messages(schema, ("Trade", trade(1))), columns=["version", "symbol"])
    assert table.to_pylist() == [{"version": 2, "symbol": "ESZ6"}]
    with pytest.raises(aeron.InvalidArgumentError, match="column 'prise' does not exist; there are transactTime"):
        schema["Trade"].to_arrow(b"", columns=["prise"])
    with pytest.raises(aeron.InvalidArgumentError, match="column 'symbol' is there twice: name each column once"):
        schema["Trade"].to_arrow([], columns=["symbol", "version", "symbol"])


def test_a_malformed_message_is_an_error_with_its_index_or_dropped_and_counted(schema: Schema) -> None:
    good = schema["Trade"].encode_one(trade(1))
    late = good[:8] + b"\xff" * 8 + good[16:]
    mixed = pa.array([good, good[:-1], late, good], pa.binary())
    with pytest.raises(aeron.InvalidArgumentError, match="message 1: block length 48"):
        schema["Trade"].to_arrow(mixed)
    with pytest.raises(aeron.InvalidArgumentError, match=r"message 2: .*transactTime"):
        schema["Trade"].to_arrow(mixed.take(pa.array([0, 3, 2])))
    table = schema["Trade"].to_arrow(mixed, malformed="drop")
    assert (table.num_rows, table.schema.metadata[b"sbe.malformed"]) == (2, b"2")


@pytest.mark.parametrize("group", [None, "entries"])
def test_malformed_messages_can_be_kept_with_their_bytes(schema: Schema, group: str | None) -> None:
    """13-31. One is found by its length, and the other one by its values."""
    book = schema["BookUpdate"]
    entry = {"price": 1, "size": 1, "securityId": 5, "action": "New", "side": "Buy", "orders": []}
    good = book.encode_one({"transactTime": 7000, "flags": [], "entries": [entry, entry]})
    late = good[:8] + b"\xff" * 8 + good[16:]
    mixed = [late, good, good[:-1], schema["Trade"].encode_one(trade(1)), good, late]
    table = book.to_arrow(
        pa.array([b"12" + each for each in mixed], pa.binary()), group=group, malformed="keep", skip=2
    )
    sound = 2 if group else 1
    kept = [b"12" + late, *[None] * sound, b"12" + good[:-1], *[None] * sound, b"12" + late]
    assert table["_corrupt_record"].to_pylist() == kept
    assert [time is None for time in table["transactTime"].to_pylist()] == [row is not None for row in kept]
    assert table.schema.metadata[b"sbe.malformed"] == b"3"
    chosen = book.to_arrow(pa.array(mixed, pa.binary()), columns=["_corrupt_record", "flags"], malformed="keep")
    assert chosen.column_names == ["_corrupt_record", "flags"]
    # Without the time, its values are not looked at.
    assert chosen["_corrupt_record"].to_pylist() == [None, None, good[:-1], None, None]
    tables = schema.to_arrow(pa.array([*mixed, b"x"], pa.binary()), malformed="keep")
    assert tables["BookUpdate"]["message_index"].to_pylist() == [0, 1, 2, 4, 5]
    assert tables["Trade"]["_corrupt_record"].to_pylist() == [None]
    assert tables.malformed == 4
    with pytest.raises(aeron.ArgumentTypeError, match='malformed=True is not "fail", "drop" or "keep"'):
        book.to_arrow(good, malformed=True)  # type: ignore[arg-type]


KEPT = """
import resource
import pyarrow as pa
from aeron import InvalidArgumentError
from test_sbe_objects import message_of, schema_of

types = '<types><type name="wide" primitiveType="uint8" length="60000"/></types>'
wide = schema_of(types + '<message name="M" id="1"><field name="v" id="1" type="wide"/></message>')["M"]
lists = message_of('<group name="g" id="1"><field name="v" id="2" type="int64"/></group>')
long = lists.encode_one({"g": [{"v": 1}] * 30_000})
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
try:
    wide.to_arrow(pa.array([b""] * 100_000), malformed="keep")
except InvalidArgumentError as error:
    assert "100000 malformed rows without values would take more than 268435456 bytes" in str(error), error
assert lists.to_arrow(pa.array([long] + [b""] * 100_000), malformed="keep").num_rows == 100_001
"""


def test_rows_of_malformed_messages_take_bounded_memory() -> None:
    """13-31"""
    folder = Path(__file__).parent
    subprocess.run([sys.executable, "-c", KEPT], check=True, timeout=60, cwd=folder)


def test_a_field_of_the_name_of_another_column_hides_nothing() -> None:
    template = message_of(
        '<field name="_corrupt_record" id="1" type="int64"/><field name="message_index" id="2" type="int64"/>'
    )
    message = template.encode_one({"_corrupt_record": 1, "message_index": 7})
    with pytest.raises(aeron.InvalidArgumentError, match="cannot be kept: the message has a field '_corrupt_record'"):
        template.to_arrow(message, malformed="keep")
    tables = template.schema.to_arrow([message, message])
    assert tables["M"].to_pylist() == [
        {"message_index_": index, "_corrupt_record": 1, "message_index": 7} for index in range(2)
    ]


def test_bytes_are_one_message_and_may_begin_behind_other_bytes(schema: Schema) -> None:
    message = schema["Trade"].encode_one(trade(9))
    assert schema["Trade"].to_arrow(message)["tradeId"].to_pylist() == [9]
    assert schema["Trade"].to_arrow(b"12" + message, skip=2)["tradeId"].to_pylist() == [9]
    assert schema.decode(b"12" + message, skip=2).tradeId == 9  # type: ignore[attr-defined]


def test_the_batch_of_a_subscription_becomes_columns(schema: Schema) -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", 1001)
        subscription = client.add_subscription("aeron:ipc", 1001)
        publication.wait_connected(timeout=5)
        sent = schema["Trade"].encode([trade(number) for number in range(100)])
        assert publication.offer_arrow(sent, timeout=5) == 100
        received: list[int] = []
        for batch in subscription.batches(timeout=5):
            received += schema["Trade"].to_arrow(batch)["tradeId"].to_pylist()
            if len(received) == 100:
                break
    assert received == list(range(100))


def test_a_decoded_message_has_its_values_as_attributes(schema: Schema) -> None:
    decoded: Any = schema.decode(schema["Trade"].encode_one(trade(7)))
    assert decoded.template is schema["Trade"]
    assert (decoded.tradeId, decoded.side, decoded.price, decoded.venue) == (7, "Buy", Decimal("123.45"), None)
    assert decoded.transactTime == NS
    assert decoded.as_dict()["symbol"] == "ESZ6"
    nested: Any = schema.decode(schema["BookUpdate"].encode_one(book("1.5", orders=1, note="x")))
    assert nested.entries[0]["orders"] == [{"orderId": 0, "quantity": 7}]
    assert (nested.flags, nested.note) == (["LastTrade"], "x")
    with pytest.raises(aeron.InvalidArgumentError, match="is a BookUpdate, not a Trade"):
        schema["Trade"].decode(schema["BookUpdate"].encode_one(book()))


def test_a_value_of_an_enum_that_the_schema_does_not_know_is_null_its_number_or_refused(schema: Schema) -> None:
    message = bytearray(schema["Trade"].encode_one(trade(1)))
    message[8 + 12] = ord("X")
    table = schema["Trade"].to_arrow(message)
    assert (table["side"].to_pylist(), table.schema.metadata[b"sbe.unknown"]) == ([None], b"1")
    assert schema.decode(message).side == ord("X")  # type: ignore[attr-defined]
    with pytest.raises(aeron.InvalidArgumentError, match=r"'side' has the number .*, which the schema does not know"):
        schema["Trade"].to_arrow(message, refuse_unknown=True)


def test_tables_and_dicts_are_encoded_to_the_same_messages(schema: Schema) -> None:
    rows = [trade(1), trade(2, quantity=None, venue=3)]
    sent = schema["Trade"].encode(rows)
    table = schema["Trade"].to_arrow(sent)
    assert schema["Trade"].encode(table).equals(sent)
    assert schema["Trade"].encode(table.to_batches()[0]).equals(sent)
    books = schema["BookUpdate"].encode([book("1.5", None, orders=2, note="é"), book()])
    assert schema["BookUpdate"].encode(schema["BookUpdate"].to_arrow(books)).equals(books)


def test_a_table_with_a_wrong_column_is_refused_with_its_row(schema: Schema) -> None:
    table = schema["Trade"].to_arrow(schema["Trade"].encode([trade(1), trade(2)]))
    with pytest.raises(aeron.InvalidArgumentError, match=r"no element 'depth'.*: drop the column"):
        schema["Trade"].encode(table.append_column("depth", [[1, 2]]))
    with pytest.raises(aeron.InvalidArgumentError, match=r"message 1: .*tradeId"):
        schema["Trade"].encode(table.set_column(1, "tradeId", [pa.array([1, None], pa.uint32())]))
    with pytest.raises(aeron.ArgumentTypeError, match="messages are a int: pass a list of dicts"):
        schema["Trade"].encode(7)
    micros = table.set_column(0, "transactTime", table["transactTime"].cast(pa.timestamp("us", "UTC"), safe=False))
    decoded = schema["Trade"].to_arrow(schema["Trade"].encode(micros))
    assert decoded["transactTime"].cast(pa.int64()).to_pylist() == [NS // 1000 * 1000] * 2


def test_times_are_encoded_from_python_objects(schema: Schema) -> None:
    time = datetime(2026, 1, 31, 9, 30, 0, 5, tzinfo=UTC)
    message = schema["Trade"].encode_one(trade(1, transactTime=time))
    assert schema["Trade"].to_arrow(message)["transactTime"].cast(pa.timestamp("us", "UTC")).to_pylist() == [time]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"tradeId": None}, "tradeId"),
        ({"side": "Hold"}, "side"),
        ({"tradeId": 2**32}, "tradeId"),
        ({"symbol": "x" * 13}, "symbol"),
        ({"prise": 1}, "no element 'prise'"),
        ({"price": Decimal("1e-12")}, "price"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(
    schema: Schema, changed: dict[str, Any], text: str
) -> None:
    with pytest.raises(aeron.InvalidArgumentError, match=text):
        schema["Trade"].encode([trade(1, **changed)])


def test_the_length_of_a_message_is_known_before_it_is_encoded(schema: Schema) -> None:
    message = schema["BookUpdate"].encode_one(book("1", "2", note="ten bytes!"))
    assert schema["BookUpdate"].encoded_length(entries=2, note=10) == len(message)
    with pytest.raises(aeron.InvalidArgumentError, match="no group or data 'legs'"):
        schema["BookUpdate"].encoded_length(legs=2)
    buffer = bytearray(len(message) + 1)
    assert schema["BookUpdate"].write_to(buffer, **book("1", "2", note="ten bytes!")) == len(message)
    assert buffer == message + b"\0"
    with pytest.raises(aeron.InvalidArgumentError, match="does not fit 3 bytes"):
        schema["BookUpdate"].write_to(bytearray(3), **book())


def test_a_schema_can_be_pickled_with_its_included_files(tmp_path: Path) -> None:
    text = MARKET.read_text()
    begin, end = text.index("    <types>"), text.index("</types>") + len("</types>")
    (tmp_path / "types.xml").write_text(text[begin:end])
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="types.xml"/>'
    (tmp_path / "market.xml").write_text(text[:begin] + include + text[end:])
    schema = Schema(tmp_path / "market.xml")
    message = schema["Trade"].encode_one(trade(5))
    (tmp_path / "types.xml").unlink()
    copy = pickle.loads(pickle.dumps(schema))
    assert copy.decode(message) == schema.decode(message)
    (tmp_path / "outside.xml").write_text(text[:begin] + include.replace("types.xml", "../types.xml") + text[end:])
    with pytest.raises(aeron.InvalidArgumentError, match="not below the schema's folder"):
        Schema(tmp_path / "outside.xml")


def test_a_name_that_a_message_does_not_have_is_an_error_with_its_names(schema: Schema) -> None:
    decoded = schema.decode(schema["Trade"].encode_one(trade(1)))
    with pytest.raises(AttributeError, match="a Trade has no 'cost': it has transactTime, "):
        _ = decoded.cost
    assert copy.deepcopy(decoded) == decoded

"""Tests of `Template.to_numpy`: messages of fixed templates as structured arrays."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import aeron
from aeron.sbe import Schema, Template
from test_sbe_objects import message_of, one, schema_of

SCHEMA = Schema(Path(__file__).parent / "sbe" / "market.xml")
TRADE = SCHEMA["Trade"]
HEADER = 8


def trades(count: int) -> pa.Array:
    values = {"transactTime": 5, "side": "Buy", "price": Decimal("1.25"), "quantity": None, "symbol": "ESZ6"}
    return TRADE.encode([{**values, "tradeId": number, "expiry": 9} for number in range(count)])


def fields_of(*fields: tuple[str, str], **options: Any) -> Template:
    xml = "".join(
        f'<field name="v{id}" id="{id}" type="{type_}" {more}/>' for id, (type_, more) in enumerate(fields, 1)
    )
    return message_of(xml, **options)


def memory_of(array: pa.Array) -> tuple[int, int]:
    data = array.buffers()[-1]
    return data.address, data.address + data.size


def is_view_of(rows: np.ndarray[Any, Any], array: pa.Array) -> bool:
    first, end = memory_of(array)
    return first <= rows.ctypes.data < end


def test_a_row_has_the_fields_at_their_offsets_with_their_encodings() -> None:
    dtype = TRADE.dtype
    assert dtype.itemsize == TRADE.block_length
    described = {name: offset for depth, name, _, offset, *_ in TRADE._elements if offset is not None}
    assert {name: place[1] for name, place in (dtype.fields or {}).items()} == described
    rows = TRADE.to_numpy(trades(3))
    assert rows.dtype == dtype
    assert rows["tradeId"].tolist() == [0, 1, 2]
    assert rows["transactTime"].tolist() == [5, 5, 5]
    assert rows["side"].tolist() == [ord("B")] * 3
    assert rows["price"].tolist() == [1_250_000_000] * 3
    assert rows["quantity"].tolist() == [2**31 - 1] * 3
    assert rows["symbol"].tolist() == [b"ESZ6"] * 3


@pytest.mark.parametrize(
    ("type_", "more", "format_"),
    [
        ("uint8", "", "u1"),
        ("int64", "", "<i8"),
        ("double", "", "<f8"),
        ("char", "", "S1"),
        ("bytes4", "", "(4,)u1"),
        ("int16s", "", "(4,)<i2"),
        ("int64", 'semanticType="UTCTimestamp"', "<M8[ns]"),
        ("uint64", 'semanticType="UTCTimestamp"', "<u8"),
        ("int64", 'semanticType="UTCTimeOnly"', "<i8"),
        ("uint16", 'semanticType="LocalMktDate"', "<u2"),
    ],
)
def test_each_type_has_its_format(type_: str, more: str, format_: str) -> None:
    assert one(type_, more).dtype["v"] == np.dtype(format_)


def test_composites_enums_sets_and_texts_have_their_formats_in_the_byte_order_of_the_schema() -> None:
    types = """<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
    <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
    <type name="version" primitiveType="uint16"/></composite>
    <composite name="wire"><type name="mantissa" primitiveType="int32"/>
    <type name="exponent" primitiveType="int8"/></composite>
    <composite name="fixed"><type name="mantissa" primitiveType="int32"/>
    <type name="exponent" primitiveType="int8" presence="constant">-2</type></composite>
    <composite name="pair"><type name="x" primitiveType="int16"/>
    <type name="k" primitiveType="char" presence="constant">K</type>
    <type name="y" primitiveType="float" offset="4"/></composite>
    <composite name="moment"><type name="time" primitiveType="uint64"/>
    <type name="unit" primitiveType="uint8"/></composite>
    <enum name="Color" encodingType="uint16"><validValue name="Red">1</validValue></enum>
    <set name="Bits" encodingType="uint32"><choice name="A">3</choice></set>
    <type name="wide" primitiveType="uint8" length="4" characterEncoding="UTF-16"/>
    <type name="text" primitiveType="char" length="5"/>"""
    names = ("wire", "fixed", "pair", "Color", "Bits", "wide", "text")
    xml = "".join(f'<field name="{name}" id="{id}" type="{name}"/>' for id, name in enumerate(names, 1))
    xml += '<field name="moment" id="9" type="moment" semanticType="UTCTimestamp"/>'
    xml += '<field name="c" id="10" type="Color" presence="constant" valueRef="Color.Red"/>'
    root = f'<messageSchema id="7" version="3" byteOrder="bigEndian"><types>{types}</types>'
    template = Schema(text=f'{root}<message name="M" id="1">{xml}</message></messageSchema>')["M"]
    dtype = template.dtype
    assert dtype["wire"] == np.dtype({"names": ["mantissa", "exponent"], "formats": [">i4", "i1"], "itemsize": 5})
    assert dtype["fixed"] == np.dtype(">i4")
    assert dtype["pair"] == np.dtype({"names": ["x", "y"], "formats": [">i2", ">f4"], "offsets": [0, 4], "itemsize": 8})
    assert [dtype[name].str for name in ("Color", "Bits", "wide", "text")] == [">u2", ">u4", "|V4", "|S5"]
    assert dtype["moment"] == np.dtype({"names": ["time", "unit"], "formats": [">u8", "u1"], "itemsize": 9})
    values = {"wire": "1.5", "fixed": "1.5", "pair": {"x": 1, "y": 2.5}, "Color": "Red", "Bits": ["A"], "wide": "é"}
    message = template.encode_one({**values, "text": "abc", "moment": 7})
    (row,) = template.to_numpy(message)
    assert (row["wire"].tolist(), row["fixed"], row["pair"].tolist()) == ((15, -1), 150, (1, 2.5))
    assert (row["Color"], row["Bits"], row["text"], row["wide"].tobytes()) == (
        1,
        8,
        b"abc",
        "é".encode("utf-16-be") + b"\0\0",
    )
    assert row["moment"].tolist() == (7, 9)


def test_consecutive_messages_of_one_length_are_not_copied() -> None:
    array = trades(100)
    rows = TRADE.to_numpy(array)
    assert is_view_of(rows, array)
    assert rows.strides == (HEADER + TRADE.block_length,)
    assert not rows.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        rows["tradeId"] = 5
    length = HEADER + TRADE.block_length
    for same in (
        array.cast(pa.large_binary()),
        array.cast(pa.binary(length)),
        pa.record_batch({"payload": array}),
        pa.table({"value": array}),
        pa.chunked_array([array]),
    ):
        viewed = TRADE.to_numpy(same)
        assert viewed.strides == (length,)
        assert viewed.tolist() == rows.tolist()
    sliced = TRADE.to_numpy(array[10:20])
    assert is_view_of(sliced, array)
    assert sliced["tradeId"].tolist() == list(range(10, 20))
    sliced = TRADE.to_numpy(array.cast(pa.binary(length))[10:20])
    assert sliced["tradeId"].tolist() == list(range(10, 20))


def test_rows_stay_valid_without_the_messages() -> None:
    rows = TRADE.to_numpy(trades(1000))
    TRADE.to_numpy(trades(1000))
    assert rows["tradeId"].tolist() == list(range(1000))


def test_other_messages_are_copied_once_and_others_are_skipped() -> None:
    array = trades(3)
    other = SCHEMA["Instrument"].encode_one({"symbol": "A", "maturity": {"year": 2026}, "description": "x"})
    mixed = pa.array([array[0].as_py(), other, array[1].as_py() + b"more", array[2].as_py()], pa.binary())
    rows = TRADE.to_numpy(mixed)
    assert rows["tradeId"].tolist() == [0, 1, 2]
    assert rows.strides == (TRADE.block_length,)
    assert not rows.flags.writeable
    assert TRADE.to_numpy([array, mixed])["tradeId"].tolist() == [0, 1, 2, 0, 1, 2]
    assert TRADE.to_numpy(array.to_pylist())["tradeId"].tolist() == [0, 1, 2]
    assert TRADE.to_numpy(array[1].as_py())["tradeId"].tolist() == [1]
    skipped = pa.array([b"12" + message for message in array.to_pylist()], pa.binary())
    assert TRADE.to_numpy(skipped, skip=2)["tradeId"].tolist() == [0, 1, 2]
    assert is_view_of(TRADE.to_numpy(skipped, skip=2), skipped)
    for nothing in (pa.array([], pa.binary()), [], [other]):
        assert TRADE.to_numpy(nothing).tolist() == []
        assert TRADE.to_numpy(nothing).dtype == TRADE.dtype


def test_the_batch_of_a_subscription_becomes_rows() -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", 1001)
        subscription = client.add_subscription("aeron:ipc", 1001)
        publication.wait_connected(timeout=5)
        assert publication.offer_arrow(trades(100), timeout=5) == 100
        received: list[int] = []
        for batch in subscription.batches(timeout=5):
            received += TRADE.to_numpy(batch)["tradeId"].tolist()
            if len(received) == 100:
                break
    assert received == list(range(100))


def test_a_malformed_message_is_an_error_with_its_index_or_dropped() -> None:
    good = trades(2).to_pylist()
    for bad in (good[0][:-1], b"", good[0][:5], b"\x07" + good[0][1:]):
        mixed = pa.array([good[0], bad, good[1]], pa.binary())
        with pytest.raises(aeron.InvalidArgumentError, match=r"^message 1: "):
            TRADE.to_numpy(mixed)
        assert TRADE.to_numpy(mixed, malformed="drop")["tradeId"].tolist() == [0, 1]
    with pytest.raises(aeron.InvalidArgumentError, match=r"malformed='keep': .*: pass fail or drop"):
        TRADE.to_numpy(b"", malformed="keep")  # type: ignore[arg-type]
    with pytest.raises(aeron.InvalidArgumentError, match="a message is null"):
        TRADE.to_numpy(pa.array([good[0], None], pa.binary()))
    with pytest.raises(aeron.ArgumentTypeError, match="messages are bytes, not Int64"):
        TRADE.to_numpy(pa.array([1]))


def test_a_field_that_a_message_does_not_have_has_its_null_value() -> None:
    """13-33"""
    older = one("uint8")
    later = 'sinceVersion="2"'
    types = ("uint16", "int32", "double", "char", "bytes4", "int16s")
    xml = '<field name="v" id="1" type="uint8"/>'
    xml += "".join(f'<field name="{type_}" id="{id}" type="{type_}" {later}/>' for id, type_ in enumerate(types, 2))
    newer = message_of(xml)
    old = bytearray(older.encode_one({"v": 7}))
    old[6] = 1
    new = newer.encode_one(
        {"v": 8, "uint16": 1, "int32": 2, "double": 3.0, "char": "C", "bytes4": b"abcd", "int16s": [1] * 4}
    )
    # A message of version 1 does not have the fields either, if its block is as long as that of version 2.
    longer = new[:6] + b"\x01" + new[7:]
    rows = newer.to_numpy(pa.array([bytes(old), new, longer], pa.binary()))
    assert rows["v"].tolist() == [7, 8, 8]
    for missing in (rows[0], rows[2]):
        assert (missing["uint16"], missing["int32"], missing["char"]) == (65535, -(2**31), b"")
        assert np.isnan(missing["double"])
        assert (missing["bytes4"].tolist(), missing["int16s"].tolist()) == ([255] * 4, [-(2**15)] * 4)
    assert (rows[1]["uint16"], rows[1]["int16s"].tolist()) == (1, [1] * 4)
    assert newer.to_numpy(pa.array([longer] * 2, pa.binary()))["uint16"].tolist() == [65535] * 2


def test_a_message_of_a_newer_schema_has_the_known_fields() -> None:
    old = one("uint8")
    new = message_of('<field name="v" id="1" type="uint8"/><field name="w" id="2" type="uint8" sinceVersion="3"/>')
    messages = new.encode([{"v": 1, "w": 2}, {"v": 3, "w": 4}])
    assert old.to_numpy(messages)["v"].tolist() == [1, 3]


def test_templates_with_groups_or_data_are_refused() -> None:
    for read in (lambda: SCHEMA["BookUpdate"].dtype, lambda: SCHEMA["BookUpdate"].to_numpy(b"")):
        with pytest.raises(
            aeron.InvalidArgumentError,
            match=r"BookUpdate has groups or data without a fixed place \(entries, note\): use to_arrow",
        ):
            read()


def test_a_template_without_fields_has_rows_without_fields() -> None:
    template = schema_of('<message name="M" id="1"/>')["M"]
    assert len(template.to_numpy(template.encode([{}, {}]))) == 2
    assert template.dtype.names in ((), None)


def test_rows_and_columns_have_the_same_numbers() -> None:
    array = trades(50)
    rows, table = TRADE.to_numpy(array), TRADE.to_arrow(array)
    assert rows["tradeId"].tolist() == table["tradeId"].to_pylist()
    assert rows["transactTime"].tolist() == table["transactTime"].cast(pa.int64()).to_pylist()

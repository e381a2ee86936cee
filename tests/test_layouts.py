"""Tests of record layouts: fixed-length records in messages are compared with structured types of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeron import _aeron
from aeron.spark import AeronOptionError, AeronRecordError

TRADE = np.dtype([("ts", "<M8[ns]"), ("px", "<f8"), ("qty", "<i8"), ("side", "<i4"), ("sym", "S8")])
TRADE_LAYOUT = "ts ts_ns, px f64, qty i64, side i32, sym char[8]"

# Each field type of a layout, with the same type in numpy.
TYPES = {
    "i8": "i1",
    "i16": "i2",
    "i32": "i4",
    "i64": "i8",
    "u8": "u1",
    "u16": "u2",
    "u32": "u4",
    "u64": "u8",
    "f32": "f4",
    "f64": "f8",
    "bytes[1]": "V1",
    "bytes[7]": "V7",
    "ts_us": "i8",
    "ts_ns": "i8",
}
RECORDS = 20
NOT_A_TIME = np.iinfo("i8").min


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, np.dtype[np.void]]:
    """Draws a layout. Returns it and the numpy type of the same records."""
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=10))
    parts, formats, offsets, end = [], [], [], 0
    for number, kind in enumerate(kinds):
        order = draw(st.sampled_from(["", ">"]))
        end += draw(st.integers(0, 5))
        parts.append(f"@{end} f{number} {order}{kind}")
        formats.append(np.dtype((order or "<") + TYPES[kind]))
        offsets.append(end)
        end += formats[-1].itemsize
    end += draw(st.integers(0, 5))
    fields: Any = {
        "names": [f"f{number}" for number in range(len(kinds))],
        "formats": formats,
        "offsets": offsets,
        "itemsize": end,
    }
    return f"{', '.join(parts)}, ={end}", np.dtype(fields)


def expected_column(kind: str, values: np.ndarray) -> list[Any]:
    """Returns the expected values of the column for one field of the records."""
    if kind.startswith("ts_"):
        scale = 1000 if kind == "ts_ns" else 1
        return [None if value == NOT_A_TIME else value // scale for value in values.tolist()]
    if kind.startswith("bytes"):
        return [value.tobytes() for value in values]
    return values.tolist()


def shown(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()
    if pa.types.is_decimal(column.type):
        return [int(value) for value in column.to_pylist()]
    return column.to_pylist()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(layouts(), st.data())
def test_numpy_records_are_decoded_to_columns_and_encoded_to_the_same_records(
    layout_and_dtype: tuple[str, np.dtype[np.void]], data: st.DataObject
) -> None:
    """08-65, 08-61"""
    text, dtype = layout_and_dtype
    layout = _aeron.Layout(text)
    assert layout.record_length == dtype.itemsize
    size = RECORDS * dtype.itemsize
    records = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), dtype)
    batch = pa.record_batch(layout.decode(records))
    assert batch.schema == pa.schema(layout)
    for (name, kind, offset), column in zip(layout.fields, batch.columns, strict=True):
        assert dtype.fields is not None
        assert dtype.fields[name][1] == offset
        expected = expected_column(kind.lstrip(">"), records[name])
        np.testing.assert_equal(shown(column), expected)
    again = np.frombuffer(layout.encode(batch), dtype)
    for name, kind, _ in layout.fields:
        if kind.lstrip(">") == "ts_ns":
            times = records[name].astype("i8")
            rounded = np.where(times == NOT_A_TIME, times, times // 1000 * 1000)
            np.testing.assert_equal(again[name].astype("i8"), rounded)
        else:
            assert again[name].tobytes() == records[name].tobytes()


def test_columns_have_types_that_spark_accepts() -> None:
    schema = pa.schema(_aeron.Layout("a u8, b u16, c u32, d u64, e dec64:3, f ts_ms, g bool, h char[3], i bytes[2]"))
    assert schema.types == [
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.decimal128(20, 0),
        pa.decimal128(18, 3),
        pa.timestamp("us", "UTC"),
        pa.bool_(),
        pa.string(),
        pa.binary(),
    ]
    assert all(field.nullable for field in schema)


def test_trades_in_numpy_records_become_columns_with_the_same_values() -> None:
    trades = np.zeros(3, TRADE)
    trades["ts"] = ["2024-01-01T00:00:00.000001999", "1969-12-31T23:59:59.999999999", "1970-01-01"]
    trades["px"] = [1.5, np.nan, -np.inf]
    trades["sym"] = [b"EURUSD", b"", b"12345678"]
    layout = _aeron.Layout(TRADE_LAYOUT)
    batch = pa.record_batch(layout.decode(trades))
    assert batch["sym"].to_pylist() == ["EURUSD", "", "12345678"]
    assert batch["ts"].cast(pa.int64()).to_pylist() == [1_704_067_200_000_001, -1, 0]
    np.testing.assert_equal(batch["px"].to_pylist(), trades["px"].tolist())
    assert str(layout) == "@0 ts ts_ns, @8 px f64, @16 qty i64, @24 side i32, @28 sym char[8], =36"


def test_not_a_time_of_numpy_is_null_in_each_unit_and_null_is_written_as_not_a_time() -> None:
    """08-60"""
    dtype = np.dtype([("ms", "M8[ms]"), ("us", ">M8[us]"), ("ns", "M8[ns]")])
    times = np.array([("NaT",) * 3, ("2026-11-28",) * 3], dtype)
    layout = _aeron.Layout("ms ts_ms, us >ts_us, ns ts_ns")
    batch = pa.record_batch(layout.decode(times))
    for column in batch.columns:
        assert column.is_null().to_pylist() == [True, False]
        assert str(column[1].as_py()) == "2026-11-28 00:00:00+00:00"
    assert layout.encode(batch) == times.tobytes()


def test_the_error_for_an_invalid_layout_names_the_field_and_the_offset() -> None:
    """08-62"""
    with pytest.raises(AeronOptionError, match="option valueSchema: 'px' at offset 8: unknown type 'f65'"):
        _aeron.Layout("ts i64, px f65")


def test_values_that_do_not_match_the_layout_raise_record_errors() -> None:
    """08-63"""
    layout = _aeron.Layout("a bool, b u8")
    with pytest.raises(AeronRecordError, match="record 1: field 'a' at offset 0 is 9 instead of 0 or 1"):
        layout.decode(bytes([1, 1, 9, 1]))
    with pytest.raises(ValueError, match="3 bytes are no records of 2 bytes"):
        layout.decode(bytes(3))
    columns = [pa.array([True, False]), pa.array([1, -1], pa.int16())]
    with pytest.raises(AeronRecordError, match="row 1: column 'b' is -1, which is out of range for u8"):
        layout.encode(pa.record_batch(columns, ["a", "b"]))
    with pytest.raises(AeronRecordError, match="field 'b' has no column"):
        layout.encode(pa.record_batch(columns[:1], ["a"]))
    with pytest.raises(TypeError):
        layout.encode(columns[0])

"""Tests of ``aeron.spark.layout``, which returns the record layout of a numpy dtype."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pytest

import aeron.spark
from aeron.spark import AeronOptionError


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ([("ts", "<i8"), ("px", "<f8"), ("sym", "S8")], "ts i64, px f64, sym char[8]"),
        (
            [("a", "i1"), ("b", "u2"), ("c", "f4"), ("d", "?"), ("e", "V3")],
            "a i8, b u16, c f32, d bool, e bytes[3]",
        ),
        ([("a", ">i4"), ("b", "<i4"), ("c", ">f8")], "a >i32, b i32, c >f64"),
        ([("a", "M8[ms]"), ("b", "M8[us]"), ("c", ">M8[ns]")], "a ts_ms, b ts_us, c >ts_ns"),
        (np.dtype([("a", "u1"), ("b", "f8"), ("c", "u1")], align=True), "a u8, @8 b f64, c u8 =24"),
        (
            np.dtype({"names": ["b", "a"], "formats": ["i4", "i4"], "offsets": [8, 0], "itemsize": 12}),
            "@8 b i32, @0 a i32 =12",
        ),
    ],
)
def test_fields_offsets_and_length_of_a_dtype_become_a_layout(dtype: npt.DTypeLike, text: str) -> None:
    """08-61"""
    assert aeron.spark.layout(dtype) == text


@pytest.mark.parametrize("field", ["f2", "U4", "c8", "M8[s]", "M8[10ns]", "m8[ns]", ("i4", (3,)), [("x", "i4")]])
def test_the_error_for_a_field_that_no_layout_can_have_names_the_field(field: object) -> None:
    with pytest.raises(AeronOptionError, match="option valueSchema: field 'odd' is "):
        aeron.spark.layout([("fine", "i4"), ("odd", field)])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("dtype", "says"),
    [
        ([("bid price", "f8")], "field 'bid price' has a name with more than letters, digits and '_'; rename it"),
        ([("x i8, y", "i4")], "field 'x i8, y' has a name"),
        ([("1st", "i4")], "'1st' at offset 0: a name"),
        ([("a", "i4"), ("A", "i4")], "the name is there twice"),
        ([("a", "S0")], "'0' is not a number from 1"),
        ([("a", "V40000"), ("b", "V40000")], "a record has at most 65536 bytes"),
        (np.dtype({"names": ["a", "b"], "formats": ["i8", "i4"], "offsets": [0, 4]}), "'b' at offset 4: overlaps 'a'"),
    ],
)
def test_a_dtype_without_a_valid_layout_is_refused(dtype: npt.DTypeLike, says: str) -> None:
    with pytest.raises(AeronOptionError, match=f"^option valueSchema: .*{re.escape(says)}"):
        aeron.spark.layout(dtype)


def test_a_dtype_without_fields_is_refused() -> None:
    with pytest.raises(AeronOptionError, match="give a structured dtype"):
        aeron.spark.layout("i4")

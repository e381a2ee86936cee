"""Filters that Spark pushes down, as ranges of values. No Spark session is needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)
from pyspark.sql.types import StructType

from aeron.spark.batch_reader import AeronReader
from aeron.spark.options import read_options, shared_read_options
from aeron.spark.pushed_filters import row_filter

LOW, HIGH = -(2**63), 2**63 - 1


def at(column: str) -> tuple[str]:
    return (column,)


@pytest.mark.parametrize(
    ("filters", "column", "ranges"),
    [
        ([EqualTo(at("stream_id"), 7)], "stream_id", [(7, 7)]),
        ([In(at("stream_id"), (7, 9))], "stream_id", [(7, 7), (9, 9)]),
        ([GreaterThan(at("position"), 64)], "position", [(65, HIGH)]),
        ([GreaterThanOrEqual(at("position"), 64)], "position", [(64, HIGH)]),
        ([LessThan(at("position"), 64)], "position", [(LOW, 63)]),
        ([LessThanOrEqual(at("position"), 64)], "position", [(LOW, 64)]),
        ([GreaterThan(at("position"), 64), LessThan(at("position"), 96)], "position", [(65, 95)]),
        ([In(at("position"), (1, 5, 9)), GreaterThan(at("position"), 4)], "position", [(5, 5), (9, 9)]),
        ([EqualTo(at("session_id"), 1), EqualTo(at("session_id"), 2)], "session_id", []),
        (
            [LessThan(at("timestamp"), datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=-5))],
            "timestamp",
            [(LOW, -6)],
        ),
    ],
)
def test_comparisons_with_constants_become_ranges(
    filters: list[Filter], column: str, ranges: list[tuple[int, int]]
) -> None:
    """08-88"""
    found: Any = row_filter([*filters, IsNotNull(at(column)), EqualTo(at("value"), b"x")])
    assert found == {**dict.fromkeys(found), column: ranges}


@pytest.mark.parametrize(
    "filter",
    [
        Not(EqualTo(at("position"), 1)),
        IsNotNull(at("position")),
        EqualTo(at("value"), 7),
        EqualTo(("position", "x"), 7),
        EqualTo(at("position"), None),
        EqualTo(at("position"), True),
        EqualTo(at("position"), 1.5),
        GreaterThan(at("position"), 2**63 - 1),
        In(at("position"), (1, None)),
        EqualTo(at("timestamp"), 7),
        EqualTo(at("timestamp"), datetime(2026, 1, 1)),
    ],
)
def test_other_filters_restrict_nothing(filter: Filter) -> None:
    assert row_filter([filter]) is None


@pytest.mark.parametrize("column", ["recording_id", "stream_id", "session_id", "position"])
def test_a_filter_on_a_record_field_with_the_name_of_a_header_restricts_nothing(column: str) -> None:
    options = shared_read_options(
        {
            "archive.controlChannel": "aeron:ipc",
            "streamId": "1",
            "valueFormat": "struct",
            "valueSchema": f"{column.upper()} i64, price f64",
        }
    )
    reader = AeronReader(options, StructType())
    reader.pushFilters([EqualTo(at(column), 5)])
    assert reader._pushed.row_filter is None


def _readers() -> tuple[AeronReader, AeronReader]:
    """Returns a reader of a running archive, and a reader of a directory."""
    return (
        AeronReader(shared_read_options({"archive.controlChannel": "aeron:ipc"}), StructType()),
        AeronReader(read_options({"archiveDir": "/dev/shm/archive"}), StructType()),
    )


def test_spark_evaluates_all_filters_again_and_only_the_reader_of_a_running_archive_keeps_them_for_its_plan() -> None:
    filters: list[Filter] = [EqualTo(at("stream_id"), 7)]
    shared, directory = _readers()
    for reader in (shared, directory):
        assert list(reader.pushFilters(filters)) == filters
    assert shared._pushed.row_filter is not None
    assert directory._pushed.row_filter is None


def test_spark_accepts_the_readers_if_the_pushdown_of_filters_is_off() -> None:
    for reader in _readers():
        # If the pushdown is off, Spark compares these two functions, and refuses the reader if they differ.
        assert reader.pushFilters.__func__ is DataSourceReader.pushFilters

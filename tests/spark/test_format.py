"""Tests of the format in Spark: how Spark finds the format, and which options and schemas are refused before anything
is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

import aeron.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHANNEL = "aeron:ipc"


def error_of(act: Callable[[], Any]) -> str:
    """Returns the line with our error from the long text of Spark's error."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as failed:
        act()
    return next(line for line in str(failed.value).splitlines() if "AeronOptionError:" in line)


def live(spark: SparkSession, **options: str) -> Any:
    return spark.readStream.format("aeron").options(**{"channel": CHANNEL, "streamId": "1001", **options})


@pytest.mark.parametrize("name", ["aeron", "Aeron", "AERON"])
def test_spark_finds_an_installed_package_without_registration(spark: SparkSession, name: str) -> None:
    """08-1"""
    frame = live(spark.newSession()).format(name).load()
    assert frame.isStreaming
    assert frame.columns == ["value", "stream_id", "session_id", "position", "reserved_value", "timestamp"]


def test_sql_can_create_a_view_with_the_format(spark: SparkSession) -> None:
    """08-1"""
    spark.sql("CREATE TEMPORARY VIEW recordings USING aeron OPTIONS (archiveDir '/nonexistent')")
    assert spark.table("recordings").columns[0] == "value"


def test_a_session_may_register_the_format_repeatedly(spark: SparkSession) -> None:
    """08-1"""
    session = spark.newSession()
    for _ in range(2):
        aeron.spark.register(session)
    assert live(session).load().columns[0] == "value"


def test_the_schema_has_headers_and_string_payloads_if_the_options_ask_for_them(spark: SparkSession) -> None:
    """08-9"""
    frame = live(spark, includeHeaders="true", valueFormat="string").load()
    assert frame.schema["value"].dataType.simpleString() == "string"
    assert frame.columns[-1] == "flags"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"streamId": "many"}, "option streamId: 'many' is no id or range, got 'many'"),
        ({"chanel": "aeron:ipc"}, "option chanel: unknown, got 'aeron:ipc'; did you mean channel?"),
        (
            {"subscribe": "trades"},
            "option subscribe: refused, got 'trades'; an Aeron stream is named by channel and streamId",
        ),
        ({"channel": "aeron:udp?endpoint=localhost:99999"}, 'the port "99999" is not a number in range 0-65535'),
        (
            {"valueFormat": "struct", "valueSchema": "px f64, PX f64"},
            "option valueSchema: 'PX' at offset 8: the name is there twice",
        ),
        ({"channel": "aeron:udp?endpiont=x"}, "option channel: unknown parameter 'endpiont' at 10"),
        ({"startingOffsets": "earliest"}, "option startingOffsets: a live stream has no past, got 'earliest'"),
        ({"embeddedDriver": "true"}, "option embeddedDriver: an embedded driver cannot be reached by other processes"),
    ],
)
def test_wrong_options_are_refused_at_load_and_nothing_is_opened(
    spark: SparkSession, shared_memory: Path, options: dict[str, str], text: str
) -> None:
    """08-6"""
    live(spark).load()  # Spark has its planning worker now.
    before = children()
    assert text in error_of(lambda: live(spark, archiveDir=str(shared_memory / "archives"), **options).load())
    assert not list(shared_memory.iterdir())
    assert children() <= before


def children() -> set[int]:
    return {process.pid for process in psutil.Process(os.getpid()).children(recursive=True)}


def test_if_the_user_gives_a_schema_wrong_options_are_refused_when_the_query_is_planned(
    spark: SparkSession, tmp_path: Path
) -> None:
    """08-6"""
    frame = live(spark, streamId="x").schema("value BINARY").load()

    def run() -> None:
        query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination(120)

    text = error_of(run)
    assert "option streamId: 'x' is no id or range" in text
    assert "UnboundLocalError" not in text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("value BINARY, px DOUBLE", "column 'px' is not read by format aeron; it has value, stream_id"),
        ("value STRING", "column 'value' cannot be STRING; format aeron reads it as BINARY"),
    ],
)
def test_a_schema_with_unknown_columns_or_types_is_refused_when_the_query_is_planned(
    spark: SparkSession, tmp_path: Path, schema: str, text: str
) -> None:
    """08-9"""
    frame = live(spark).schema(schema).load()

    def run() -> None:
        query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination(120)

    refused = error_of(run)
    assert text in refused
    assert "UnboundLocalError" not in refused


@pytest.mark.parametrize("options", [{}, {"channel": CHANNEL, "streamId": "1001"}])
def test_the_error_for_a_batch_read_of_a_live_stream_names_the_alternatives(
    spark: SparkSession, options: dict[str, str]
) -> None:
    """08-58"""
    text = error_of(lambda: spark.read.format("aeron").options(**options).load().count())
    assert "spark.read reads recordings: give archive.controlChannel for a running archive, or archiveDir" in text
    assert "for a live stream use spark.readStream" in text
    assert '"aeron sub"' in text

"""Tests of the sink's checks of columns and options before a row is sent. No Spark session is needed."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark.sql.types import StructField, StructType, _parse_datatype_json_value

from aeron.spark import AeronOptionError, AeronSparkError
from aeron.spark.sink import AeronCommitMessage, AeronStreamWriter, AeronWriter, PublishedStream

OPTIONS = {"channel": "aeron:ipc", "streamid": "1"}
RECORDS = {**OPTIONS, "valueformat": "struct", "valueschema": "px f64, ts ts_us"}
COLUMNS = "select value [, stream_id] [, reserved_value], or set valueFormat=struct"
ROUTED = {"channel": "aeron:ipc"}
KEYED = {**OPTIONS, "reservedvalue": "dedup"}


def columns_of(text: str) -> StructType:
    """Returns a schema from a text with names and types. Spark's own parser of such texts needs the JVM."""
    fields = (column.split() for column in text.split(", "))
    types = {"int": "integer", "bigint": "long"}
    return StructType(
        [StructField(name, _parse_datatype_json_value(types.get(type_, type_))) for name, type_ in fields]
    )


@pytest.mark.parametrize(
    ("schema", "options", "text"),
    [
        ("value binary, px double", OPTIONS, f"column 'px' is not written by format aeron; {COLUMNS}"),
        ("stream_id int", OPTIONS, f"column 'value' is missing; {COLUMNS}"),
        (
            "value string, stream_id int, value string",
            OPTIONS,
            "column 'value' is twice in the DataFrame; name each column once",
        ),
        ("value bigint", OPTIONS, "column 'value' cannot be BIGINT; format aeron writes BINARY or STRING, cast it"),
        (
            "value string, stream_id bigint",
            OPTIONS,
            "column 'stream_id' cannot be BIGINT; format aeron writes INT, cast it",
        ),
        (
            "value string, reserved_value int",
            OPTIONS,
            "column 'reserved_value' cannot be INT; format aeron writes BIGINT, cast it",
        ),
        ("value string", ROUTED, "option streamId: missing; give a stream id like 1001, or a column stream_id (INT)"),
        (
            "value string",
            {**OPTIONS, "reservedvalue": "column"},
            "option reservedValue: needs a column reserved_value (BIGINT), got 'column'; add it",
        ),
        (
            "value string, reserved_value bigint",
            {**OPTIONS, "reservedvalue": "dedup"},
            "option reservedValue: excluded by the column reserved_value, got 'dedup'; use column, or drop the column",
        ),
        ("px double", RECORDS, "column 'ts' is missing; valueSchema is 'px f64, ts ts_us'"),
        (
            "px double, ts timestamp, n int",
            RECORDS,
            "column 'n' is not in valueSchema 'px f64, ts ts_us'; drop it, or add it to the layout",
        ),
        (
            "px float, ts timestamp",
            RECORDS,
            "column 'px' cannot be FLOAT; format aeron writes DOUBLE, cast it",
        ),
        (
            "stream_id int",
            {**RECORDS, "valueschema": "stream_id i32"},
            "option valueSchema: field 'stream_id' is a column that the sink reads itself; rename the field",
        ),
        (
            "value string",
            {**OPTIONS, "channel": "aeron-spy:aeron:udp?endpoint=localhost:40123"},
            "option channel: a spy only listens, got 'aeron-spy:aeron:udp?endpoint=localhost:40123'; write to ",
        ),
        ("px double", {**RECORDS, "valueschema": "px f99"}, "option valueSchema: 'px' at offset 0: "),
        ("value string", {**OPTIONS, "offertimeoutms": "0"}, "option offerTimeoutMs: too small, got '0'; "),
    ],
)
def test_columns_and_options_that_do_not_match_are_refused_by_name(
    schema: str, options: dict[str, str], text: str
) -> None:
    """08-68"""
    columns = columns_of(schema)
    for make in (lambda: AeronWriter(options, columns, False), lambda: AeronStreamWriter(options, columns)):
        with pytest.raises(AeronOptionError) as error:
            make()
        assert str(error.value).startswith(text)


def test_a_valid_schema_is_accepted_and_the_writer_can_be_pickled() -> None:
    """08-68"""
    for schema, options in [
        ("value binary", OPTIONS),
        ("stream_id int, value string, reserved_value bigint", ROUTED),
        ("ts timestamp, px double, stream_id int", {**RECORDS, "recordspermessage": "3"}),
    ]:
        for writer in (
            AeronWriter(options, columns_of(schema), False),
            AeronStreamWriter(options, columns_of(schema)),
        ):
            assert len(pickle.dumps(writer)) < 1000


def test_an_overwrite_is_refused_for_a_batch() -> None:
    """08-69"""
    with pytest.raises(AeronOptionError, match="what subscribers have read cannot be taken back"):
        AeronWriter(OPTIONS, columns_of("value string"), True)


def test_no_two_writers_have_the_same_time_in_their_keys() -> None:
    """08-76"""
    writers = [AeronWriter(KEYED, columns_of("value string"), False) for _ in range(5)]
    assert len({writer._second for writer in writers}) == 5


def test_the_error_names_the_file_if_the_time_of_a_write_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """08-76"""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    AeronWriter(KEYED, columns_of("value string"), False)
    [place] = tmp_path.iterdir()
    place.unlink()
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AeronSparkError, match=rf"^cannot note the time of this write in {place}: .*; remove it$"):
        AeronWriter(KEYED, columns_of("value string"), False)
    AeronWriter(OPTIONS, columns_of("value string"), False)  # without keys, no time is stored


def test_a_commit_checks_the_commit_messages_of_the_tasks_and_an_abort_logs_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """08-77"""
    writer = AeronStreamWriter(OPTIONS, columns_of("value string"))
    stream = PublishedStream(stream_id=1, session_id=-3, first_position=0, last_position=640, rows=10)
    message = AeronCommitMessage(partition=0, attempt=1, rows=10, messages=10, bytes=50, streams=(stream,))
    assert pickle.loads(pickle.dumps(message)) == message
    writer.commit([message], 7)
    with pytest.raises(Exception, match="batch 7 on aeron:ipc: 1 of 2 tasks did not say what they sent"):
        writer.commit([message, None], 7)
    wrong = AeronCommitMessage(partition=0, attempt=1, rows=11, messages=10, bytes=50, streams=(stream,))
    with pytest.raises(Exception, match="partition 0 counts 11 rows, its streams 10"):
        writer.commit([wrong], 7)
    writer.abort([message, None], 8)
    assert "batch 8 on aeron:ipc: aborted; 10 rows in 10 messages published by 1 of 2 tasks" in caplog.text

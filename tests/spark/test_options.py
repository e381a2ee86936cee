"""Tests of the options of ``format("aeron")``: each row of the table, and the error texts for wrong values. No Spark is
needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from tests.spark.option_page import OPTIONS_PAGE, options_table

from aeron.spark.errors import AeronOptionError
from aeron.spark.option_table import OPTIONS, Option, Use
from aeron.spark.options import (
    ReadOptions,
    ReadStreamOptions,
    RecordedWriteOptions,
    SharedReadOptions,
    SharedReadStreamOptions,
    WriteOptions,
    check_source,
    read_options,
    read_stream_options,
    recorded_write_options,
    shared_read_options,
    shared_read_stream_options,
    write_options,
)

LAYOUT = "ts ts_ns, px f64, qty i64"
STREAM = {"channel": "aeron:udp?endpoint=localhost:40123", "streamId": "1001"}
READ = {"archiveDir": "/dev/shm/archive"}
SHARED = {"archive.controlChannel": "aeron:udp?endpoint=localhost:8010"}
RECORDED = {**STREAM, **SHARED}


def parsed(use: Use, options: dict[str, str]) -> Any:
    """Parses options in the first form of `use`, together with the options that this form requires. Returns the typed
    values.
    """
    given = {key.lower() for key in options}
    forms: tuple[tuple[Use, dict[str, str], Callable[[dict[str, str]], Any]], ...] = (
        (Use.READ_STREAM, STREAM, read_stream_options),
        (Use.READ, READ, read_options),
        (Use.SHARED_READ_STREAM, SHARED, shared_read_stream_options),
        (Use.SHARED_READ, SHARED, shared_read_options),
        (Use.WRITE, {"channel": "aeron:ipc"}, lambda options: write_options(options, streaming=False)),
        (Use.RECORDED_WRITE_STREAM, RECORDED, recorded_write_options),
    )
    _, required, parse = next(form for form in forms if form[0] in use)
    return parse({**{key: value for key, value in required.items() if key.lower() not in given}, **options})


def lines() -> list[Any]:
    return [pytest.param(option, id=f"{option.name} of {option.use}") for option in OPTIONS]


def beside(option: Option) -> dict[str, str]:
    """Returns the other options that an option requires."""
    if option.name == "sbe.schemaText":
        return {"valueFormat": "sbe", "sbe.template": "Trade"}
    if option.name.startswith("sbe."):
        return {"valueFormat": "sbe", "sbe.schema": "tests/sbe/market.xml", "sbe.template": "Trade"}
    if option.name in {"valueFormat", "valueSchema", "recordsPerMessage"}:
        return {"valueFormat": "struct", "valueSchema": LAYOUT}
    return {}


@pytest.mark.parametrize("option", lines())
def test_a_valid_value_is_accepted_with_its_key_in_any_case_and_with_blanks_around_it(option: Option) -> None:
    """08-4"""
    others = {key: value for key, value in beside(option).items() if key != option.name}
    for key in (option.name, option.name.lower(), option.name.upper()):
        values = parsed(option.use, {**others, key: f"  {option.right}\t"})
        assert getattr(values, option.field) == option.parse(option.right)


@pytest.mark.parametrize("option", lines())
def test_a_wrong_value_is_refused_with_the_name_the_value_and_the_valid_values(option: Option) -> None:
    """08-4"""
    value, problem = option.wrong
    others = {key: text for key, text in beside(option).items() if key != option.name}
    with pytest.raises(AeronOptionError) as refused:
        parsed(option.use, {**others, option.name: value})
    text = str(refused.value)
    assert text.startswith(f"option {option.name}: {problem}"), text
    assert text.endswith(f", got '{value}'; {option.expected}"), text
    assert "\n" not in text


@pytest.mark.parametrize("option", [line for line in lines() if not line.values[0].required])
def test_an_option_without_a_value_has_its_default(option: Option) -> None:
    """08-4"""
    expected = None if option.default is None else option.parse(option.default)
    assert getattr(parsed(option.use, {}), option.field) == expected


@pytest.mark.parametrize("option", [line for line in lines() if line.values[0].required])
def test_the_error_names_each_missing_required_option(option: Option) -> None:
    with pytest.raises(AeronOptionError) as refused:
        if option.use is Use.READ:
            read_options({})
        elif Use.SHARED in option.use:
            shared_read_options({"streamId": "1001"})
        elif option.use is Use.RECORDED_WRITE_STREAM:
            recorded_write_options({key: value for key, value in RECORDED.items() if key != option.name})
        elif Use.READ_STREAM in option.use:
            read_stream_options({key: value for key, value in STREAM.items() if key != option.name})
        else:
            write_options({}, streaming=False)
    assert option.name in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "use"),
    [
        (ReadStreamOptions, Use.READ_STREAM),
        (ReadOptions, Use.READ),
        (SharedReadStreamOptions, Use.SHARED_READ_STREAM),
        (SharedReadOptions, Use.SHARED_READ),
        (WriteOptions, Use.WRITE),
        (RecordedWriteOptions, Use.RECORDED_WRITE_STREAM),
    ],
)
def test_typed_values_have_an_attribute_for_each_line_of_the_table(kind: type, use: Use) -> None:
    assert {field.name for field in fields(kind)} == {option.field for option in OPTIONS if use in option.use}


def test_no_two_lines_of_the_table_are_for_the_same_option_and_use() -> None:
    for option in OPTIONS:
        for other in OPTIONS:
            assert option is other or option.name != other.name or not option.use & other.use


def test_the_documentation_has_the_table_of_options() -> None:
    page = OPTIONS_PAGE.read_text()
    assert options_table() in page, "run: python -m tests.spark.option_page"


@pytest.mark.parametrize(
    ("key", "nearest"), [("chanel", "channel"), ("streamid2", "streamId"), ("maxRowsPerTriger", "maxRowsPerTrigger")]
)
def test_an_unknown_option_is_refused_with_the_nearest_known_one(key: str, nearest: str) -> None:
    """08-5"""
    with pytest.raises(AeronOptionError, match=rf"option {key}: unknown, got '1'; did you mean {nearest}"):
        read_stream_options({**STREAM, key: "1"})


def test_an_unknown_option_is_refused_with_the_existing_names() -> None:
    """08-5"""
    with pytest.raises(AeronOptionError, match=r"^option xyzQ: unknown, got '1'; readStream has channel, streamId, "):
        read_stream_options({**STREAM, "xyzQ": "1"})


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("subscribe", "use streamId"),
        ("subscribePattern", "use streamId"),
        ("assign", "use streamId"),
        ("topic", "use streamId"),
        ("startingTimestamp", "no index by time"),
        ("startingOffsetsByTimestamp", "no index by time"),
        ("minOffsetsPerTrigger", r"use \.trigger\(processingTime"),
        ("groupIdPrefix", "no consumer groups"),
        ("kafka.bootstrap.servers", "no broker: give channel, streamId"),
        ("kafka.group.id", "no broker"),
    ],
)
def test_option_names_of_kafka_get_a_hint_in_any_case(key: str, instead: str) -> None:
    for typed in (key, key.lower()):
        with pytest.raises(AeronOptionError, match=rf"^option {key}: refused, got 'trades'; .*{instead}"):
            read_stream_options({**STREAM, typed: "trades"})


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("startingTimestamp", "use startingOffsets with a time like 2026"),
        ("startingOffsetsByTimestamp", "use startingOffsets with a time like 2026"),
        ("endingTimestamp", "use endingOffsets of spark.read with a time like 2026"),
        ("endingOffsetsByTimestamp", "use endingOffsets of spark.read with a time like 2026"),
        ("startingOffsetsByTimestampStrategy", "leave the strategy out"),
        ("subscribe", "use streamId"),
    ],
)
def test_time_options_of_kafka_name_the_option_of_a_running_archive(key: str, instead: str) -> None:
    """08-90"""
    for check in (shared_read_stream_options, shared_read_options):
        with pytest.raises(AeronOptionError, match=rf"^option {key}: refused, got '0'; .*{instead}"):
            check({"archive.controlChannel": "aeron:ipc", key: "0"})


@pytest.mark.parametrize("key", ["archive.dir", "endingOffsets", "recordingId"])
def test_errors_for_options_of_a_running_archive_say_that_they_need_its_channel(key: str) -> None:
    """08-5"""
    with pytest.raises(AeronOptionError, match=rf"option {key}: only for a running archive, .*archive\.controlChannel"):
        read_stream_options({**STREAM, key: "1"})


def test_the_recordings_of_a_running_archive_are_selected_by_ids_or_by_stream() -> None:
    channel = {"archive.controlChannel": "aeron:ipc"}
    assert shared_read_options({**channel, "recordingId": "3-7"}).recording_id == ((3, 7),)
    with pytest.raises(AeronOptionError, match="option recordingId: given with channel or streamId"):
        shared_read_options({**channel, "recordingId": "3", "streamId": "1"})


def test_the_forms_with_an_archive_are_named_if_an_option_is_only_for_them() -> None:
    with pytest.raises(AeronOptionError, match=r"only for a running archive, got '31'; give archive\.controlChannel"):
        write_options({**STREAM, "archive.stagingStreamId": "31"}, streaming=True)
    with pytest.raises(
        AeronOptionError, match=r"not for write, got 'aeron:ipc'; it is for .*writeStream to an archive"
    ):
        write_options({**STREAM, "archive.controlChannel": "aeron:ipc"}, streaming=False)
    with pytest.raises(AeronOptionError, match=r"option drain: not for writeStream to an archive, got 'true'"):
        recorded_write_options({**RECORDED, "drain": "true"})


def test_a_time_as_a_position_needs_a_time_zone() -> None:
    options = {**SHARED, "startingOffsets": "2026-01-31T09:30:00.5+01:00", "endingOffsets": "1970-01-01T00:00:00Z"}
    parsed = shared_read_options(options)
    assert (parsed.starting_offsets, parsed.ending_offsets) == ("@1769848200500000", "@0")
    for text, problem in (("2026-01-31T09:30", "a time without a time zone"), ("2026-02-31", "not a time")):
        with pytest.raises(AeronOptionError, match=f"option endingOffsets: {problem}, got '{text}'; expected latest"):
            shared_read_options({**SHARED, "endingOffsets": text})


def test_options_of_a_running_archive_are_checked_before_the_kind_of_read_is_known() -> None:
    assert isinstance(check_source(SHARED), SharedReadStreamOptions)
    assert isinstance(check_source({**SHARED, "endingOffsets": "latest"}), SharedReadOptions)
    with pytest.raises(AeronOptionError, match=r"option archiveDir: not for readStream of an archive"):
        check_source({**SHARED, "archiveDir": "/dev/shm/x"})


def test_credentials_are_in_no_representation_and_in_no_error() -> None:
    options = shared_read_options({**SHARED, "archive.credentials": "ann:pass"})
    assert options.archive_credentials is not None
    assert options.archive_credentials.text == "ann:pass"
    assert "ann:pass" not in repr(options)
    with pytest.raises(AeronOptionError, match=r"got '\(redacted\)'; did you mean archive\.credentials") as refused:
        shared_read_options({**SHARED, "archive.credential": "ann:pass"})
    assert "ann:pass" not in str(refused.value)


def test_an_embedded_driver_can_reach_an_archive_only_over_udp() -> None:
    with pytest.raises(AeronOptionError, match=r"use aeron:udp as archive\.controlChannel"):
        shared_read_options({**SHARED, "archive.controlChannel": "aeron:ipc", "embeddedDriver": "true"})


def test_options_of_other_formats_are_refused_with_their_replacement() -> None:
    """08-5"""
    with pytest.raises(AeronOptionError, match="use maxRowsPerTrigger"):
        read_stream_options({**STREAM, "maxOffsetsPerTrigger": "5"})
    with pytest.raises(AeronOptionError, match="format aeron has no path"):
        write_options({**STREAM, "path": "/tmp/x"}, streaming=False)


def test_the_error_for_an_option_of_another_use_names_that_use() -> None:
    with pytest.raises(AeronOptionError, match=r"option drain: not for readStream, got 'true'; it is for write$"):
        read_stream_options({**STREAM, "drain": "true"})


def test_options_that_spark_adds_are_ignored() -> None:
    assert write_options({**STREAM, "checkpointLocation": "/tmp/x"}, streaming=True).stream_id == 1001


@pytest.mark.parametrize(
    ("channel", "problem"),
    [
        ("aeron:udp?endpoint=localhost:40123|endpiont=x", "unknown parameter 'endpiont' at 35"),
        ("aeron:udp", "invalid URI scheme or transport: aeron:udp"),
        ("aeron:ipc?mtu", "invalid end of key"),
        ("aeron:ipc?term-length=100", "term length less than min length of 65536"),
        ("aeron:udp?mtu=1408", "URIs for UDP must specify endpoint"),
        ("ipc", "invalid URI scheme or transport: ipc"),
        (
            "aeron:udp?endpoint=localhost:99999",
            'endpoint=localhost:99999: the port "99999" is not a number in range 0-65535',
        ),
        ("aeron:udp?endpoint=[::1]:65536", 'endpoint=[::1]:65536: the port "65536" is not a number'),
        ("aeron:udp?endpoint=localhost:http", 'endpoint=localhost:http: the port "http" is not a number'),
        ("aeron:udp?control=localhost:70000|control-mode=dynamic", 'control=localhost:70000: the port "70000" is not'),
    ],
)
def test_a_channel_is_checked_by_the_parser_of_aeron(channel: str, problem: str) -> None:
    """08-7"""
    with pytest.raises(AeronOptionError, match=re.escape(f"option channel: {problem}")):
        read_stream_options({**STREAM, "channel": channel})


@pytest.mark.parametrize(
    "channel",
    [
        "aeron:udp?endpoint=localhost:0",
        "aeron:udp?endpoint=[::1]:65535",
        "aeron:udp?endpoint=a-name-of-a-resolver",
        "aeron:udp?endpoint=[fe80::1]",
    ],
)
def test_an_address_is_accepted_with_any_valid_port_or_without_a_port(channel: str) -> None:
    assert read_stream_options({**STREAM, "channel": channel}).channel == channel


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1001", (1001,)),
        ("1001,1003-1006", (1001, 1003, 1004, 1005, 1006)),
        ("5, 5, 4-6", (4, 5, 6)),
        ("-3--1", (-3, -2, -1)),
        ("0-1023", tuple(range(1024))),
    ],
)
def test_stream_ids_are_parsed_as_a_set_of_numbers_and_ranges(text: str, ids: tuple[int, ...]) -> None:
    """08-8"""
    assert read_stream_options({**STREAM, "streamId": text}).stream_id == ids


@pytest.mark.parametrize(
    "text", ["", "a", "1-", "3-1", "2147483648", "0-1024", "0-1000,2000-2100", "1,,2", "0-2147483647"]
)
def test_wrong_stream_ids_are_refused(text: str) -> None:
    """08-8"""
    with pytest.raises(AeronOptionError, match=r"option streamId: .*expected stream ids like 1001 or 1001-1004"):
        read_stream_options({**STREAM, "streamId": text})


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:ipc?term-length=64k", "aeron-spy:aeron:udp?endpoint=a:1"])
def test_an_embedded_driver_is_refused_for_streams_from_other_drivers(channel: str) -> None:
    """08-11"""
    with pytest.raises(
        AeronOptionError, match="an embedded driver cannot be reached by other processes over aeron:ipc"
    ):
        read_stream_options({**STREAM, "channel": channel, "embeddedDriver": "true"})


def test_a_directory_is_refused_for_an_embedded_driver() -> None:
    with pytest.raises(AeronOptionError, match=r"option aeron\.dir: given with embeddedDriver=true, got '/dev/shm/x'"):
        read_stream_options({**STREAM, "aeron.dir": "/dev/shm/x", "embeddedDriver": "true"})


def test_the_error_for_a_batch_read_without_a_directory_names_the_alternatives() -> None:
    """08-58"""
    for options in ({}, {"channel": "aeron:ipc"}, {"channel": "aeron:ipc", **READ}):
        with pytest.raises(AeronOptionError) as refused:
            read_options(options)
        assert str(refused.value) == (
            "spark.read reads recordings: give archive.controlChannel for a running archive, or archiveDir for a "
            'directory; for a live stream use spark.readStream, or "aeron sub" to look at it'
        )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"valueFormat": "struct"}, "option valueSchema: missing; valueFormat=struct needs a layout"),
        ({"valueSchema": LAYOUT}, "option valueSchema: given with valueFormat=binary"),
        ({"recordsPerMessage": "many"}, "option recordsPerMessage: given with valueFormat=binary"),
    ],
)
def test_options_of_records_need_a_record_layout(options: dict[str, str], problem: str) -> None:
    with pytest.raises(AeronOptionError, match=re.escape(problem)):
        read_stream_options({**STREAM, **options})

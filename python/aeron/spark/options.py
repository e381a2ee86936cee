"""The values of the options of ``format("aeron")``, checked.

Spark passes options as texts, with keys in upper or lower case. :func:`read_stream_options`, :func:`read_options` and
:func:`write_options` check all options without opening anything, and return typed values. The first wrong option raises
an :class:`~aeron.spark.errors.AeronOptionError`, which names the option, the value and the valid values.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from aeron import ChannelUriBuilder
from aeron.spark import option_values
from aeron.spark.errors import AeronOptionError
from aeron.spark.option_table import CONTROL_CHANNEL, OPTIONS, Option, Use

__all__ = [
    "ArchiveOptions",
    "ClientOptions",
    "ReadOptions",
    "ReadStreamOptions",
    "RecordedWriteOptions",
    "SharedOptions",
    "SharedReadOptions",
    "SharedReadStreamOptions",
    "SinkOptions",
    "SourceOptions",
    "WriteOptions",
    "check_source",
    "is_shared",
    "read_options",
    "read_stream_options",
    "recorded_write_options",
    "shared_read_options",
    "shared_read_stream_options",
    "write_options",
]

READ_NEEDS_DIRECTORY = (
    "spark.read reads recordings: give archive.controlChannel for a running archive, or archiveDir for a directory; "
    'for a live stream use spark.readStream, or "aeron sub" to look at it'
)


_NO_TIMES = "a live stream has no past and no index by time: leave it out, and filter by the column timestamp"

_STREAM_INSTEAD = "an Aeron stream is named by channel and streamId: use streamId, with several ids like 1001,1003-1006"

_FOREIGN = {
    "path": "format aeron has no path; give channel, or archiveDir to spark.read",
    "maxOffsetsPerTrigger": "use maxRowsPerTrigger (offsets are byte positions in Aeron)",
    "minOffsetsPerTrigger": "a batch has the data that came; for fewer, larger ones use .trigger(processingTime=..)",
    "maxTriggerDelay": "a batch has the data that came; for fewer, larger ones use .trigger(processingTime=..)",
    "subscribe": _STREAM_INSTEAD,
    "subscribePattern": _STREAM_INSTEAD,
    "assign": _STREAM_INSTEAD,
    "topic": "an Aeron stream is named by channel and streamId: use streamId, or a column stream_id to write many",
    "startingTimestamp": _NO_TIMES,
    "endingTimestamp": _NO_TIMES,
    "startingOffsetsByTimestamp": _NO_TIMES,
    "endingOffsetsByTimestamp": _NO_TIMES,
    "startingOffsetsByTimestampStrategy": _NO_TIMES,
    "groupIdPrefix": "Aeron has no consumer groups: every query gets the whole stream, its checkpoint has its position",
    "bootstrap.servers": "Aeron has no broker: give channel, streamId, and the media driver's directory by aeron.dir",
}
"""Options of other formats or of later versions, each with a text that says what to use instead."""

_REFUSED = {name.lower(): (name, instead) for name, instead in _FOREIGN.items()}

_START_TIME = (
    "an archive finds messages by their time of arrival: use startingOffsets with a time like 2026-01-31T09:30:00Z, "
    "which holds for all recordings, or with positions by recording id"
)
_END_TIME = "use endingOffsets of spark.read with a time like 2026-01-31T09:30:00Z; a streaming query has no end"
_NO_STRATEGY = (
    "startingOffsets with a time after the last message starts at the end of the recording: leave the strategy out"
)
_TIMES_OF_ARCHIVE = {
    "startingtimestamp": _START_TIME,
    "startingoffsetsbytimestamp": _START_TIME,
    "startingoffsetsbytimestampstrategy": _NO_STRATEGY,
    "endingtimestamp": _END_TIME,
    "endingoffsetsbytimestamp": _END_TIME,
}
"""Options of Kafka with times, each with a text that says what to use instead with a running archive."""

_ALIKE = 0.7
"""Minimum similarity, from 0 to 1, of a known name that is suggested for an unknown name."""

_SPARKS_OWN = {
    "checkpointlocation",
    "asyncprogresstrackingenabled",
    "asyncprogresstrackingcheckpointintervalms",
    "queryname",
}
"""Options of a streaming query that Spark reads itself and also passes to the format."""


# ---- typed values ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClientOptions:
    """Checked options that all forms of reading and writing have."""

    aeron_dir: str | None
    aeron_driver_timeout: int | None
    aeron_client_name: str | None
    aeron_client_resource_linger_duration: int | None
    aeron_client_idle_sleep_duration: int | None
    aeron_pre_touch_mapped_memory: bool
    value_format: str
    value_schema: str | None
    sbe_schema: option_values.SbeSchemaText | None
    sbe_schema_text: option_values.SbeSchemaText | None
    sbe_template: str | None
    sbe_timestamps: tuple[tuple[str, str], ...] | None
    sbe_decimals: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True)
class SourceOptions(ClientOptions):
    """Checked options that all forms of a source have."""

    min_partitions: int | None
    max_rows_per_partition: int | None
    include_headers: bool
    sbe_group: str | None
    sbe_decimal_scale: int | None
    sbe_sets: str
    sbe_enums: str
    sbe_unknown_enums: str
    mode: str
    verify_checksums: bool
    records_per_message: str | None


@dataclass(frozen=True)
class ReadStreamOptions(SourceOptions):
    """Checked options of ``spark.readStream``. Sizes are in bytes. Durations are in ns, or in ms with the suffix
    ``_ms``."""

    channel: str
    stream_id: tuple[int, ...]
    embedded_driver: bool
    starting_offsets: str
    max_rows_per_trigger: int | None
    max_bytes_per_trigger: int | None
    fail_on_data_loss: bool
    max_retained_bytes: int
    archive_dir: str | None


@dataclass(frozen=True)
class ReadOptions(SourceOptions):
    """Checked options of ``spark.read``."""

    archive_dir: str
    stream_id: tuple[int, ...] | None
    recording_id: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True)
class ArchiveOptions(ClientOptions):
    """Checked options that all forms with a running archive have."""

    archive_control_channel: str
    archive_control_stream_id: int
    archive_response_channel: str | None
    archive_response_stream_id: int
    archive_replay_channel: str | None
    archive_replay_stream_id: int
    archive_credentials: option_values.Credentials | None
    archive_message_timeout_ms: int


@dataclass(frozen=True)
class SharedOptions(SourceOptions, ArchiveOptions):
    """Checked options that both forms of reading from a running archive have."""

    archive_dir: str | None
    channel: str | None
    stream_id: tuple[int, ...] | None
    recording_id: tuple[tuple[int, int], ...] | None
    embedded_driver: bool
    starting_offsets: str


@dataclass(frozen=True)
class SharedReadStreamOptions(SharedOptions):
    """Checked options of ``spark.readStream`` for a running archive."""

    max_rows_per_trigger: int | None
    max_bytes_per_trigger: int | None
    fail_on_data_loss: bool
    archive_reader: str | None
    archive_reader_max_age_ms: int | None


@dataclass(frozen=True)
class SharedReadOptions(SharedOptions):
    """Checked options of ``spark.read`` for a running archive."""

    ending_offsets: str


@dataclass(frozen=True)
class SinkOptions(ClientOptions):
    """Checked options that all forms of a sink have."""

    channel: str
    stream_id: int | None
    records_per_message: int | None
    connect_timeout_ms: int
    offer_timeout_ms: int
    reserved_value: str | None


@dataclass(frozen=True)
class WriteOptions(SinkOptions):
    """Checked options of ``df.write`` and ``df.writeStream``. For ``df.writeStream``, `drain` is always ``False``."""

    drain: bool


@dataclass(frozen=True)
class RecordedWriteOptions(SinkOptions, ArchiveOptions):
    """Checked options of ``df.writeStream`` to a running archive."""

    stream_id: int
    archive_staging_stream_id: int


def read_stream_options(options: Mapping[str, str]) -> ReadStreamOptions:
    """Checks and returns the options of ``spark.readStream``.

    Raises :class:`~aeron.spark.errors.AeronOptionError` for the first wrong option.
    """
    values = _typed(ReadStreamOptions, _parsed(options, Use.READ_STREAM))
    if values.embedded_driver:
        _check_embedded("channel", values.channel, values.aeron_dir)
    return values


def is_shared(options: Mapping[str, str]) -> bool:
    """Returns whether the options are for the recordings of a running archive."""
    return CONTROL_CHANNEL.lower() in {key.lower() for key in options}


def shared_read_stream_options(options: Mapping[str, str]) -> SharedReadStreamOptions:
    """Checks and returns the options of ``spark.readStream`` for a running archive.

    Raises the same errors as :func:`read_stream_options`.
    """
    return _check_shared(_typed(SharedReadStreamOptions, _parsed(options, Use.SHARED_READ_STREAM)))


def shared_read_options(options: Mapping[str, str]) -> SharedReadOptions:
    """Checks and returns the options of ``spark.read`` for a running archive.

    Raises the same errors as :func:`read_stream_options`.
    """
    return _check_shared(_typed(SharedReadOptions, _parsed(options, Use.SHARED_READ)))


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Checks and returns the options of ``spark.read``. Raises the same errors as :func:`read_stream_options`."""
    given = {key.lower() for key in options}
    if "archivedir" not in given or "channel" in given:
        raise AeronOptionError(READ_NEEDS_DIRECTORY)
    return _typed(ReadOptions, _parsed(options, Use.READ))


def write_options(options: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """Checks and returns the options of ``df.write``, or with `streaming` of ``df.writeStream``.

    Raises the same errors as :func:`read_stream_options`.
    """
    parsed = _parsed(options, Use.WRITE_STREAM if streaming else Use.WRITE)
    return _check_no_spy(_typed(WriteOptions, {"drain": False, **parsed}))


def recorded_write_options(options: Mapping[str, str]) -> RecordedWriteOptions:
    """Checks and returns the options of ``df.writeStream`` to a running archive.

    Raises the same errors as :func:`read_stream_options`.
    """
    values = _check_no_spy(_typed(RecordedWriteOptions, _parsed(options, Use.RECORDED_WRITE_STREAM)))
    if values.archive_staging_stream_id == values.stream_id:
        raise AeronOptionError(
            f"option archive.stagingStreamId: the same as streamId, got '{values.stream_id}'; rows that are not "
            "committed need a stream of their own"
        )
    for parameter in ("session-id", "alias"):
        if (value := ChannelUriBuilder.parse(values.channel).get(parameter)) is not None:
            raise AeronOptionError(
                f"option channel: the sink sets {parameter} itself for a recorded stream, got '{value}'; leave it out"
            )
    return values


W = TypeVar("W", bound="SinkOptions")


def _check_no_spy(values: W) -> W:
    if ChannelUriBuilder.parse(values.channel).build().startswith("aeron-spy:"):
        raise AeronOptionError(
            f"option channel: a spy only listens, got '{values.channel}'; write to the channel without aeron-spy:"
        )
    return values


def check_source(options: Mapping[str, str]) -> SourceOptions:
    """Returns the options that ``read`` and ``readStream`` share. At the time of this call it is not known which of the
    two is used.

    Raises :class:`~aeron.spark.errors.AeronOptionError` for an option that is wrong in both forms.
    """
    given = {key.lower() for key in options}
    if is_shared(options):
        return shared_read_options(options) if "endingoffsets" in given else shared_read_stream_options(options)
    if "archivedir" in given and "channel" not in given:
        return read_options(options)
    if "channel" in given:
        return read_stream_options(options)
    raise AeronOptionError(
        "option channel: missing; give spark.readStream channel and streamId. " + READ_NEEDS_DIRECTORY
    )


T = TypeVar("T", bound=ClientOptions)


def _typed(kind: type[T], values: Mapping[str, Any]) -> T:
    _check_together(values)
    return kind(**{field.name: values[field.name] for field in fields(kind)})


def _parsed(options: Mapping[str, str], use: Use) -> dict[str, Any]:
    table = {option.name.lower(): option for option in OPTIONS if use in option.use}
    for name, value in options.items():
        if name.lower() not in table and name.lower() not in _SPARKS_OWN:
            raise _unknown(name, str(value).strip(), table, use)
    given = {key.lower(): str(value).strip() for key, value in options.items()}
    return {option.field: _value(option, given.get(key)) for key, option in table.items()}


def _value(option: Option, text: str | None) -> Any:
    if text is None:
        if option.required:
            raise AeronOptionError(f"option {option.name}: missing; {option.expected}")
        return None if option.default is None else option.parse(option.default)
    try:
        return option.parse(text)
    except ValueError as error:
        shown = _REDACTED if option.is_secret and text else text
        raise AeronOptionError(f"option {option.name}: {error}, got '{shown}'; {option.expected}") from None


def _unknown(name: str, value: str, table: Mapping[str, Option], use: Use) -> AeronOptionError:
    key = name.lower()
    if any(word in key for word in _SECRETS):
        value = _REDACTED
    elsewhere = [option for option in OPTIONS if option.name.lower() == key]
    if (refused := _refusal(key, use)) is not None:
        return AeronOptionError(f"option {refused[0]}: refused, got '{value}'; {refused[1]}")
    shared = Use.RECORDED_WRITE_STREAM if use is Use.WRITE_STREAM else Use.SHARED
    if use is not Use.WRITE and use not in Use.ARCHIVE and any(option.use & shared for option in elsewhere):
        name = elsewhere[0].name
        return AeronOptionError(f"option {name}: only for a running archive, got '{value}'; give {CONTROL_CHANNEL}")
    if elsewhere:
        places = " and ".join(str(option.use) for option in elsewhere)
        return AeronOptionError(f"option {elsewhere[0].name}: not for {use}, got '{value}'; it is for {places}")
    nearest = difflib.get_close_matches(key, table, n=1, cutoff=_ALIKE)
    if nearest:
        return AeronOptionError(f"option {name}: unknown, got '{value}'; did you mean {table[nearest[0]].name}?")
    names = ", ".join(option.name for option in table.values())
    return AeronOptionError(f"option {name}: unknown, got '{value}'; {use} has {names}")


_REDACTED = "(redacted)"

_SECRETS = ("credential", "password", "secret", "token")
"""Parts of option names. If a name contains one of them, no error shows the option's value."""


def _refusal(key: str, use: Use) -> tuple[str, str] | None:
    """Returns the name of another format's option, and a text that says what to use instead; `None` for any other key.

    All keys with the prefix ``kafka.`` are options of Kafka's clients. Format aeron has no such options.
    """
    if key.startswith("kafka."):
        _, instead = _REFUSED["bootstrap.servers"]
        return key, instead
    refused = _REFUSED.get(key)
    if refused is None or not use & Use.SHARED or key not in _TIMES_OF_ARCHIVE:
        return refused
    return refused[0], _TIMES_OF_ARCHIVE[key]


def _check_embedded(option: str, channel: str, aeron_dir: str | None) -> None:
    """Checks the options of a source with an embedded driver. Other processes cannot reach such a driver."""
    if not ChannelUriBuilder.parse(channel).build().startswith("aeron:udp"):
        raise AeronOptionError(
            "option embeddedDriver: an embedded driver cannot be reached by other processes over aeron:ipc, and has "
            f"nothing to spy on, got 'true'; use aeron:udp as {option}, or start a driver by 'aeron driver'"
        )
    if aeron_dir is not None:
        raise AeronOptionError(
            f"option aeron.dir: given with embeddedDriver=true, got '{aeron_dir}'; an embedded driver has a "
            "directory of its own: leave one of the two out"
        )


S = TypeVar("S", bound=SharedOptions)


def _check_shared(values: S) -> S:
    """Checks the rules that concern several options for a running archive. Returns the options."""
    if values.embedded_driver:
        _check_embedded(CONTROL_CHANNEL, values.archive_control_channel, values.aeron_dir)
    if values.recording_id is not None and (values.stream_id is not None or values.channel is not None):
        raise AeronOptionError(
            "option recordingId: given with channel or streamId; give recordingId, or channel and streamId"
        )
    return values


_FORMAT_OPTIONS: Mapping[str, tuple[str, str | None]] = {
    "valueSchema": ("struct", "a layout like 'ts ts_ns, px f64, qty i64'"),
    "recordsPerMessage": ("struct", None),
    "sbe.schema": ("sbe", None),
    "sbe.schemaText": ("sbe", None),
    "sbe.template": ("sbe", "the name of a message like 'Trade'"),
    "sbe.timestamps": ("sbe", None),
    "sbe.decimals": ("sbe", None),
    "sbe.group": ("sbe", None),
}
"""The options that belong to one format. If the format requires the option, the text describes its value."""


def _check_together(values: Mapping[str, Any]) -> None:
    """Checks rules that concern several options."""
    chosen = values["value_format"]
    fields = {option.name: option.field for option in OPTIONS}
    for name, (format, needed) in _FORMAT_OPTIONS.items():
        given = values.get(fields[name])
        if given is None and needed is not None and format == chosen:
            raise AeronOptionError(f"option {name}: missing; valueFormat={format} needs {needed}")
        if given is not None and format != chosen:
            raise AeronOptionError(
                f"option {name}: given with valueFormat={chosen}, got '{given}'; set valueFormat={format}"
            )
    if chosen == "sbe" and (values["sbe_schema"] is None) == (values["sbe_schema_text"] is None):
        raise AeronOptionError(
            "option sbe.schema: valueFormat=sbe needs sbe.schema or sbe.schemaText; give one of them"
        )

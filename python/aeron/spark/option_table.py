"""The table of the options of ``format("aeron")``: each option once, for validation, documentation and tests."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aeron.spark import option_values
from aeron.types import MalformedTreatment

CONTROL_CHANNEL = "archive.controlChannel"


class Use(enum.Flag):
    """The forms of reading and writing that accept an option."""

    READ = enum.auto()
    READ_STREAM = enum.auto()
    WRITE = enum.auto()
    WRITE_STREAM = enum.auto()
    SHARED_READ = enum.auto()
    SHARED_READ_STREAM = enum.auto()
    RECORDED_WRITE_STREAM = enum.auto()
    SHARED = SHARED_READ | SHARED_READ_STREAM
    ARCHIVE = SHARED | RECORDED_WRITE_STREAM
    ANY_READ_STREAM = READ_STREAM | SHARED_READ_STREAM
    SOURCE = READ | READ_STREAM | SHARED
    PLAIN_SINK = WRITE | WRITE_STREAM
    SINK = PLAIN_SINK | RECORDED_WRITE_STREAM
    LIVE = READ_STREAM | SINK
    ALL = SOURCE | SINK

    def __str__(self) -> str:
        """Returns Spark's names of the forms. A form for a running archive is left out if the option is also for the
        same form without an archive."""
        names = {Use.READ: "read", Use.READ_STREAM: "readStream", Use.WRITE: "write", Use.WRITE_STREAM: "writeStream"}
        shared = {
            Use.SHARED_READ: Use.READ,
            Use.SHARED_READ_STREAM: Use.READ_STREAM,
            Use.RECORDED_WRITE_STREAM: Use.WRITE_STREAM,
        }
        named = [name for use, name in names.items() if use in self]
        named += [
            f"{names[plain]} {_of_or_to(use)} an archive"
            for use, plain in shared.items()
            if use in self and plain not in self
        ]
        return ", ".join(named)


def _of_or_to(use: Use) -> str:
    return "to" if use is Use.RECORDED_WRITE_STREAM else "of"


@dataclass(frozen=True)
class Option:
    """One row of the table of options.

    `default` and `right` (an example) are texts as a user writes them. `wrong` contains a wrong text and the start of
    its error text. `parse` raises ``ValueError`` with the reason. The error text then ends with `expected`, which names
    the valid values.
    """

    name: str
    use: Use
    parse: Callable[[str], Any]
    expected: str
    meaning: str
    right: str
    wrong: tuple[str, str]
    default: str | None = None
    default_text: str | None = None
    required: bool = False
    is_secret: bool = False

    @property
    def field(self) -> str:
        """Name of the attribute with the option's value."""
        return re.sub(r"([A-Z])", r"_\1", self.name).replace(".", "_").lower()


_TRUE_OR_FALSE = "expected true or false"
_LIVE_ONLY = f"a live stream has no past: use latest; earliest and positions need {CONTROL_CHANNEL}"

MALFORMED: Mapping[str, MalformedTreatment] = {"FAILFAST": "fail", "DROPMALFORMED": "drop", "PERMISSIVE": "keep"}
"""The treatments of malformed payloads by Spark's words for them."""

OPTIONS: tuple[Option, ...] = (
    Option(
        "channel",
        Use.LIVE,
        option_values.channel,
        "expected an Aeron URI like aeron:udp?endpoint=localhost:40123 or aeron:ipc",
        "Aeron URI of the stream.",
        "aeron:udp?endpoint=localhost:40123",
        ("aeron:udp?endpiont=localhost:40123", "unknown parameter 'endpiont' at 10"),
        required=True,
    ),
    Option(
        "streamId",
        Use.READ_STREAM,
        option_values.stream_ids,
        "expected stream ids like 1001 or 1001-1004, at most 1024",
        "Stream ids and ranges of them.",
        "1001,1003-1006",
        ("1001-", "'1001-' is no id or range"),
        required=True,
    ),
    Option(
        "streamId",
        Use.READ,
        option_values.stream_ids,
        "expected stream ids like 1001 or 1001-1004, at most 1024",
        "Only recordings of these streams.",
        "1001",
        ("all", "'all' is no id or range"),
        default_text="all",
    ),
    Option(
        "streamId",
        Use.PLAIN_SINK,
        option_values.stream_id,
        "expected one stream id like 1001; a column stream_id routes rows to several",
        "Stream id of rows that have no column `stream_id`, for which it is required.",
        "1001",
        ("1001,1002", "not a whole number"),
    ),
    Option(
        "streamId",
        Use.RECORDED_WRITE_STREAM,
        option_values.stream_id,
        "expected one stream id like 1001",
        "Stream id of the recording.",
        "1001",
        ("1001-1002", "not a whole number"),
        required=True,
    ),
    Option(
        "aeron.dir",
        Use.ALL,
        option_values.non_empty,
        "expected the directory of a media driver",
        "Directory of the media driver: for `readStream` on the Spark driver's machine, to write and to replay on each "
        "executor's.",
        "/dev/shm/aeron-trades",
        ("", "empty"),
        default_text="`AERON_DIR`, else Aeron's default directory",
    ),
    Option(
        "aeron.driver.timeout",
        Use.ALL,
        option_values.integer(1, 3_600_000),
        "expected milliseconds from 1 to 3600000",
        "Milliseconds without a heartbeat after which the media driver counts as dead.",
        "10000",
        ("10s", "not a whole number"),
        default_text="`AERON_DRIVER_TIMEOUT`, else 10000",
    ),
    Option(
        "aeron.client.name",
        Use.ALL,
        option_values.client_name,
        "expected at most 100 bytes",
        "Name of the client in its heartbeat counter.",
        "bars",
        ("x" * 101, "too long"),
        default_text="`AERON_CLIENT_NAME`, else none",
    ),
    Option(
        "aeron.client.resource.linger.duration",
        Use.ALL,
        option_values.duration_ns(),
        "expected a duration like 3s or 100ms",
        "Time for which the memory of ended images stays mapped.",
        "3s",
        ("soon", "not a duration"),
        default_text="`AERON_CLIENT_RESOURCE_LINGER_DURATION`, else 3s",
    ),
    Option(
        "aeron.client.idle.sleep.duration",
        Use.ALL,
        option_values.duration_ns(10**9),
        "expected a duration like 16ms, at most 1s",
        "Sleep of the client's conductor.",
        "16ms",
        ("2s", "too large"),
        default_text="`AERON_CLIENT_IDLE_SLEEP_DURATION`, else 16ms",
    ),
    Option(
        "aeron.pre.touch.mapped.memory",
        Use.ALL,
        option_values.boolean,
        _TRUE_OR_FALSE,
        "Touch every page of a log when it is mapped.",
        "true",
        ("1", "unknown value"),
        default="false",
    ),
    Option(
        "embeddedDriver",
        Use.READ_STREAM | Use.SHARED,
        option_values.boolean,
        _TRUE_OR_FALSE,
        "Run a media driver inside the source process, for UDP channels. For an archive, also inside each worker that "
        "replays.",
        "true",
        ("yes", "unknown value"),
        default="false",
    ),
    Option(
        "startingOffsets",
        Use.READ_STREAM,
        option_values.starting_offsets,
        _LIVE_ONLY.partition(": ")[2],
        "Start of a query without a checkpoint.",
        "latest",
        ("earliest", "a live stream has no past"),
        default="latest",
    ),
    Option(
        "maxRowsPerTrigger",
        Use.ANY_READ_STREAM,
        option_values.integer(1),
        "the smallest value is 1",
        "Maximum number of rows in a batch.",
        "100000",
        ("0", "too small"),
        default_text="none",
    ),
    Option(
        "maxBytesPerTrigger",
        Use.ANY_READ_STREAM,
        option_values.size(1),
        "the smallest value is 1; sizes take k, m, g",
        "Maximum payload of a batch, in bytes. If `maxRowsPerTrigger` is also set, both limits apply.",
        "64m",
        ("0", "too small"),
        default_text="none",
    ),
    Option(
        "minPartitions",
        Use.SOURCE,
        option_values.integer(1, 4096),
        "expected 1 to 4096",
        "Minimum number of partitions of a batch.",
        "4",
        ("4097", "too large"),
        default_text="recordings with data; for `read` segments",
    ),
    Option(
        "maxRowsPerPartition",
        Use.SOURCE,
        option_values.integer(1),
        "the smallest value is 1",
        "Maximum number of rows in a partition. A larger partition is split between two messages.",
        "1000000",
        ("-1", "too small"),
        default_text="none",
    ),
    Option(
        "failOnDataLoss",
        Use.ANY_READ_STREAM,
        option_values.boolean,
        _TRUE_OR_FALSE,
        "Whether a query fails if messages were deleted or lost, or if the media driver of a live stream ends. "
        "Otherwise it counts lost messages as `lostBytes`, and looks for a driver every second.",
        "false",
        ("maybe", "unknown value"),
        default="true",
    ),
    Option(
        "maxRetainedBytes",
        Use.READ_STREAM,
        option_values.size(32 << 20),
        "the smallest value is 32m",
        "Limit of the bytes that are recorded and not yet committed by Spark. At the limit the source stops polling.",
        "4g",
        ("1m", "too small"),
        default="1g",
    ),
    Option(
        "archiveDir",
        Use.READ_STREAM,
        option_values.absolute_path,
        "expected the absolute path of a directory of your own",
        "Parent directory of private archives: a directory of your own that others cannot write to.",
        "/dev/shm/trades",
        ("trades", "not an absolute path"),
        default_text="`/dev/shm/aeron-spark-<uid>`, or below the temporary directory where shared memory is small",
    ),
    Option(
        "archiveDir",
        Use.READ,
        option_values.absolute_path,
        "expected the absolute path of an archive directory",
        "Directory of the recordings to read: one with `archive.catalog`, or with exactly one private archive.",
        "/dev/shm/aeron-spark-1000",
        ("trades", "not an absolute path"),
        required=True,
    ),
    Option(
        "recordingId",
        Use.READ | Use.SHARED,
        option_values.recording_ids,
        "expected recording ids like 0 or 0,3-7",
        "Only these recordings. With a running archive, also the recordings that continue them.",
        "0,3-7",
        ("-1", "'-1' is no range within 0"),
        default_text="all",
    ),
    Option(
        "archive.controlChannel",
        Use.ARCHIVE,
        option_values.channel,
        "expected an Aeron URI like aeron:udp?endpoint=host:8010 or aeron:ipc",
        "Channel on which a running archive takes requests. A source reads its recordings, and records nothing itself. "
        "`writeStream` records each row there exactly once.",
        "aeron:udp?endpoint=localhost:8010",
        ("udp", "invalid URI scheme or transport: udp"),
        required=True,
    ),
    Option(
        "archive.controlStreamId",
        Use.ARCHIVE,
        option_values.stream_id,
        "expected one stream id like 10",
        "Stream of the requests.",
        "11",
        ("ten", "not a whole number"),
        default="10",
    ),
    Option(
        "archive.responseChannel",
        Use.ARCHIVE,
        option_values.channel,
        "expected an Aeron URI like aeron:udp?control-mode=response|control=host:8020",
        "Channel of the archive's responses. With `control-mode=response`, only ports of the archive must be "
        "reachable.",
        "aeron:udp?control-mode=response|control=localhost:8020",
        ("aeron:udp", "invalid URI scheme or transport: aeron:udp"),
        default_text="`aeron:ipc`, or a free port if the control channel has a loopback address",
    ),
    Option(
        "archive.responseStreamId",
        Use.ARCHIVE,
        option_values.stream_id,
        "expected one stream id like 20",
        "Stream of the responses.",
        "22",
        ("1.5", "not a whole number"),
        default="20",
    ),
    Option(
        "archive.replayChannel",
        Use.ARCHIVE,
        option_values.channel,
        "expected an Aeron URI like aeron:udp?control-mode=response|control=host:8020",
        "Channel of replays: to workers that do not see the archive's files, and to the commit of a recorded batch.",
        "aeron:udp?control-mode=response|control=localhost:8021",
        ("aeron:ipc?mtu", "invalid end of key"),
        default_text="as `archive.responseChannel`",
    ),
    Option(
        "archive.replayStreamId",
        Use.ARCHIVE,
        option_values.stream_id,
        "expected one stream id like 21",
        "Stream of replays.",
        "1021",
        ("", "not a whole number"),
        default="21",
    ),
    Option(
        "archive.credentials",
        Use.ARCHIVE,
        option_values.Credentials,
        "expected a text",
        "Credentials for the archive, as UTF-8. They do not appear in plans, logs and errors.",
        "spark:secret",
        ("", "empty"),
        default_text="none",
        is_secret=True,
    ),
    Option(
        "archive.messageTimeoutMs",
        Use.ARCHIVE,
        option_values.integer(1, 3_600_000),
        "expected milliseconds from 1 to 3600000",
        "Milliseconds to wait for the archive: for a connection, a response, or the next frame of a replay.",
        "5000",
        ("0", "too small"),
        default="10000",
    ),
    Option(
        "archive.stagingStreamId",
        Use.RECORDED_WRITE_STREAM,
        option_values.stream_id,
        "expected one stream id like 30, other than streamId",
        "Stream on which tasks record their rows until the batch is committed.",
        "31",
        ("thirty", "not a whole number"),
        default="30",
    ),
    Option(
        "archive.dir",
        Use.SHARED,
        option_values.absolute_path,
        "expected the absolute path of the archive's directory",
        "Directory of the archive. A machine with the archive's directory at this path reads the files instead of a "
        "replay. With this option, the column `timestamp` has the arrival time.",
        "/data/archive",
        ("archive", "not an absolute path"),
        default_text="none",
    ),
    Option(
        "archive.reader",
        Use.SHARED_READ_STREAM,
        option_values.non_empty,
        "expected the name of a reader",
        "Named reader under which the archive keeps the query's committed positions. Retention does not delete data "
        "that the query has not committed.",
        "bars",
        ("", "empty"),
        default_text="none",
    ),
    Option(
        "archive.readerMaxAgeMs",
        Use.SHARED_READ_STREAM,
        option_values.integer(1),
        "the smallest value is 1",
        "Milliseconds without a commit after which the named reader expires.",
        "86400000",
        ("0", "too small"),
        default_text="none",
    ),
    Option(
        "channel",
        Use.SHARED,
        option_values.non_empty,
        "expected a part of a channel like localhost:40123",
        "Only recordings whose channel contains this text.",
        "localhost:40123",
        ("", "empty"),
        default_text="all",
    ),
    Option(
        "streamId",
        Use.SHARED,
        option_values.stream_ids,
        "expected stream ids like 1001 or 1001-1004, at most 1024",
        "Only recordings of these streams. A query also reads recordings that appear later.",
        "1001,1003-1006",
        ("all", "'all' is no id or range"),
        default_text="all",
    ),
    Option(
        "startingOffsets",
        Use.SHARED_READ_STREAM,
        option_values.offsets,
        "expected earliest, latest, a time like 2026-01-31T09:30:00Z, positions by recording id, or an offset",
        "Start of a query without a checkpoint. A recording without a position is read from its start.",
        '{"0": 4096}',
        ('{"0": 33}', "position 33 of recording 0 is not a multiple of 32 from 0 on"),
        default="latest",
    ),
    Option(
        "startingOffsets",
        Use.SHARED_READ,
        option_values.offsets,
        "expected earliest, latest, a time like 2026-01-31T09:30:00Z, positions by recording id, or an offset",
        "Start of the read. A recording without a position is read from its start.",
        '{"0": 4096}',
        ('{"0": 33}', "position 33 of recording 0 is not a multiple of 32 from 0 on"),
        default="earliest",
    ),
    Option(
        "endingOffsets",
        Use.SHARED_READ,
        option_values.offsets,
        "expected latest, a time like 2026-01-31T09:30:00Z, positions by recording id, or an offset",
        "End of the read. A recording without a position is not read.",
        '{"0": 8192}',
        ('{"0": -32}', "position -32 of recording 0 is not a multiple of 32 from 0 on"),
        default="latest",
    ),
    Option(
        "includeHeaders",
        Use.SOURCE,
        option_values.boolean,
        _TRUE_OR_FALSE,
        "Add every header column.",
        "true",
        ("no", "unknown value"),
        default="false",
    ),
    Option(
        "valueFormat",
        Use.ALL,
        option_values.value_format,
        "expected binary, string, struct or sbe",
        "Format of a payload: bytes, UTF-8 text, a fixed record described by `valueSchema`, or an SBE message of "
        "`sbe.schema`.",
        "struct",
        ("arrow", "reserved for a later version"),
        default="binary",
    ),
    Option(
        "valueSchema",
        Use.ALL,
        option_values.non_empty,
        "expected a layout like 'ts ts_ns, px f64, qty i64'",
        "Layout of a record; required with `valueFormat=struct`, and only there.",
        "ts ts_ns, px f64, qty i64",
        ("", "empty"),
    ),
    Option(
        "sbe.schema",
        Use.ALL,
        option_values.sbe_schema,
        "expected the path of a schema's XML file",
        "Schema of the messages, which only the driver program reads. Included files are below its folder.",
        "tests/sbe/market.xml",
        ("missing.xml", "No such file"),
    ),
    Option(
        "sbe.schemaText",
        Use.ALL,
        option_values.sbe_schema_text,
        "expected the XML text of a schema",
        "Schema of the messages as text, instead of `sbe.schema`.",
        "<messageSchema><types><composite name='messageHeader'><type name='blockLength' primitiveType='uint16'/>"
        "<type name='templateId' primitiveType='uint16'/><type name='schemaId' primitiveType='uint16'/>"
        "<type name='version' primitiveType='uint16'/></composite></types></messageSchema>",
        ("market.xml", "line 1"),
    ),
    Option(
        "sbe.template",
        Use.ALL,
        option_values.non_empty,
        "expected the name of a message in the schema",
        "Message of a row; required with `valueFormat=sbe`. A source skips other messages.",
        "Trade",
        ("", "empty"),
    ),
    Option(
        "sbe.timestamps",
        Use.ALL,
        option_values.sbe_names,
        "expected fields with their units, like 'ts us, legs.ts ns'",
        "Units of integers that are timestamps, if the schema does not state them: `s`, `ms`, `us` or `ns`. A key is a "
        "field or a type.",
        "ts us, legs.ts ns",
        ("ts", "each field needs two words"),
    ),
    Option(
        "sbe.decimals",
        Use.ALL,
        option_values.sbe_names,
        "expected mantissas with the fields of their exponents, like 'price priceExponent'",
        "Fields with the exponents of mantissas, if the schema does not join them.",
        "price priceExponent",
        ("price", "each field needs two words"),
    ),
    Option(
        "sbe.group",
        Use.SOURCE,
        option_values.non_empty,
        "expected the name of a group of the message, or a path like 'legs.fills'",
        "Group of which each entry is a row, with the fields of its message. Without it, a group is an array.",
        "entries",
        ("", "empty"),
    ),
    Option(
        "sbe.decimalScale",
        Use.SOURCE,
        option_values.sbe_decimal_scale,
        "expected 0 to 38, or float",
        "Decimal places of decimals with their exponents in the messages.",
        "4",
        ("39", "too large"),
        default="9",
    ),
    Option(
        "sbe.sets",
        Use.SOURCE,
        option_values.choice("names", "booleans", "integer"),
        "expected names, booleans or integer",
        "Type of sets: an array of names, a structure of booleans, or the integer.",
        "booleans",
        ("list", "unknown value"),
        default="names",
    ),
    Option(
        "sbe.enums",
        Use.SOURCE,
        option_values.choice("names", "integer"),
        "expected names or integer",
        "Type of enums: the name of the value, or the integer.",
        "integer",
        ("number", "unknown value"),
        default="names",
    ),
    Option(
        "sbe.unknownEnums",
        Use.SOURCE,
        option_values.choice("null", "malformed"),
        "expected null or malformed",
        "Treatment of values of enums, and of bits of sets, that the schema does not know.",
        "malformed",
        ("fail", "unknown value"),
        default="null",
    ),
    Option(
        "mode",
        Use.SOURCE,
        option_values.choice(*MALFORMED),
        f"expected one of {', '.join(MALFORMED)}",
        "Treatment of a payload that does not fit `valueFormat`: fail, drop it, or keep it as a row without values and "
        "with its bytes in the column `_corrupt_record`. Dropped and kept payloads are counted.",
        "DROPMALFORMED",
        ("DROP", "unknown value"),
        default="FAILFAST",
    ),
    Option(
        "verifyChecksums",
        Use.SOURCE,
        option_values.boolean,
        _TRUE_OR_FALSE,
        "Fail at a frame with a wrong checksum, if the archive has written checksums and its files are read.",
        "false",
        ("no", "unknown value"),
        default="true",
    ),
    Option(
        "recordsPerMessage",
        Use.SOURCE,
        option_values.choice("many"),
        "a source takes messages of any number of records: use many",
        "A message of k records gives k rows.",
        "many",
        ("3", "unknown value"),
        default_text="many",
    ),
    Option(
        "recordsPerMessage",
        Use.SINK,
        option_values.integer(1, 65536),
        "expected 1 to 65536",
        "Number of consecutive rows of a stream in one message. The last message may have fewer.",
        "16",
        ("0", "too small"),
        default_text="1",
    ),
    Option(
        "connectTimeoutMs",
        Use.SINK,
        option_values.integer(1, 3_600_000),
        "expected 1 to 3600000",
        "Milliseconds to wait for a subscriber.",
        "1000",
        ("0", "too small"),
        default="10000",
    ),
    Option(
        "offerTimeoutMs",
        Use.SINK,
        option_values.integer(1, 3_600_000),
        "expected 1 to 3600000",
        "Milliseconds of back pressure after which a task fails, if no row is accepted in this time.",
        "5000",
        ("3600001", "too large"),
        default="30000",
    ),
    Option(
        "reservedValue",
        Use.SINK,
        option_values.choice("zero", "column", "dedup"),
        "expected zero, column or dedup",
        "The frames' reserved value: 0, the column `reserved_value`, or a key by which duplicates can be dropped.",
        "dedup",
        ("key", "unknown value"),
        default_text="`zero`, or `column` if there is a column `reserved_value`",
    ),
    Option(
        "drain",
        Use.WRITE,
        option_values.boolean,
        _TRUE_OR_FALSE,
        "Wait until every subscriber on the machine of the task has read the last row, and over UDP until the driver "
        "has sent it, for at most `offerTimeoutMs`.",
        "true",
        ("2", "unknown value"),
        default="false",
    ),
)

"""Content of messages. `RING` records are made before the measurement. A publisher sends them in order, and begins
again with the first record after the last one."""

import json
from dataclasses import dataclass

import numpy as np

from aeron.sbe import Schema
from bench.environments import PEERS

RING = 4096
BATCH_ROWS, BATCH_BYTES = 4096, 1 << 20
"""Limits of a record batch of our source: number of rows and number of bytes. A batch ends at the limit that it reaches
first."""

TYPED_TYPE = np.dtype(
    [
        ("ts", "<i8"),
        ("px", "<f8"),
        ("qty", "<i8"),
        ("sym", "<i4"),
        ("side", "<i4"),
        ("seq", "<i8"),
        ("flags", "<i8"),
    ]
)
LAYOUT = "ts ts_ns, px f64, qty i64, sym i32, side i32, seq i64, flags i64"
TYPED_SCHEMA = "ts TIMESTAMP, px DOUBLE, qty BIGINT, sym INT, side INT, seq BIGINT, flags BIGINT"
BINARY_SCHEMA = (
    "value BINARY, stream_id INT, session_id INT, position BIGINT, reserved_value BIGINT, timestamp TIMESTAMP"
)
SBE_SCHEMA = PEERS / "sbe.xml"
JSON_SCHEMA = "ts LONG, px DOUBLE, qty LONG, sym INT, side INT, seq LONG, flags LONG"
_START_NS = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class Kind:
    """Messages of one kind. `length` is their length in bytes; for JSON it is approximate. `rate` is roughly the number
    of messages that Spark reads per second."""

    name: str
    length: int
    rate: int
    schema: str = BINARY_SCHEMA
    options: tuple = ()
    """Options of `format("aeron")`, by name."""

    def rows(self, seconds):
        """Returns the number of messages for a run of `seconds`. It is an even number of rings, so that two partitions
        have the same number of whole rings."""
        return 2 * RING * max(1, round(self.rate * seconds / (2 * RING)))

    @property
    def columns(self):
        """Names of the columns with content. Columns from Aeron's frame headers are left out."""
        names = [field.split()[0] for field in self.schema.split(", ")]
        return names if self in (TYPED, SBE) else ["value"]

    @property
    def batch_rows(self):
        return min(BATCH_ROWS, BATCH_BYTES // self.length)

    def messages(self):
        """Returns the ring in a form that `offer_batch` accepts."""
        if self is JSON:
            names = TYPED_TYPE.names
            return [json.dumps(dict(zip(names, row.item(), strict=True))).encode() for row in typed_ring()]
        if self is SBE:
            return (
                Schema(SBE_SCHEMA)["Trade"]
                .encode([dict(zip(TYPED_TYPE.names, row.item(), strict=True)) for row in typed_ring()])
                .to_pylist()
            )
        return typed_ring() if self.length == TYPED_TYPE.itemsize else byte_ring(self.length)


SMALL = Kind("64 B", 64, 3_000_000)
LARGE = Kind("1 KiB", 1024, 500_000)
TYPED = Kind("48 B typed", 48, 4_000_000, TYPED_SCHEMA, (("valueFormat", "struct"), ("valueSchema", LAYOUT)))
PLAIN = Kind("48 B binary", 48, 1_500_000)
JSON = Kind("JSON text", 110, 400_000, BINARY_SCHEMA.replace("BINARY", "STRING"), (("valueFormat", "string"),))
SBE = Kind(
    "SBE trades",
    56,
    3_000_000,
    TYPED_SCHEMA,
    (("valueFormat", "sbe"), ("sbe.schema", str(SBE_SCHEMA)), ("sbe.template", "Trade")),
)
KINDS = (SMALL, LARGE, TYPED)


def byte_ring(length):
    """Returns `RING` records, which a publisher sends repeatedly. Each record begins with its number."""
    records = np.zeros(RING, [("number", "<i8"), ("rest", f"V{length - 8}")])
    records["number"] = np.arange(RING)
    return records


def as_bytes(kind):
    """Returns the ring as separate messages, for peers that cannot use arrays."""
    return [message if isinstance(message, bytes) else message.tobytes() for message in kind.messages()]


def typed_ring():
    """Returns a ring of generated trades."""
    records = np.zeros(RING, TYPED_TYPE)
    number = np.arange(RING)
    records["ts"] = _START_NS + number * 1_000_000
    records["px"] = 100 + number / 64
    records["qty"] = number % 100 + 1
    records["sym"], records["side"] = number % 100, number % 2
    records["seq"] = number
    return records


def decoded(values):
    """Decodes binary records in a UDF. Returns the columns of the records as an Arrow array of structs."""
    import pyarrow as pa

    buffer = values.buffers()[2]
    records = np.frombuffer(buffer, TYPED_TYPE, len(values), offset=values.offset * TYPED_TYPE.itemsize)
    return pa.StructArray.from_arrays(
        [np.ascontiguousarray(records[name]) for name in TYPED_TYPE.names], TYPED_TYPE.names
    )

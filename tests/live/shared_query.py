"""Runs a query on the recordings of a running archive as Spark does. It logs an offset before it plans the batch."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from aeron import _aeron

SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("stream_id", pa.int32()),
        ("session_id", pa.int32()),
        ("position", pa.int64()),
        ("reserved_value", pa.int64()),
        ("channel", pa.string()),
        ("recording_id", pa.int64()),
        ("term_id", pa.int32()),
        ("term_offset", pa.int32()),
        ("flags", pa.int16()),
    ]
)
"""All columns that do not depend on the clock."""

CONNECTIONS = _aeron.ArchiveConnections()


@dataclass
class SharedArchive:
    """Settings with which tests connect to an archive and find its directory."""

    aeron_dir: str
    directory: str | None = None
    control_channel: str = "aeron:ipc"
    response_channel: str = "aeron:ipc"
    replay_channel: str = "aeron:ipc"
    credentials: bytes | None = None
    embedded_driver: bool = False
    timeout_ms: int = 5000
    connections: _aeron.ArchiveConnections = field(default_factory=lambda: CONNECTIONS)
    lines: list[str] = field(default_factory=list)
    """Log lines of the last call of `plan`."""

    @property
    def settings(self) -> Any:
        """Returns the settings in the form for native code."""
        return {
            "client": {"aeron_dir": None if self.embedded_driver else self.aeron_dir},
            "embedded_driver": self.embedded_driver,
            "control_channel": self.control_channel,
            "control_stream_id": 10,
            "response_channel": self.response_channel,
            "response_stream_id": 20,
            "replay_channel": self.replay_channel,
            "replay_stream_id": 21,
            "credentials": self.credentials,
            "timeout_ms": self.timeout_ms,
        }

    def read(self, partition: str, schema: pa.Schema = SCHEMA) -> pa.Table:
        """Returns the rows of a partition."""
        reader = self.reader(partition, schema)
        return pa.Table.from_batches([pa.record_batch(batch) for batch in reader], schema)

    def reader(self, partition: str, schema: pa.Schema = SCHEMA) -> _aeron.SharedPartitionReader:
        """Returns the reader of a partition."""
        return _aeron.SharedPartitionReader(
            self.connections, self.settings, partition, schema, directory=self.directory
        )

    def plan(self, stream_id: int | None = None, **options: Any) -> list[str]:
        """Returns the partitions of a batch read."""
        partitions, self.lines = _aeron.plan_archive(
            self.connections, self.settings, selection(stream_id, options), directory=self.directory, **options
        )
        return partitions


def selection(stream_id: int | None, options: dict[str, Any]) -> Any:
    """Removes the selection of recordings from `options`, and returns it."""
    ids = options.pop("recording_ids", None)
    return {
        "channel": options.pop("channel", None),
        "stream_ids": [] if stream_id is None else [stream_id],
        "recording_ids": ids,
    }


class SharedQuery:
    """A streaming query. Its checkpoint is two lists: the logged offsets, and the rows of finished batches."""

    def __init__(self, archive: SharedArchive, stream_id: int | None, **options: Any) -> None:
        self.archive = archive
        self.logged: list[str] = []
        self.finished: list[pa.Table] = []
        self._arguments = stream_id, options
        self.restart()

    def restart(self) -> None:
        """Continues with a new source on the checkpoint, like a process after a kill."""
        stream_id, options = self._arguments
        options = dict(options)
        self.source = _aeron.SharedSource(
            self.archive.connections,
            self.archive.settings,
            selection(stream_id, options),
            directory=self.archive.directory,
            **options,
        )

    def start(self, batch: int) -> str:
        """Returns the start offset of a batch."""
        return self.logged[batch - 1] if batch else self.source.initial_offset()

    def log(self) -> bool:
        """Logs the end offset of the next batch. Returns `False` if there is no new data."""
        start = self.start(len(self.logged))
        end = json.dumps(json.loads(self.source.latest_offset(start)))
        self.source.report()
        if end == json.dumps(json.loads(start)) and self.logged:
            return False
        self.logged.append(end)
        return True

    def rows_of(self, batch: int) -> pa.Table:
        """Returns the rows of a logged batch."""
        partitions = self.source.partitions(self.start(batch), self.logged[batch])
        tables = [self.archive.read(partition) for partition in partitions]
        return pa.concat_tables([SCHEMA.empty_table(), *tables])

    def run_batch(self) -> pa.Table | None:
        """Runs the unfinished batch if there is one, or else the next batch. Returns the rows, or `None` if there is no
        new data."""
        if len(self.finished) == len(self.logged) and not self.log():
            return None
        rows = self.rows_of(len(self.finished))
        self.finished.append(rows)
        return rows

    def drain(self) -> list[bytes]:
        """Runs batches until there is no new data. Returns the values of all rows so far."""
        while self.run_batch() is not None:
            pass
        return self.values()

    def values(self) -> list[bytes]:
        """Returns the values of all rows of finished batches."""
        return [value for table in self.finished for value in table["value"].to_pylist()]

    def report(self) -> dict[str, Any]:
        """Returns the progress report of the source."""
        report: dict[str, Any] = json.loads(self.source.report())
        return report

"""The data pipeline of `aeron.spark`."""

from collections.abc import Sequence
from os import PathLike
from typing import Required, Self, TypedDict, final, type_check_only

from typing_extensions import Buffer

from aeron.types import ArrowArray, ArrowSchema, MalformedTreatment

@type_check_only
class _ClientSettings(TypedDict, total=False):
    aeron_dir: Required[str | PathLike[str] | None]
    driver_timeout_ms: int | None
    client_name: str | None
    resource_linger_duration_ns: int | None
    idle_sleep_duration_ns: int | None
    pre_touch_mapped_memory: bool | None

@type_check_only
class _ArchiveSettings(TypedDict):
    client: _ClientSettings
    embedded_driver: bool
    control_channel: str
    control_stream_id: int
    response_channel: str
    response_stream_id: int
    replay_channel: str
    replay_stream_id: int
    credentials: bytes | None
    timeout_ms: int

@type_check_only
class _RecordingSelection(TypedDict):
    channel: str | None
    stream_ids: Sequence[int]
    recording_ids: Sequence[tuple[int, int]] | None

@type_check_only
class _RowFilter(TypedDict):
    recording_id: Sequence[tuple[int, int]] | None
    stream_id: Sequence[tuple[int, int]] | None
    session_id: Sequence[tuple[int, int]] | None
    position: Sequence[tuple[int, int]] | None
    timestamp: Sequence[tuple[int, int]] | None

@type_check_only
class _Published(TypedDict):
    rows: int
    messages: int
    bytes: int
    streams: list[tuple[int, int, int, int, int]]

@final
class Layout:
    def __new__(cls, text: str, *, nanoseconds: bool = False) -> Self: ...
    @property
    def record_length(self) -> int: ...
    @property
    def fields(self) -> list[tuple[str, str, int]]: ...
    def decode(self, records: Buffer) -> ColumnBatch: ...
    def encode(self, batch: ArrowArray) -> bytes: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class ColumnBatch:
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class PartitionReader:
    def __new__(
        cls,
        partition: str,
        schema: ArrowSchema,
        *,
        value_format: str = "binary",
        value_schema: str | None = None,
        malformed: MalformedTreatment = "fail",
        channel: str | None = None,
        verify_checksums: bool = True,
    ) -> Self: ...
    @property
    def malformed(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def unknown(self) -> int: ...
    def report_counts(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> ColumnBatch: ...

@final
class SharedPublications:
    def __new__(cls, idle_ms: int = 30000) -> Self: ...
    def task(
        self,
        channel: str,
        stream_id: int | None,
        *,
        query: str,
        partition: int,
        attempt: int = 0,
        connect_timeout_ms: int = 10000,
        offer_timeout_ms: int = 30000,
        reserved_value: str = "zero",
        batch_id: int = 0,
        value_format: str = "struct",
        value_schema: str | None = None,
        records_per_message: int = 1,
        client: _ClientSettings | None = None,
        exclusive: bool = False,
    ) -> SinkTask: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def is_usable(self) -> bool: ...

@final
class SinkTask:
    def write(self, batch: ArrowArray) -> None: ...
    def finish(self, *, drain: bool = False) -> _Published: ...
    @property
    def published(self) -> _Published: ...

@final
class LiveSource:
    def __new__(
        cls,
        channel: str,
        stream_ids: Sequence[int],
        *,
        client: _ClientSettings | None = None,
        embedded_driver: bool = False,
        archive_dir: str | PathLike[str] | None = None,
        max_retained_bytes: int = ...,
        max_rows_per_trigger: int | None = None,
        max_bytes_per_trigger: int | None = None,
        min_partitions: int = 1,
        max_rows_per_partition: int | None = None,
        record_length: int | None = None,
        fail_on_data_loss: bool = True,
        needs_timestamp: bool = True,
    ) -> Self: ...
    def initial_offset(self) -> str: ...
    def prepare_for_available_now(self) -> None: ...
    def latest_offset(self, start: str, *, limited: bool = True) -> str: ...
    def partitions(self, start: str, end: str) -> list[str]: ...
    def commit(self, end: str) -> None: ...
    def report(self) -> str: ...
    def take_lines(self) -> list[str]: ...
    def close(self) -> None: ...

def plan_recordings(
    directory: str | PathLike[str],
    *,
    stream_ids: Sequence[int] | None = None,
    recording_ids: Sequence[tuple[int, int]] | None = None,
    min_partitions: int | None = None,
    max_rows_per_partition: int | None = None,
    value_schema: str | None = None,
) -> list[str]: ...

@final
class ArchiveConnections:
    def __new__(cls, idle_ms: int = 30_000) -> Self: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def is_usable(self) -> bool: ...

@final
class SharedSource:
    def __new__(
        cls,
        connections: ArchiveConnections,
        archive: _ArchiveSettings,
        selection: _RecordingSelection,
        *,
        starting_offsets: str = "latest",
        directory: str | PathLike[str] | None = None,
        max_rows_per_trigger: int | None = None,
        max_bytes_per_trigger: int | None = None,
        min_partitions: int | None = 1,
        max_rows_per_partition: int | None = None,
        record_length: int | None = None,
        fail_on_data_loss: bool = True,
        needs_timestamp: bool = True,
        reader: str | None = None,
        reader_max_age_ms: int | None = None,
    ) -> Self: ...
    def initial_offset(self) -> str: ...
    def prepare_for_available_now(self) -> None: ...
    def latest_offset(self, start: str, *, limited: bool = True) -> str: ...
    def partitions(self, start: str, end: str) -> list[str]: ...
    def commit(self, end: str) -> None: ...
    def report(self) -> str: ...
    def take_lines(self) -> list[str]: ...
    def close(self) -> None: ...

@final
class SharedPartitionReader:
    def __new__(
        cls,
        connections: ArchiveConnections,
        archive: _ArchiveSettings,
        partition: str,
        schema: ArrowSchema,
        *,
        directory: str | PathLike[str] | None = None,
        value_format: str = "binary",
        value_schema: str | None = None,
        malformed: MalformedTreatment = "fail",
        verify_checksums: bool = True,
    ) -> Self: ...
    @property
    def malformed(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def unknown(self) -> int: ...
    @property
    def is_replay(self) -> bool: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> ColumnBatch: ...

def check_offsets(text: str) -> None: ...
def plan_archive(
    connections: ArchiveConnections,
    archive: _ArchiveSettings,
    selection: _RecordingSelection,
    *,
    starting_offsets: str = "earliest",
    ending_offsets: str = "latest",
    directory: str | PathLike[str] | None = None,
    min_partitions: int | None = None,
    max_rows_per_partition: int | None = None,
    record_length: int | None = None,
    needs_timestamp: bool = True,
    filter: _RowFilter | None = None,
) -> tuple[list[str], list[str]]: ...

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
    """The layout of fixed-length records, parsed from a text such as ``"ts ts_ns, px f64, @24 sym char[8] =32"``.

    Arrow libraries read the layout as the schema of the columns for these records. If the text is not valid, the
    constructor raises ``AeronOptionError``, which names the field and the offset. Immutable, so thread-safe.
    """
    def __new__(cls, text: str, *, nanoseconds: bool = False) -> Self: ...
    @property
    def record_length(self) -> int:
        """Length of a record, in bytes."""
    @property
    def fields(self) -> list[tuple[str, str, int]]:
        """Name, type and offset of each field, in the order of the text."""
    def decode(self, records: Buffer) -> ColumnBatch:
        """Converts records to columns, and returns them as a record batch. `records` are the bytes of any number of
        records.

        Raises ``AeronRecordError`` for a value that its column cannot represent. Raises ``ValueError`` if the number of
        bytes is not a multiple of the record length, or is 2 GiB or more.
        """
    def encode(self, batch: ArrowArray) -> bytes:
        """Converts a record batch with a column for each field to records, and returns their bytes.

        Raises ``AeronRecordError`` for a missing column, a column of another type, a null, and a value that does not
        fit into its field.
        """
    def __arrow_c_schema__(self) -> object: ...

@final
class ColumnBatch:
    """A record batch. ``pyarrow.record_batch(batch)`` shares its memory. Immutable, so thread-safe."""
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class PartitionReader:
    """An iterator over the rows of a partition, as record batches with exactly the given schema.

    * `partition` is a text that `LiveSource.partitions` or `plan_recordings` returned.
    * `schema` is any object with the method ``__arrow_c_schema__``.
    * `value_format` is ``"binary"``, ``"string"``, ``"struct"`` or ``"sbe"``. With ``"struct"``, `value_schema` is the
      record layout. With ``"sbe"``, it is a JSON object: the text of the schema, the template, and options of columns.
    * `malformed` is ``"fail"``, ``"drop"`` or ``"keep"``, as for `read_recording`.
    * `channel` is the value of the column `channel` if the partition does not name the channel of its recording.
    * With `verify_checksums`, a frame with a wrong checksum is an error.

    The archive must be on this machine. The same partition always yields the same batches. Errors have the classes
    of ``aeron.spark.errors``. Thread-safe. Batches are decoded without the GIL.
    """
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
    def malformed(self) -> int:
        """Number of malformed messages and records so far: left out, or kept as rows without values."""
    @property
    def skipped(self) -> int:
        """Number of messages so far that were left out because they have another template or schema."""
    @property
    def unknown(self) -> int:
        """Number of values of enums so far that the schema does not know. They are null."""
    def report_counts(self) -> None:
        """Writes files with the numbers above into the archive directory, for the live source that planned the partition.
        Raises ``OSError`` if a file cannot be created.
        """
    def __iter__(self) -> Self: ...
    def __next__(self) -> ColumnBatch: ...

@final
class SharedPublications:
    """Clients and publications that the tasks of this process share. Thread-safe.

    Clients and publications stay open after the end of a task. They are closed after `idle_ms` milliseconds without
    use, and at the end of the interpreter.
    """
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
    ) -> SinkTask:
        """Creates a task that publishes the rows of one partition on a channel. The task opens nothing before the first
        row.

        `client` has the settings of a new client. It is not used if a client is already connected to the driver. With
        `exclusive`, the task has a session of its own, with the session id of the channel.
        """
    def close(self) -> None:
        """Closes all clients and publications, even if tasks use them. Idempotent."""
    def __len__(self) -> int: ...
    @property
    def is_usable(self) -> bool:
        """Whether the publications belong to this process, and not to the parent process of a fork."""

@final
class SinkTask:
    """Publishes the rows of one partition. One thread at a time may use it."""
    def write(self, batch: ArrowArray) -> None:
        """Publishes the rows of a record batch. Waits for subscribers and for room, without the GIL."""
    def finish(self, *, drain: bool = False) -> _Published:
        """Publishes the remaining rows, which wait in messages that are not full.

        With `drain`, waits until the subscribers on this machine have read all messages, and until the driver has sent
        all messages over UDP.

        Returns the numbers of published `rows`, `messages` and `bytes`, and the published `streams`: stream id, session
        id, first position, last position and number of rows of each stream.
        """
    @property
    def published(self) -> _Published:
        """The numbers and streams that `finish` returns, for the rows that were published so far."""

@final
class LiveSource:
    """The live source of a streaming query, which records its streams into a private archive.

    Offsets and partitions are JSON texts. The source opens nothing before Spark has logged a batch. One thread at a
    time may call the hooks. `close` may be called at any time, even by a signal handler while a hook waits.
    """
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
    def initial_offset(self) -> str:
        """Returns the offset of a new, empty private archive, without creating the archive. Each call returns the same
        offset.
        """
    def prepare_for_available_now(self) -> None:
        """Fixes the end of the query: no batch goes beyond the data that exists when the first batch is requested."""
    def latest_offset(self, start: str, *, limited: bool = True) -> str:
        """Returns the end of the batch that begins at `start`. If no data arrives within 100 ms, returns `start`
        itself.

        `limited` says whether the limits of a trigger apply.
        """
    def partitions(self, start: str, end: str) -> list[str]:
        """Returns the partitions of the batch from `start` to `end`. Spark must have logged both offsets.

        Opens the private archive of `end`.
        """
    def commit(self, end: str) -> None:
        """Permits the deletion of the data before `end`."""
    def report(self) -> str:
        """Returns the progress report that the user sees while the query runs, as JSON."""
    def take_lines(self) -> list[str]:
        """Removes and returns the lines for Python's log."""
    def close(self) -> None:
        """Stops the recordings, removes the subscriptions and unlocks the private archive. Idempotent."""

def plan_recordings(
    directory: str | PathLike[str],
    *,
    stream_ids: Sequence[int] | None = None,
    recording_ids: Sequence[tuple[int, int]] | None = None,
    min_partitions: int | None = None,
    max_rows_per_partition: int | None = None,
    value_schema: str | None = None,
) -> list[str]:
    """Returns the partitions of the recordings in an archive directory, as texts for `PartitionReader`.

    Each message is in exactly one partition. `recording_ids` are pairs of the first and the last id. `value_schema` is
    the record layout if each record is a row. Nothing is written to the directory. Raises ``AeronSparkError``.
    """

@final
class ArchiveConnections:
    """Clients of archives that the sources and tasks of this process share. Thread-safe.

    A connection stays open after the end of a task. It is closed after `idle_ms` milliseconds without use, and at the
    end of the interpreter. All connections with an embedded driver share one driver.
    """
    def __new__(cls, idle_ms: int = 30_000) -> Self: ...
    def close(self) -> None:
        """Closes all connections, even if tasks use them, and the embedded driver. Idempotent."""
    def __len__(self) -> int: ...
    @property
    def is_usable(self) -> bool:
        """Whether the connections belong to this process, and not to the parent process of a fork."""

@final
class SharedSource:
    """The source of a streaming query on the recordings of a running archive.

    Offsets and partitions are JSON texts. One thread at a time may call the hooks. `close` may be called at any time,
    even by a signal handler while a hook waits. `close` does not close the connections.
    """
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
    def initial_offset(self) -> str:
        """Returns the offset of a query whose start is not known yet. Each call returns the same offset."""
    def prepare_for_available_now(self) -> None:
        """Fixes the end of the query: no batch goes beyond the data that exists when the first batch is requested."""
    def latest_offset(self, start: str, *, limited: bool = True) -> str:
        """Returns the end of the batch that begins at `start`. If no data arrives within 100 ms, returns `start`
        itself.

        `limited` says whether the limits of a trigger apply.
        """
    def partitions(self, start: str, end: str) -> list[str]:
        """Returns the partitions of the batch from `start` to `end`. Spark must have logged both offsets."""
    def commit(self, end: str) -> None:
        """Stores the positions of `end` in the named reader, if there is one."""
    def report(self) -> str:
        """Returns the progress report that the user sees while the query runs, as JSON."""
    def take_lines(self) -> list[str]:
        """Removes and returns the lines for Python's log."""
    def close(self) -> None:
        """Refuses further calls of hooks. Idempotent."""

@final
class SharedPartitionReader:
    """An iterator over the rows of a partition of a running archive, as record batches with exactly the given schema.

    If `directory` is the directory of the archive, the iterator reads the archive's files. Otherwise the iterator
    starts a replay. The other arguments are those of `PartitionReader`. Errors have the classes of
    ``aeron.spark.errors``. Thread-safe. The iterator waits and decodes without the GIL.
    """
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
    def malformed(self) -> int:
        """Number of malformed messages and records so far: left out, or kept as rows without values."""
    @property
    def skipped(self) -> int:
        """Number of messages so far that were left out because they have another template or schema."""
    @property
    def unknown(self) -> int:
        """Number of values of enums so far that the schema does not know. They are null."""
    @property
    def is_replay(self) -> bool:
        """Whether the rows are from a replay, and not from files."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> ColumnBatch: ...

def check_offsets(text: str) -> None:
    """Checks a text that names positions in recordings. Raises ``InvalidArgumentError`` with the reason."""

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
) -> tuple[list[str], list[str]]:
    """Plans a batch query on an archive's recordings. Returns its partitions, as texts for `SharedPartitionReader`, and
    lines for Python's log.

    Each message is in exactly one partition. Without limits each segment is a partition. With `filter`, segments and
    recordings without a matching row are left out. Raises ``AeronSparkError``.
    """

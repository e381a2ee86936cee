"""The data pipeline of `aeron.spark`."""

from collections.abc import Sequence
from os import PathLike
from typing import Required, Self, TypedDict, final, type_check_only

from typing_extensions import Buffer

from aeron.types import ArrowArray, ArrowSchema

@type_check_only
class _ClientSettings(TypedDict, total=False):
    aeron_dir: Required[str | PathLike[str] | None]
    driver_timeout_ms: int | None
    client_name: str | None
    resource_linger_duration_ns: int | None
    idle_sleep_duration_ns: int | None
    pre_touch_mapped_memory: bool | None

@type_check_only
class _Published(TypedDict):
    rows: int
    messages: int
    bytes: int
    streams: list[tuple[int, int, int, int, int]]

@final
class Layout:
    """A layout of fixed records: a text like ``"ts ts_ns, px f64, @24 sym char[8] =32"``, parsed.

    To Arrow it is the schema of the columns that records become. The constructor raises ``AeronOptionError``, which
    names field and offset. Immutable, thread-safe.
    """
    def __new__(cls, text: str) -> Self: ...
    @property
    def record_length(self) -> int:
        """Bytes of a record."""
    @property
    def fields(self) -> list[tuple[str, str, int]]:
        """Name, type and offset of each field, in the order of the text."""
    def decode(self, records: Buffer) -> ColumnBatch:
        """The columns of `records`, which are bytes of any number of records: a batch for pyarrow.

        Raises ``AeronRecordError`` for a value that no column can hold, and ``ValueError`` for bytes that are no whole
        records.
        """
    def encode(self, batch: ArrowArray) -> bytes:
        """The records of a record batch, which has a column for each field.

        Raises ``AeronRecordError`` for a missing column, one of another type, a null, and a value that does not fit.
        """
    def __arrow_c_schema__(self) -> object: ...

@final
class ColumnBatch:
    """Rows in columns, for pyarrow: ``pyarrow.record_batch(batch)`` shares their memory. Immutable, thread-safe."""
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class PartitionReader:
    """An iterator over the rows of a partition, as batches of the schema that it is given, to the letter.

    `partition` is the text that planning gave, `schema` any object that is a schema to Arrow, `value_format` is
    ``"binary"``, ``"string"`` or ``"struct"`` (then with a layout as `value_schema`), `mode` is ``"FAILFAST"`` or
    ``"DROPMALFORMED"``, and `channel` what rows show when the recording does not name its own. The archive has to be on
    this machine. The same partition always gives the same batches. Errors are those of ``aeron.spark.errors``.
    Thread-safe; a batch is decoded without the GIL.
    """
    def __new__(
        cls,
        partition: str,
        schema: ArrowSchema,
        *,
        value_format: str = "binary",
        value_schema: str | None = None,
        mode: str = "FAILFAST",
        channel: str | None = None,
    ) -> Self: ...
    @property
    def malformed(self) -> int:
        """Messages and records that were dropped so far because they are malformed."""
    def report_malformed(self) -> None:
        """Leaves a note in the archive of how many were dropped, for the live source that planned the partition. Raises
        ``OSError``.
        """
    def __iter__(self) -> Self: ...
    def __next__(self) -> ColumnBatch: ...

@final
class SharedPublications:
    """Clients and publications of this process, which outlive the tasks that publish through them. Thread-safe.

    They are closed when unused for `idle_ms`, and at the end of the interpreter.
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
        value_schema: str | None = None,
        records_per_message: int = 1,
        client: _ClientSettings | None = None,
    ) -> SinkTask:
        """A task that publishes the rows of one partition on a channel. Opens nothing before the first row.

        `client` has the client's settings, should none be connected to the driver yet.
        """
    def close(self) -> None:
        """Closes all clients and publications, in use or not. Idempotent."""
    def __len__(self) -> int: ...
    @property
    def is_usable(self) -> bool:
        """Whether they belong to this process, and not to one that it was forked from."""

@final
class SinkTask:
    """Publishes the rows of one partition. Serves one thread at a time."""
    def write(self, batch: ArrowArray) -> None:
        """Publishes the rows of a record batch; waits for subscribers and for room, without the GIL."""
    def finish(self, *, drain: bool = False) -> _Published:
        """Publishes what was kept back to fill a message, waits with `drain` until subscribers have read everything.
        Returns the published counts: `rows`, `messages`, `bytes`, and `streams` with (stream id, session id, first
        position, last position, rows) of each.
        """
    @property
    def published(self) -> _Published:
        """The counts that were published so far, in the form of `finish`."""

@final
class LiveSource:
    """A live stream as a streaming query sees it: offsets and partitions as JSON text, recorded into a private archive.

    Opens nothing before a batch is logged. The hooks are for one thread at a time; `close` may be called at any time,
    also by a signal handler while a hook waits.
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
        """The empty set of a new private archive, which is not made; the same one whenever it is asked for."""
    def prepare_for_available_now(self) -> None:
        """From now on no batch goes beyond what is there when the first one is asked for."""
    def latest_offset(self, start: str, *, limited: bool = True) -> str:
        """The end of the batch that begins at `start`; `start` itself if nothing comes within 100 ms. `limited` says
        whether the limits of a trigger hold.
        """
    def partitions(self, start: str, end: str) -> list[str]:
        """The partitions of the batch from `start` to `end`, both logged by now. Opens the private archive that `end`
        names.
        """
    def commit(self, end: str) -> None:
        """Lets go what lies before `end`."""
    def report(self) -> str:
        """The report that the user sees while the query runs."""
    def take_lines(self) -> list[str]:
        """Lines for the log that were not taken yet."""
    def close(self) -> None:
        """Stops the recordings, removes the subscriptions and gives the archive free. Idempotent."""

def plan_recordings(
    directory: str | PathLike[str],
    *,
    stream_ids: Sequence[int] | None = None,
    recording_ids: Sequence[tuple[int, int]] | None = None,
    min_partitions: int | None = None,
    max_rows_per_partition: int | None = None,
    value_schema: str | None = None,
) -> list[str]:
    """The partitions of the recordings of an archive directory, as texts for `PartitionReader`; each message is in one of
    them.

    `recording_ids` are pairs of first and last, `value_schema` is the layout of records if rows are those. Nothing is
    written to the directory. Raises ``AeronSparkError``.
    """

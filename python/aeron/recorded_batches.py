"""`read_recording`: a recording in the directory of an archive as Arrow record batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Self, final

from aeron._aeron import Recording
from aeron._pipeline import _RecordedRows
from aeron.exceptions import ArgumentTypeError
from aeron.layouts import layout_text

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from aeron.export import RecordingExport
    from aeron.sbe import Template
    from aeron.types import ExportFormat, MalformedTreatment

__all__ = ["RecordedBatches", "read_recording"]


def read_recording(
    directory: str | PathLike[str],
    recording_id: int,
    *,
    from_position: int | None = None,
    to_position: int | None = None,
    layout: str | npt.DTypeLike | None = None,
    text: bool = False,
    columns: Sequence[str] | None = None,
    malformed: MalformedTreatment = "fail",
    verify_checksums: bool = True,
    sbe: Template | None = None,
) -> RecordedBatches:
    """Reads the messages of a recording from the directory of an archive, as Arrow record batches.

    Fragments of a message are joined, and padding is left out. Each message is one row, or one row for each record of
    a `layout`. Nothing is written to the directory, and the archive may run. An active recording is read up to the
    position that is recorded at the time of the call.

    The columns are those of Spark's format ``aeron``: ``value`` or the fields of the layout, ``stream_id``,
    ``session_id``, ``position``, ``reserved_value`` and ``timestamp``. ``columns`` may also name ``channel``,
    ``recording_id``, ``term_id``, ``term_offset``, ``flags``, and with a layout ``record_index``. ``position`` is the
    position after the message. ``timestamp`` is the arrival time in the index of the recording; it is null if the
    index does not have the time.

    Args:
        directory: Directory with the archive's catalog and segment files.
        recording_id: Id of the recording.
        from_position: Messages that begin before this position are left out. `None` is the start of the recording.
        to_position: Messages that begin at or after this position are left out. `None` is the end of the recording.
        layout: Layout of the records in each message: a text such as ``"ts ts_ns, px f64, sym char[8]"``, or a
            structured numpy dtype. `None` reads the payloads as bytes.
        text: Whether payloads are UTF-8 text, so that ``value`` is a column of strings.
        columns: Names of the columns, in the order of the result. `None` selects the columns above.
        malformed: Treatment of messages and records that do not fit the layout: ``"fail"`` raises
            `InvalidArgumentError`, and ``"drop"`` leaves them out. ``"keep"`` gives a row without values for each of
            them, with its bytes in the column ``_corrupt_record``.
        verify_checksums: Whether a frame with a wrong checksum is an error, if the archive has written checksums.
        sbe: Template of an SBE schema, ``schema["Trade"]``: its fields, groups and data are columns, as in
            `Template.to_arrow`. Messages of other templates are left out.

    Returns:
        The record batches.

    Raises:
        ArchiveDirectoryError: If the archive or the recording cannot be read. The iterator raises it if a frame is
            damaged.
        InvalidArgumentError: If a position is not within the recording, the layout is not valid, or a column does not
            exist.
        ArgumentTypeError: If an argument has another type.

    Example:
        ```python
        trades = aeron.read_recording("trades", 7, layout="ts ts_ns, px f64, qty i64")
        table = pyarrow.table(trades)
        ```
    """
    return RecordedBatches(
        _RecordedRows(
            directory,
            recording_id,
            from_position=from_position,
            to_position=to_position,
            layout=layout if layout is None or isinstance(layout, str) else layout_text(layout),
            text=text,
            columns=columns,
            malformed=malformed,
            verify_checksums=verify_checksums,
            sbe=sbe if sbe is None else _sbe_format(sbe),
        )
    )


def _sbe_format(template: Template) -> str:
    if not hasattr(template, "_format_text"):
        raise ArgumentTypeError(f"sbe is a {type(template).__name__}: pass a template such as schema['Trade']")
    return template._format_text()


@final
class RecordedBatches:
    """The messages of a recording as Arrow record batches, which `read_recording` returns.

    An iterator over ``pyarrow.RecordBatch``. Libraries with the Arrow C stream interface read it as a whole:
    ``pyarrow.table(batches)``, ``polars.DataFrame(batches)``, or ``duckdb.sql("SELECT * FROM batches")``. Each row is
    returned once. A batch has up to 4096 rows, so the memory does not grow with the recording.

    Thread-safe: if several threads iterate, each batch goes to one of them.

    Args:
        rows: The rows of the recording.
    """

    def __init__(self, rows: _RecordedRows) -> None:
        self._rows = rows

    @property
    def recording(self) -> Recording:
        """The recording, as the catalog described it when `read_recording` was called."""
        return self._rows.recording

    @property
    def schema(self) -> pa.Schema:
        """The schema of the record batches. Its metadata name the recording, its stream and its channel."""
        import pyarrow as pa

        return pa.schema(self._rows)

    @property
    def from_position(self) -> int:
        """Position of the first frame that is read, in bytes."""
        return self._rows.from_position

    @property
    def to_position(self) -> int:
        """End of the range, in bytes: messages that begin before this position are read."""
        return self._rows.to_position

    @property
    def position(self) -> int:
        """Position up to which all messages were returned, in bytes.

        To continue later, pass this position as ``from_position``. After the last batch, the position is
        `to_position`, or the start of the last message if its end is not recorded yet.
        """
        return self._rows.position

    @property
    def malformed(self) -> int:
        """Number of malformed messages and records so far: left out, or kept as rows without values."""
        return self._rows.malformed

    @property
    def skipped(self) -> int:
        """Number of messages so far that were left out because they have another template or schema."""
        return self._rows.skipped

    @property
    def unknown(self) -> int:
        """Number of values of enums so far that the SBE schema does not know. They are null."""
        return self._rows.unknown

    def __iter__(self) -> Self:
        """Returns itself."""
        return self

    def __next__(self) -> pa.RecordBatch:
        """Returns the next record batch, which has at least one row."""
        import pyarrow as pa

        batch = pa.record_batch(next(self._rows))
        return batch.replace_schema_metadata(self.schema.metadata)

    def __arrow_c_schema__(self) -> object:
        """Returns the schema, for Arrow libraries."""
        return self._rows.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the remaining record batches, for Arrow libraries. A requested schema is ignored."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def export(
        self,
        output: str | PathLike[str],
        *,
        format: ExportFormat | None = None,
        compression: str = "zstd",
        row_group_rows: int = 1_048_576,
        max_rows_per_file: int | None = None,
        max_bytes_per_file: int | None = None,
        overwrite: bool = False,
        on_progress: Callable[[int, int], object] | None = None,
    ) -> RecordingExport:
        """Writes the remaining record batches to a Parquet or Arrow file, or to a directory of such files.

        The file gets its name when it is complete and on the disk. If the export fails or is interrupted, no file is
        left, and an existing file stays as it was. If the process is killed, a file or directory may stay. Its name
        begins with a dot and ends in ``.tmp``.

        Args:
            output: Path of the file; with a limit per file, path of the directory. Its files are
                ``part-00000.parquet``, ``part-00001.parquet`` and so on. The parent directory must exist.
            format: ``"parquet"`` or ``"arrow"`` (Arrow IPC, also known as Feather). `None` chooses by the suffix of
                `output`: Arrow for ``.arrow``, ``.feather`` and ``.ipc``, Parquet for all others.
            compression: ``"zstd"``, ``"lz4"`` or ``"none"``; Parquet also has ``"snappy"``, ``"gzip"`` and
                ``"brotli"``.
            row_group_rows: Maximum number of rows of a row group in Parquet, and of a record batch in Arrow. A row
                group or record batch also ends at 64 MiB, so that the memory stays bounded.
            max_rows_per_file: Number of rows after which the next file begins.
            max_bytes_per_file: Length of a file in bytes at which the next file begins, at the end of a row group.
            overwrite: Whether an existing file is replaced. A directory is replaced only if it is an earlier export.
            on_progress: Function that is called with the number of bytes that were read so far, and the number of all
                bytes of the range. If the function raises, the export ends.

        Returns:
            Counts and files of the export.

        Raises:
            ImportError: If pyarrow is not installed.
            FileExistsError: If the output exists, and `overwrite` is not set or cannot replace it.
            OSError: If a file cannot be written, for example because the disk is full.
            ArchiveDirectoryError: If the recording is damaged or a segment file is missing.
            InvalidArgumentError: If an option is not valid, or if a message does not fit the layout.
            ArgumentTypeError: If `output` is not a path, or a number is not an integer.

        Example:
            ```python
            exported = aeron.read_recording("trades", 7).export("trades.parquet")
            print(exported.rows, exported.to_position)
            ```
        """
        from aeron.export import ExportOptions, export

        options = ExportOptions(
            output,
            format=format,
            compression=compression,
            row_group_rows=row_group_rows,
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=max_bytes_per_file,
            overwrite=overwrite,
        )
        return export(self, options, on_progress)


# Users import the class from `aeron`, so reprs and pickles name that module.
RecordedBatches.__module__ = "aeron"

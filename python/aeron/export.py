"""Writes the record batches of a recording to Parquet and Arrow files."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from aeron.exceptions import ArgumentRangeError, ArgumentTypeError, InvalidArgumentError
from aeron.export_output import Output, OutputDirectory, OutputFile
from aeron.types import ExportFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from aeron.export_files import ExportFile
    from aeron.recorded_batches import RecordedBatches

__all__ = ["ExportOptions", "RecordingExport", "export"]

ROW_GROUP_BYTES = 64 << 20
"""Bytes of the columns in memory at which a row group ends."""

COMPRESSIONS: dict[ExportFormat, tuple[str, ...]] = {
    "parquet": ("zstd", "lz4", "snappy", "gzip", "brotli", "none"),
    "arrow": ("zstd", "lz4", "none"),
}
"""Names of the compressions that each format has."""

_ARROW_SUFFIXES = frozenset({".arrow", ".feather", ".ipc"})
_MOST = 2**63 - 1


@dataclass(frozen=True)
class RecordingExport:
    """Counts and files of an export, which `RecordedBatches.export` returns. Immutable.

    Args:
        recording_id: Id of the recording.
        from_position: Position at which the exported range begins, in bytes.
        to_position: Position up to which all messages were exported. A later export with this position as its
            ``from_position`` continues without a gap.
        rows: Number of exported rows.
        malformed: Number of malformed messages and records: left out, or kept as rows without values.
        skipped: Number of messages that were left out because they have another template or schema.
        unknown: Number of values of enums that the SBE schema does not know. They are null.
        files: Paths of the files.
        file_bytes: Length of all files, in bytes.
    """

    recording_id: int
    from_position: int
    to_position: int
    rows: int
    malformed: int
    skipped: int
    unknown: int
    files: tuple[Path, ...]
    file_bytes: int


# Users import the class from `aeron`, so reprs and pickles name that module.
RecordingExport.__module__ = "aeron"


class ExportOptions:
    """The checked options of `RecordedBatches.export`."""

    def __init__(
        self,
        output: str | PathLike[str],
        *,
        format: ExportFormat | None,
        compression: str,
        row_group_rows: int,
        max_rows_per_file: int | None,
        max_bytes_per_file: int | None,
        overwrite: bool,
    ) -> None:
        path = _path(output)
        is_arrow = path.suffix.lower() in _ARROW_SUFFIXES
        self.format: ExportFormat = format or ("arrow" if is_arrow else "parquet")
        if self.format not in get_args(ExportFormat):
            raise InvalidArgumentError(f"format={format!r} is not 'parquet' or 'arrow'")
        known = COMPRESSIONS[self.format]
        if compression not in known:
            raise InvalidArgumentError(
                f"compression={compression!r} does not exist in format {self.format}: use one of {', '.join(known)}"
            )
        self.compression = compression
        self.row_group_rows = _count("row_group_rows", row_group_rows)
        self.max_rows_per_file = _limit("max_rows_per_file", max_rows_per_file)
        self.max_bytes_per_file = _limit("max_bytes_per_file", max_bytes_per_file)
        is_divided = max_rows_per_file is not None or max_bytes_per_file is not None
        self.output: Output = OutputDirectory(path, overwrite) if is_divided else OutputFile(path, overwrite)


def export(
    batches: RecordedBatches, options: ExportOptions, on_progress: Callable[[int, int], object] | None
) -> RecordingExport:
    """Writes the remaining record batches to the output that the options name."""
    begin, length = batches.position, batches.to_position - batches.position

    def read() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if on_progress is not None:
                on_progress(min(batches.position - begin, length), length)
            yield batch

    with options.output as output:
        rows = _write(row_groups(read(), options), batches.schema, output, options)
    return RecordingExport(
        recording_id=batches.recording.recording_id,
        from_position=begin,
        to_position=batches.position,
        rows=rows,
        malformed=batches.malformed,
        skipped=batches.skipped,
        unknown=batches.unknown,
        files=output.files,
        file_bytes=sum(path.stat().st_size for path in output.files),
    )


def row_groups(batches: Iterator[pa.RecordBatch], options: ExportOptions) -> Iterator[pa.Table]:
    """Joins batches to tables with as many rows as a row group may have. A table also ends at the limit of bytes."""
    import pyarrow as pa

    most_rows = min(options.row_group_rows, options.max_rows_per_file)
    most_bytes = min(ROW_GROUP_BYTES, options.max_bytes_per_file)
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        rest = batch
        while rest.num_rows:
            part = rest.slice(0, most_rows - rows)
            rest = rest.slice(part.num_rows)
            waiting.append(part)
            rows += part.num_rows
            size += part.nbytes
            if rows == most_rows or size >= most_bytes:
                yield pa.Table.from_batches(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _write(tables: Iterator[pa.Table], schema: pa.Schema, output: Output, options: ExportOptions) -> int:
    """Writes each table as a row group. Returns the number of rows. If there are no rows, writes one file without
    rows."""
    from aeron.export_files import ExportFile

    def new_file() -> ExportFile:
        path = output.new_file(options.format)
        return ExportFile(path, output.path, schema, options.format, options.compression)

    rows = 0
    file = new_file()
    try:
        for table in tables:
            left = table
            while left.num_rows:
                if file.rows == options.max_rows_per_file or file.length >= options.max_bytes_per_file:
                    file.close()
                    file = new_file()
                part = left.slice(0, options.max_rows_per_file - file.rows)
                file.write(part)
                left = left.slice(part.num_rows)
            rows += table.num_rows
        file.close()
    except BaseException:
        file.abandon()
        raise
    return rows


def _path(output: str | PathLike[str]) -> Path:
    try:
        path = Path(output)
    except TypeError as error:
        raise ArgumentTypeError(f"output={output!r} is not a path: pass a str or an os.PathLike") from error
    if not path.name or path.name == "..":
        raise InvalidArgumentError(f"output={str(output)!r} names no file")
    return path


def _limit(name: str, value: int | None) -> int:
    return _MOST if value is None else _count(name, value)


def _count(name: str, value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(f"{name}={value!r} is not an integer") from error
    if not 1 <= number <= _MOST:
        raise ArgumentRangeError(f"{name}={number} is not within 1 to {_MOST}")
    return number

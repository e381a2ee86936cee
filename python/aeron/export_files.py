"""`ExportFile`: one Parquet or Arrow file of an export."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

if TYPE_CHECKING:
    from aeron.types import ExportFormat

__all__ = ["ExportFile"]


class ExportFile:
    """A file that is written table by table. Each table becomes a row group or an Arrow record batch.

    Errors name `output`, the path that the user knows.
    """

    def __init__(self, path: Path, output: Path, schema: pa.Schema, format: ExportFormat, compression: str) -> None:
        self.rows = 0
        self._path, self._output = path, output
        self._writer: Any = None
        with self._explained():
            self._file = pa.OSFile(str(path), "wb")
            try:
                self._writer = self._new_writer(schema, format, compression)
            except BaseException:
                self.abandon()
                raise

    def _new_writer(self, schema: pa.Schema, format: ExportFormat, compression: str) -> object:
        if format == "parquet":
            return pa.parquet.ParquetWriter(self._file, schema, compression=compression)
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        return pa.ipc.new_file(self._file, schema, options=options)

    @property
    def length(self) -> int:
        """Number of bytes that were written so far."""
        length: int = self._file.tell()
        return length

    def write(self, table: pa.Table) -> None:
        """Writes a table, which has at least one row.

        Raises:
            OSError: the file system refuses the bytes.
        """
        with self._explained():
            if isinstance(self._writer, pa.parquet.ParquetWriter):
                self._writer.write_table(table, row_group_size=table.num_rows)
            else:
                self._writer.write_table(table.combine_chunks())
        self.rows += table.num_rows

    def close(self) -> None:
        """Completes the file, and forces it to the disk.

        Raises:
            OSError: the file system refuses the bytes.
        """
        with self._explained():
            self._writer.close()
            self._file.close()
            with self._path.open("rb") as file:
                os.fsync(file.fileno())

    def abandon(self) -> None:
        """Closes the file without completing it. Does nothing after `close`."""
        self._writer = None
        with contextlib.suppress(OSError):
            self._file.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Replaces errors of the file system with errors that name the file."""
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            text = f"{reason}: the export ends, and its files are removed"
            raise OSError(error.errno, text, str(self._output)) from error

"""The place of an export's files. The files are written under a temporary name, and get their final name at the
end.

The temporary name begins with a dot. Spark, DuckDB and ``pyarrow.dataset`` ignore such files in a directory. If the
process is killed, only a file or directory with a temporary name is left.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from aeron._folder import Folder

__all__ = ["Output", "OutputDirectory", "OutputFile"]

_PART = re.compile(r"part-\d{5,}\.(parquet|arrow)")


class Output(ABC):
    """A context manager: leaving the block gives the output its final name, or removes the output if the
    block raises.

    Args:
        path: Path of the output.
        overwrite: Whether an existing output is replaced.

    Attributes:
        files: Paths of all files, after the block.
    """

    def __init__(self, path: Path, overwrite: bool) -> None:
        self.path = path
        self.files: tuple[Path, ...] = ()
        self._overwrite = overwrite
        self._temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")

    def __enter__(self) -> Self:
        """Before anything is read, refuses an output that must not be replaced, or that has no parent directory."""
        parent = self.path.parent
        if not parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the directory of the output does not exist", str(parent))
        self._folder = Folder(parent)
        try:
            self._check()
            self._begin()
        except BaseException:
            self._folder.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Gives the output its final name, or removes it."""
        with self._folder:
            try:
                if kind is None:
                    # Another process may have created the output in the meantime.
                    self._check()
                    self._publish()
            finally:
                self._remove()

    def _begin(self) -> None:  # noqa: B027
        """Prepares the output. An output of one file needs nothing."""

    @abstractmethod
    def new_file(self, suffix: str) -> Path:
        """Returns the path under which the next file is written."""

    @abstractmethod
    def _check(self) -> None:
        """Refuses an output that exists and must not be replaced."""

    @abstractmethod
    def _publish(self) -> None:
        """Gives the output its final name."""

    @abstractmethod
    def _remove(self) -> None:
        """Removes the file or directory with the temporary name."""

    def _exists(self, reason: str) -> FileExistsError:
        return self._folder.exists(self.path.name, reason)


class OutputFile(Output):
    """An output of one file."""

    def new_file(self, suffix: str) -> Path:
        """Returns the temporary path."""
        return self._temporary

    def _check(self) -> None:
        mode = self._folder.mode(self.path.name)
        if mode is None:
            return
        if stat.S_ISDIR(mode):
            raise self._exists("the output is a directory: name a file in it, or limit the rows or bytes of a file")
        self._folder.check(self.path.name)
        if not self._overwrite:
            raise self._exists("the output exists: overwrite=True (--force) replaces it")

    def _publish(self) -> None:
        self._folder.replace(self._temporary.name, self.path.name)
        self.files = (self.path,)

    def _remove(self) -> None:
        self._temporary.unlink(missing_ok=True)


class OutputDirectory(Output):
    """An output of several files in a directory of their own."""

    def _begin(self) -> None:
        """Creates the directory under the temporary name."""
        self._temporary.mkdir()
        self._count = 0

    def new_file(self, suffix: str) -> Path:
        """Returns the path of the next part."""
        self._count += 1
        return self._temporary / f"part-{self._count - 1:05d}.{suffix}"

    def _check(self) -> None:
        mode = self._folder.mode(self.path.name)
        if mode is None:
            return
        if not stat.S_ISDIR(mode):
            raise self._exists("the output is not a directory, which an export of several files needs")
        if self._folder.is_owned:
            raise self._exists("the output is in the directory of an archive or a driver: use another path")
        if self._check_parts(self.path) and not self._overwrite:
            raise self._exists("the output exists: overwrite=True (--force) replaces it")

    def _check_parts(self, directory: Path) -> list[Path]:
        """Returns the files of an earlier export. Refuses a directory with anything else."""
        parts = []
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            if not _PART.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                raise self._exists(
                    f"the output has the file '{entry.name}', which is not of an export: it is not replaced"
                )
            parts.append(directory / entry.name)
        return parts

    def _publish(self) -> None:
        if self._folder.mode(self.path.name) is not None:
            old = self._temporary.with_suffix(".old")
            self._folder.rename_directory(self.path.name, old.name)
            try:
                # A file that another process has added since the check must not be lost.
                parts = self._check_parts(old)
                self._folder.rename_directory(self._temporary.name, self.path.name)
            except BaseException:
                self._folder.rename_directory(old.name, self.path.name)
                raise
            for part in parts:
                part.unlink()
            old.rmdir()
        else:
            self._folder.rename_directory(self._temporary.name, self.path.name)
        self.files = tuple(sorted(self.path.iterdir()))

    def _remove(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)

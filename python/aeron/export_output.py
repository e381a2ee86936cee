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
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

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
        self._check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Gives the output its final name, or removes it."""
        try:
            if kind is None:
                # Another process may have created the output in the meantime.
                self._check()
                self._publish()
        finally:
            self._remove()

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
        return FileExistsError(errno.EEXIST, reason, str(self.path))


class OutputFile(Output):
    """An output of one file."""

    def new_file(self, suffix: str) -> Path:
        """Returns the temporary path."""
        return self._temporary

    def _check(self) -> None:
        if self.path.is_dir():
            raise self._exists("the output is a directory: name a file in it, or limit the rows or bytes of a file")
        if not self._overwrite and os.path.lexists(self.path):
            raise self._exists("the output exists: overwrite=True (--force) replaces it")

    def _publish(self) -> None:
        os.replace(self._temporary, self.path)
        self.files = (self.path,)

    def _remove(self) -> None:
        self._temporary.unlink(missing_ok=True)


class OutputDirectory(Output):
    """An output of several files in a directory of their own."""

    def __enter__(self) -> Self:
        """Creates the directory under the temporary name."""
        super().__enter__()
        self._temporary.mkdir()
        self._count = 0
        return self

    def new_file(self, suffix: str) -> Path:
        """Returns the path of the next part."""
        self._count += 1
        return self._temporary / f"part-{self._count - 1:05d}.{suffix}"

    def _check(self) -> None:
        if not os.path.lexists(self.path):
            return
        if self.path.is_symlink() or not self.path.is_dir():
            raise self._exists("the output is not a directory, which an export of several files needs")
        names = sorted(path.name for path in self.path.iterdir())
        if names and not self._overwrite:
            raise self._exists("the output exists: overwrite=True (--force) replaces it")
        foreign = [name for name in names if not _PART.fullmatch(name)]
        if foreign:
            raise self._exists(f"the output has the file '{foreign[0]}', which is not of an export: it is not replaced")

    def _publish(self) -> None:
        if self.path.exists():
            old = self._temporary.with_suffix(".old")
            self.path.rename(old)
            try:
                self._temporary.rename(self.path)
            except BaseException:
                old.rename(self.path)
                raise
            shutil.rmtree(old)
        else:
            self._temporary.rename(self.path)
        self.files = tuple(sorted(self.path.iterdir()))

    def _remove(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)

"""`Folder`: the directory of a file whose name comes from outside, and the rules for what may be replaced there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Self

__all__ = ["Folder", "is_owned", "open_regular"]

_OWNED = ("archive.catalog", "archive-mark.dat", "archive-mark.lnk", "archive.lock", "private.lock", "cnc.dat")
"""Files by which the directory of an archive or of a driver is recognised."""


class Folder:
    """An open directory. Checks and renames use the open directory, so both apply to the same one even if another
    process moves it.

    Args:
        path: Path of the directory.

    Raises:
        OSError: The directory cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    @property
    def is_owned(self) -> bool:
        """Whether the directory belongs to an archive or a driver."""
        # A driver has its log buffers in directories below its own.
        return any(self._has(name) for name in (*_OWNED, "../cnc.dat"))

    def mode(self, name: str) -> int | None:
        """Returns the mode of a file, and of a link itself. Returns ``None`` if there is no file."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def check(self, name: str) -> None:
        """Checks that a file may get this name. An existing file must be a regular file or a link.

        Raises:
            FileExistsError: The file has another type, or it is in the directory of an archive or a driver.
        """
        mode = self.mode(name)
        if mode is None:
            return
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise self.exists(name, "the output is not a regular file, and is never replaced")
        if self.is_owned:
            raise self.exists(name, "the output is a file in the directory of an archive or a driver: use another path")

    def replace(self, temporary: str, name: str) -> None:
        """Renames a file of the directory. Replaces an existing regular file or link, and never the target of a link.

        Raises:
            FileExistsError: As for `check`.
            OSError: The file system refuses the new name.
        """
        self.check(name)
        os.replace(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def rename_directory(self, name: str, new_name: str) -> None:
        """Renames a directory of this directory. The new name must not exist, or must be an empty directory."""
        os.rename(name, new_name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def exists(self, name: str, reason: str) -> FileExistsError:
        """Returns an error about an existing file."""
        return FileExistsError(errno.EEXIST, reason, str(self.path / name))

    def close(self) -> None:
        """Closes the directory."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Returns the directory."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the directory."""
        self.close()

    def _has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return False
        return True


def is_owned(path: str) -> bool:
    """Returns whether the path names an existing file in the directory of an archive or a driver. Links are
    followed."""
    target = Path(os.path.realpath(path))
    if not target.is_file():
        return False
    with Folder(target.parent) as folder:
        return folder.is_owned


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file for reading.

    Raises:
        OSError: The path names no regular file. A pipe would block the process, also at a signal.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "the file is not a regular file", str(path))

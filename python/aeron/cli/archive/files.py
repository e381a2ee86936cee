"""Helpers of the commands on an archive's directory: files, mark file, progress bars and confirmations."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

import aeron
from aeron._pipeline import _ArchiveFiles, _ArchiveMark, _CatalogEntry, _read_archive_mark
from aeron.cli.text import printable_lines

MISUSED = 255
"""Exit status of Aeron's ArchiveTool if the command or the directory is wrong, and if a recording is broken."""

MARK_TIMEOUT_S = 5.0
"""Time for which Aeron's ArchiveTool waits for a mark file, in seconds."""

_REFRESH_INTERVAL_S = 0.2

RECORDING_ID = click.IntRange(0, 2**63 - 1)

POSITION = click.IntRange(0, 2**63 - 1)

F = TypeVar("F", bound=Callable[..., object])


class MissingDirectoryError(click.ClickException):
    """The directory does not exist."""

    exit_code = MISUSED


def archive_argument(function: F) -> F:
    """Adds the argument ``DIRECTORY``: the directory with the archive's catalog and recordings."""
    return click.argument("directory", type=click.Path(path_type=str))(function)


def recording_argument(function: F) -> F:
    """Adds the optional argument ``RECORDING_ID``: one recording instead of all."""
    return click.argument("recording_id", type=RECORDING_ID, required=False)(function)


def json_option(function: F) -> F:
    """Adds the option ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def all_option(function: F) -> F:
    """Adds the option ``--all``: all segment files instead of the last one."""
    return click.option(
        "-a", "--all", "all_segments", is_flag=True, help="Process all segment files, not just the last one."
    )(function)


def yes_option(function: F) -> F:
    """Adds the option ``--yes``: do not ask."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(function)


class UnknownCommandError(click.UsageError):
    """The command does not exist."""

    exit_code = MISUSED


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turns errors of the package into messages with status 1."""
    try:
        yield
    except (aeron.AeronError, OSError) as error:
        raise click.ClickException(printable_lines(str(error)).rstrip()) from error


def open_files(directory: str, *, write: bool = False) -> _ArchiveFiles:
    """Opens the files of the archive in a directory. The files can be changed only if no archive uses the
    directory.

    Raises:
        click.ClickException: the directory is missing (status 255) or in use, or its catalog cannot be used.
    """
    check_directory(directory)
    with explained():
        return _ArchiveFiles(directory, write=write)


def check_directory(directory: str) -> None:
    """Refuses a path that is not a directory.

    Raises:
        MissingDirectoryError: the directory does not exist.
    """
    if not os.path.isdir(directory):
        raise MissingDirectoryError(f"Archive folder not found: {directory}")


def entries_of(files: _ArchiveFiles, recording_id: int | None) -> list[_CatalogEntry]:
    """Returns the entry of a recording in any state. Without a recording id, returns all entries."""
    with explained():
        return files.entries() if recording_id is None else [files.entry(recording_id)]


def mark_file(directory: str) -> _ArchiveMark:
    """Waits until the archive is ready, and returns its mark file.

    Raises:
        click.ClickException: no mark file was ready within 5 s, or the mark file cannot be used.
    """
    check_directory(directory)
    deadline = time.monotonic() + MARK_TIMEOUT_S
    while True:
        with explained():
            mark = _read_archive_mark(directory)
        if mark is not None and mark.version != 0 and mark.activity_timestamp_ms != 0:
            return mark
        if time.monotonic() > deadline:
            state = "missing file" if mark is None else "archive is not ready"
            raise click.ClickException(f"{state} for archive-mark.dat: {os.path.join(directory, 'archive-mark.dat')}")
        time.sleep(0.02)


def print_json(value: object) -> None:
    """Prints a value as JSON."""
    click.echo(json.dumps(value, indent=2))


class Bar:
    """A progress bar on stderr. It appears if the command has printed nothing for a moment."""

    def __init__(self, progress: Progress | None, total_bytes: int) -> None:
        self._progress = progress
        self._task = None if progress is None else progress.add_task("", total=total_bytes)
        self._done_bytes = 0
        self._is_shown = False
        self._shown_at = time.monotonic()

    def advance(self, done_bytes: int) -> None:
        """Adds to the number of bytes that are done."""
        self.reach(self._done_bytes + done_bytes)

    @property
    def is_visible(self) -> bool:
        """Whether the bar can appear."""
        return self._progress is not None

    def reach(self, done_bytes: int, total_bytes: int | None = None) -> None:
        """Sets the number of bytes that are done, and the total if it has changed."""
        self._done_bytes = done_bytes
        now = time.monotonic()
        if self._progress is None or self._task is None or now - self._shown_at < _REFRESH_INTERVAL_S:
            return
        self._progress.update(self._task, completed=done_bytes, total=total_bytes)
        if not self._is_shown:
            self._progress.start()
            self._is_shown = True
        self._progress.refresh()
        self._shown_at = now

    def clear(self) -> None:
        """Removes the bar, before another text is written to the terminal."""
        if self._progress is not None and self._is_shown:
            self._progress.stop()
        self._is_shown = False
        self._shown_at = time.monotonic()

    def echo(self, text: str) -> None:
        """Prints a line to stdout."""
        if sys.stdout.isatty():
            self.clear()
        click.echo(text)


@contextlib.contextmanager
def progress_bar(title: str, total_bytes: int, *, hidden: bool) -> Iterator[Bar]:
    """Yields a progress bar. It stays invisible if `hidden` is set or stderr is not a terminal."""
    progress = None
    if not hidden and sys.stderr.isatty():
        # Rich must not redirect standard output to the terminal, because standard output may be a file.
        progress = Progress(
            TextColumn(title),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
    bar = Bar(progress, total_bytes)
    try:
        yield bar
    finally:
        bar.clear()


def confirmed(warning: str, yes: bool) -> bool:
    """Returns whether the user agrees. With ``yes``, the user is not asked."""
    return yes or click.confirm(f"WARNING: {warning}\nContinue?", err=True)

"""Helpers of the commands on a running archive: their options, the session, and the output of recording signals."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import click

import aeron
from aeron.cli.options import STREAM_ID, client_options
from aeron.cli.session import session
from aeron.cli.text import printable_lines

F = TypeVar("F", bound=Callable[..., object])

SIGNAL_TIMEOUT_S = 0.1
"""Interval in seconds at which a command that waits for signals checks whether it must end."""


@dataclass
class ArchiveSession:
    """A client of an archive, the event that ends the command, and errors that belong to no request."""

    archive: aeron.AeronArchive
    stop: aeron.ShutdownSignalBarrier
    errors: list[Exception]

    def check(self) -> None:
        """Checks the errors that the archive has reported.

        Raises:
            click.ClickException: an error that belongs to no request.
        """
        if self.errors:
            raise click.ClickException(printable_lines(str(self.errors[0])).rstrip())

    def signals(self) -> Iterator[aeron.RecordingSignal]:
        """Yields signals of recordings until the command must end.

        Raises:
            click.ClickException: the archive reports an error, or the session has ended.
        """
        while not self.stop.is_signalled:
            with contextlib.suppress(aeron.ArchiveDisconnectedError):
                yield from self.archive.signals(timeout=SIGNAL_TIMEOUT_S)
            self.check()
            if self.archive.is_closed or self.archive.state != "CONNECTED":
                raise click.ClickException("the archive has ended the session")


@dataclass
class Target:
    """The archive that a command uses, and the driver through which the command reaches the archive."""

    directory: str
    embedded: bool
    driver_timeout_s: float | None
    control_channel: str | None
    control_stream_id: int | None
    response_channel: str | None
    credentials: str | None


def archive_options(function: F) -> F:
    """Adds the options of a :class:`Target`. The command gets the target as the argument ``target``."""
    options = [
        client_options,
        click.option(
            "--control-channel",
            metavar="URI",
            show_default="AERON_ARCHIVE_CONTROL_CHANNEL, else aeron:ipc",
            help="Channel for requests to the archive.",
        ),
        click.option(
            "--control-stream",
            "control_stream_id",
            type=STREAM_ID,
            show_default="AERON_ARCHIVE_CONTROL_STREAM_ID, else 10",
            help="Stream id for requests.",
        ),
        click.option(
            "--response-channel",
            metavar="URI",
            show_default="AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL, else IPC or a free local port",
            help="Channel for responses. Required for an archive on another host.",
        ),
        click.option(
            "--credentials",
            envvar="AERON_ARCHIVE_CREDENTIALS",
            show_envvar=True,
            help="Credentials: NAME:SECRET for an archive of this project. Prefer the variable: other users can see "
            "the command line.",
        ),
    ]

    @functools.wraps(function)
    def with_target(**arguments: Any) -> object:
        target = Target(**{each.name: arguments.pop(each.name) for each in dataclasses.fields(Target)})
        return function(target=target, **arguments)

    wrapped: Any = with_target
    for option in reversed(options):
        wrapped = option(wrapped)
    return cast(F, wrapped)


@contextlib.contextmanager
def archive_session(target: Target) -> Iterator[ArchiveSession]:
    """Yields a session with the archive. After SIGINT or SIGTERM the command closes the session and ends.

    Raises:
        click.ClickException: an error of the driver or the archive.
    """
    errors: list[Exception] = []
    with session(target.directory, target.embedded, target.driver_timeout_s) as (client, stop):
        archive = aeron.connect_archive(
            client,
            control_channel=target.control_channel,
            control_stream_id=target.control_stream_id,
            response_channel=target.response_channel,
            credentials=None if target.credentials is None else target.credentials.encode(),
            client_name="aeron archive",
            error_handler=errors.append,
        )
        with archive:
            yield ArchiveSession(archive, stop, errors)


def signal_as_json(signal: aeron.RecordingSignal) -> str:
    """Returns the signal as a JSON object in one line."""
    return json.dumps(
        {
            "signal": signal.signal,
            "recording_id": signal.recording_id,
            "subscription_id": signal.subscription_id,
            "position": signal.position,
            "correlation_id": signal.correlation_id,
        }
    )


def signal_line(signal: aeron.RecordingSignal) -> str:
    """Returns the signal as a line of text."""
    return f"{signal.signal} recordingId={signal.recording_id} position={signal.position}"

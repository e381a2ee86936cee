"""``aeron archive replay`` and ``follow``: print the messages of a recording, to its end or while it is active."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import click

import aeron
from aeron._folder import is_owned
from aeron.cli.archive.files import POSITION, RECORDING_ID, json_option, progress_bar
from aeron.cli.archive.live import ArchiveSession, Target, archive_options, archive_session
from aeron.cli.options import STREAM_ID, Number, size
from aeron.cli.sbe_text import sbe_option, schema_in, text_of, values_of
from aeron.cli.text import printable
from aeron.cli.timestamps import moment, time_options

if TYPE_CHECKING:
    from aeron.sbe import Schema

F = TypeVar("F", bound=Callable[..., object])

_BATCH_LIMIT = 4096
_BATCH_TIMEOUT_S = 0.1
"""Interval in seconds at which a command that waits for messages checks whether it must end."""


class _PayloadFile(click.File):
    """A file for payloads. Its former content is lost, so it must not be a file of an archive or a driver."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Opens the file, which the command closes."""
        if value != "-" and is_owned(os.fspath(value)):
            self.fail(f"'{value}' is a file in the directory of an archive or a driver: use another path", param, ctx)
        return super().convert(value, param, ctx)


def _replay_options(function: F) -> F:
    """Adds the options that both commands have."""
    options = [
        click.argument("recording_id", type=RECORDING_ID),
        archive_options,
        click.option("-c", "--channel", default="aeron:ipc", show_default=True, help="Channel for the replay."),
        click.option(
            "-s",
            "--stream",
            "stream_id",
            type=STREAM_ID,
            default=100,
            show_default=True,
            help="Stream id for the replay.",
        ),
        click.option(
            "-m", "--messages", type=click.IntRange(min=1), help="End after this number of messages.  [default: all]"
        ),
        click.option(
            "-L",
            "--length",
            type=size,
            default="16m",
            help="Show at most this number of bytes of a message.  [default: all]",
        ),
        click.option(
            "-o",
            "--output",
            type=_PayloadFile("wb", lazy=False),
            help="Write the payloads to a file or a pipe, without separators, instead of printing them.",
        ),
        sbe_option,
        json_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _pace_options(function: F) -> F:
    """Adds the options ``--rate`` and ``--speed``."""
    rate = click.option("--rate", type=size, help="Replay at most this number of bytes per second, such as 10m.")
    speed = click.option(
        "--speed",
        type=Number(min=0.000_001, max=1_000_000),
        help="Factor of the recorded pace: the intervals between messages are divided by this number.",
    )
    wrapped: Any = rate(speed(function))
    return cast(F, wrapped)


@click.command("replay")
@_replay_options
@click.option("--from", "position", type=POSITION, help="Position to begin at.  [default: the start]")
@click.option("--to", "to", type=POSITION, help="Position to end at.  [default: the recorded end at this moment]")
@time_options("messages that arrived")
@_pace_options
def replay(
    *,
    target: Target,
    recording_id: int,
    channel: str,
    stream_id: int,
    messages: int | None,
    length: int,
    output: BinaryIO | None,
    sbe: str | None,
    as_json: bool,
    position: int | None,
    to: int | None,
    since: datetime | None,
    until: datetime | None,
    rate: int | None,
    speed: float | None,
) -> None:
    """Print the messages of the recording RECORDING_ID of a running archive, each with the position after it.

    With --json each message is an object in one line, with the payload in hexadecimal digits; with --sbe too, with the
    name of the message's template and its values. --since and --until take a time in ISO 8601, or an age such as 15m.
    """
    schema = None if sbe is None else schema_in(sbe)
    _check_edges(position, since, "--from", "--since")
    _check_edges(to, until, "--to", "--until")
    with archive_session(target) as session:
        begin = _position_at(session, recording_id, position, since=since)
        end = _position_at(session, recording_id, to, until=until)
        if begin is None:
            begin = session.archive.get_start_position(recording_id)
        if end is None:
            end = session.archive.get_max_recorded_position(recording_id)
        if begin == end:
            return
        if begin > end:
            raise click.UsageError(f"the range begins at position {begin}, which is after its end {end}")
        replayed = session.archive.replay(
            recording_id, channel, stream_id, position=begin, length=end - begin, rate=rate, speed=speed
        )
        printer = _Printer(recording_id, length, as_json, output, schema)
        with progress_bar("replaying", end - begin, hidden=output is None) as bar:
            _print(session, replayed, printer, messages, lambda position: bar.reach(position - begin))


@click.command("follow")
@_replay_options
@click.option("--from", "position", type=POSITION, help="Position to begin at.  [default: the start]")
@click.option("--live", is_flag=True, help="Begin at the position that is recorded at this moment.")
@click.option(
    "--since", type=moment, metavar="TIME", help="Begin with the messages that arrived at or after this time."
)
@_pace_options
def follow(
    *,
    target: Target,
    recording_id: int,
    channel: str,
    stream_id: int,
    messages: int | None,
    length: int,
    output: BinaryIO | None,
    sbe: str | None,
    as_json: bool,
    position: int | None,
    live: bool,
    since: datetime | None,
    rate: int | None,
    speed: float | None,
) -> None:
    """Print messages while the recording RECORDING_ID is recorded, until it stops or until Ctrl-C."""
    schema = None if sbe is None else schema_in(sbe)
    _check_edges(position, since, "--from", "--since")
    _check_edges(True if live else None, since, "--live", "--since")
    with archive_session(target) as session:
        position = _position_at(session, recording_id, position, since=since)
        if live:
            position = session.archive.get_max_recorded_position(recording_id)
            if session.archive.get_stop_position(recording_id) == position:
                return
        replayed = session.archive.replay(
            recording_id,
            channel,
            stream_id,
            position=position,
            length=aeron.REPLAY_ALL_AND_FOLLOW,
            rate=rate,
            speed=speed,
        )
        printer = _Printer(recording_id, length, as_json, output, schema)
        _print(session, replayed, printer, messages, lambda _: None)


def _check_edges(position: object, time: datetime | None, position_name: str, time_name: str) -> None:
    """Refuses two options for the same edge of a range.

    Raises:
        click.UsageError: both are given.
    """
    if position is not None and time is not None:
        raise click.UsageError(f"{position_name} and {time_name} are both given: choose one of them")


def _position_at(
    session: ArchiveSession,
    recording_id: int,
    position: int | None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> int | None:
    """Returns the position at one edge of a range. The edge is given as a position or as a time. Returns ``None`` if
    neither is given."""
    if since is None and until is None:
        return position
    found = session.archive.find_position(recording_id, since=since, until=until)
    if found.is_approximate:
        edge = "--since" if until is None else "--until"
        click.echo(f"{edge}: the recording has no index for this time: the range has whole segments", err=True)
    return found.position


def _print(
    session: ArchiveSession,
    replayed: aeron.Subscription,
    printer: _Printer,
    messages: int | None,
    on_position: Callable[[int], None],
) -> None:
    left = messages
    with replayed:
        for batch in _batches(session, printer.recording_id, replayed):
            shown = batch if left is None else batch[:left]
            printer.print(shown)
            on_position(batch.positions[-1])
            if left is not None:
                left -= len(shown)
                if left <= 0:
                    return


def _batches(session: ArchiveSession, recording_id: int, replayed: aeron.Subscription) -> Iterator[aeron.Batch]:
    """Yields batches until the end of the replay, or until the command must end.

    Raises:
        click.ClickException: the archive reports an error, for example that it cannot reach the channel of the replay.
        aeron.AeronError: the stream of the replay ended too early, or the archive does not respond.
    """
    while not session.stop.is_signalled:
        for batch in replayed.batches(_BATCH_LIMIT, timeout=_BATCH_TIMEOUT_S):
            yield batch
            if session.stop.is_signalled:
                return
        session.check()
        if replayed._is_over:
            # For the driver, the stream of a killed archive ends like a complete stream. So this request checks that
            # the archive is alive.
            session.archive.get_stop_position(recording_id)
            return


class _Printer:
    """Prints or writes messages in the form that the options choose."""

    def __init__(
        self, recording_id: int, length: int, as_json: bool, output: BinaryIO | None, schema: Schema | None
    ) -> None:
        self.recording_id, self._length, self._schema = recording_id, length, schema
        self._as_json, self._output = as_json, output

    def print(self, batch: aeron.Batch) -> None:
        """Prints or writes the messages of a batch."""
        if self._output is not None:
            for payload in batch:
                self._output.write(payload)
            self._output.flush()
            return
        lines = self._json_lines(batch) if self._as_json else self._lines(batch)
        click.echo("\n".join(lines))

    def _lines(self, batch: aeron.Batch) -> Iterator[str]:
        for payload, position in zip(batch, batch.positions, strict=True):
            if self._schema is not None:
                text = text_of(self._schema, payload)
            else:
                text = printable(bytes(payload[: self._length]).decode("utf-8", "backslashreplace"))
            yield f"Message to position {position} of recording {self.recording_id} ({len(payload)} bytes) <<{text}>>"

    def _json_lines(self, batch: aeron.Batch) -> Iterator[str]:
        columns = zip(batch, batch.positions, batch.session_ids, batch.reserved_values, strict=True)
        for payload, position, session_id, reserved_value in columns:
            yield json.dumps(
                {
                    "recording_id": self.recording_id,
                    "position": position,
                    "session_id": session_id,
                    "reserved_value": reserved_value,
                    "length": len(payload),
                    **self._json_payload(payload),
                }
            )

    def _json_payload(self, payload: memoryview) -> dict[str, Any]:
        if self._schema is not None:
            return values_of(self._schema, payload)
        return {"payload": payload[: self._length].hex()}

"""``aeron archive replay`` and ``follow``: the messages of a recording, to its end or as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeVar

import click

import aeron
from aeron.cli.archive.files import RECORDING_ID, json_option, progress_bar
from aeron.cli.archive.live import ArchiveSession, Target, archive_options, archive_session
from aeron.cli.options import STREAM_ID, size
from aeron.cli.text import printable

F = TypeVar("F", bound=Callable[..., object])

_BATCH_LIMIT = 4096
_BATCH_TIMEOUT_S = 0.1
"""How often a command without messages looks whether it is to end."""

POSITION = click.IntRange(0, 2**63 - 1)


def _replay_options(function: F) -> F:
    """The options that both commands have."""
    options = [
        click.argument("recording_id", type=RECORDING_ID),
        archive_options,
        click.option("-c", "--channel", default="aeron:ipc", show_default=True, help="Channel of the replay."),
        click.option(
            "-s",
            "--stream",
            "stream_id",
            type=STREAM_ID,
            default=100,
            show_default=True,
            help="Stream id of the replay.",
        ),
        click.option("-m", "--messages", type=click.IntRange(min=1), help="End after so many.  [default: all]"),
        click.option(
            "-L", "--length", type=size, default="16m", help="Show at most so many bytes of a message.  [default: all]"
        ),
        click.option(
            "-o",
            "--output",
            type=click.File("wb", lazy=False),
            help="Write the bytes of the messages to a file, one after the other, instead of printing them.",
        ),
        json_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.command("replay")
@_replay_options
@click.option("--from", "position", type=POSITION, help="Position to begin at.  [default: the start]")
@click.option(
    "--to", "to", type=POSITION, help="Position to end at.  [default: the end, of an active recording by now]"
)
def replay(
    *,
    target: Target,
    recording_id: int,
    channel: str,
    stream_id: int,
    messages: int | None,
    length: int,
    output: BinaryIO | None,
    as_json: bool,
    position: int | None,
    to: int | None,
) -> None:
    """Print the messages of the recording RECORDING_ID of a running archive, with the position after each.

    With --json each message is an object in a line, its payload in hexadecimal digits.
    """
    with archive_session(target) as session:
        begin = session.archive.get_start_position(recording_id) if position is None else position
        end = session.archive.get_max_recorded_position(recording_id) if to is None else to
        if begin == end:
            return
        if begin > end:
            raise click.UsageError(f"--from={begin} is after position {end}, at which the replay ends")
        replayed = session.archive.replay(recording_id, channel, stream_id, position=begin, length=end - begin)
        printer = _Printer(recording_id, length, as_json, output)
        with progress_bar("replaying", end - begin, hidden=output is None) as bar:
            _print(session, replayed, printer, messages, lambda position: bar.reach(position - begin))


@click.command("follow")
@_replay_options
@click.option("--from", "position", type=POSITION, help="Position to begin at.  [default: the start]")
@click.option("--live", is_flag=True, help="Begin at the position that is recorded by now.")
def follow(
    *,
    target: Target,
    recording_id: int,
    channel: str,
    stream_id: int,
    messages: int | None,
    length: int,
    output: BinaryIO | None,
    as_json: bool,
    position: int | None,
    live: bool,
) -> None:
    """Print the messages of the recording RECORDING_ID as they are recorded, until it stops or Ctrl-C."""
    with archive_session(target) as session:
        if live:
            position = session.archive.get_max_recorded_position(recording_id)
            if session.archive.get_stop_position(recording_id) == position:
                return
        replayed = session.archive.replay(
            recording_id, channel, stream_id, position=position, length=aeron.REPLAY_ALL_AND_FOLLOW
        )
        printer = _Printer(recording_id, length, as_json, output)
        _print(session, replayed, printer, messages, lambda _: None)


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
    """Batches until the end of the replay, or until the command is told to end.

    Raises:
        click.ClickException: the archive reports an error, such as that it cannot reach the channel of the replay.
        aeron.AeronError: the replay ended before its end, or the archive does not respond any more.
    """
    while not session.stop.is_signalled:
        for batch in replayed.batches(_BATCH_LIMIT, timeout=_BATCH_TIMEOUT_S):
            yield batch
            if session.stop.is_signalled:
                return
        session.check()
        if replayed._is_over:
            # A driver ends the stream of an archive that died as one that is complete: a live archive still responds.
            session.archive.get_stop_position(recording_id)
            return


class _Printer:
    """Prints or writes messages in the form that the options say."""

    def __init__(self, recording_id: int, length: int, as_json: bool, output: BinaryIO | None) -> None:
        self.recording_id, self._length = recording_id, length
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
                    "payload": payload[: self._length].hex(),
                }
            )

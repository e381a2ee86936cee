"""``aeron receive``: receives files from ``aeron send`` or Aeron's FileSender (docs/spec/06, 4.7).

The sender chooses the name of a file, and any program can send. So a name with a path is refused. A file gets its name
when it is complete, and replaces an existing regular file with that name. Nothing is received into the directory of an
archive or a driver.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

import click

import aeron
from aeron._folder import Folder
from aeron.cli.file_messages import BadMessageError, Chunk, Create, decode
from aeron.cli.options import client_options, stream_options
from aeron.cli.session import session
from aeron.cli.text import printable

_MAX_IDLE_PARK_NS = 10_000_000
_MAX_TRANSFERS = 64
"""Maximum number of incomplete files. Further files are refused."""

Key = tuple[int, int]
"""Session id and correlation id."""


@click.command("receive")
@click.argument("into", default=".", type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path))
@stream_options
@client_options
@click.option("--files", type=click.IntRange(min=1), help="End after this number of files.  [default: no limit]")
def command(
    *,
    into: Path,
    channel: str,
    stream_id: int,
    directory: str,
    embedded: bool,
    driver_timeout_s: float | None,
    files: int | None,
) -> None:
    """Receive files from a channel and stream into the directory INTO (default: the current directory)."""
    with Folder(into) as folder, session(directory, embedded, driver_timeout_s) as (client, stop):
        if folder.is_owned:
            raise click.ClickException(f"{into} is the directory of an archive or a driver: name another directory")
        subscription = client.add_subscription(channel, stream_id)
        click.echo(f"Files stored to {into.resolve()}")
        click.echo(f"Receiving from {channel} on stream id {stream_id}")
        store = _Store(folder, subscription)
        assembler = aeron.FragmentAssembler(store.on_message)
        idle = aeron.BackoffIdleStrategy(max_idle_park_ns=_MAX_IDLE_PARK_NS)
        try:
            while not stop.is_signalled and (files is None or store.complete < files):
                idle(subscription.poll(assembler))
        finally:
            store.close()
    click.echo("Shutting down...")


class _Transfer:
    """A file that is being received. It is a temporary file until it is complete."""

    def __init__(self, folder: Folder, create: Create) -> None:
        self.name, self.length, self._received = create.name, create.length, 0
        self._folder = folder
        # The file is open until `finish` or `abandon` closes it.
        self._file: BinaryIO = tempfile.NamedTemporaryFile(dir=folder.path, prefix=".aeron-", delete=False)  # type: ignore[assignment] # noqa: SIM115

    def write(self, chunk: Chunk) -> bool:
        """Writes a chunk. Returns whether the chunk is the last one of the file."""
        end = chunk.offset + len(chunk.data)
        if chunk.offset < 0 or end > self.length:
            raise BadMessageError(f"bytes {chunk.offset} to {end} are not within the {self.length} bytes of the file")
        if chunk.offset != self._received:
            raise BadMessageError(f"bytes {chunk.offset} to {end} do not follow the first {self._received} bytes")
        self._file.write(chunk.data)
        self._received = end
        return end == self.length

    def finish(self) -> None:
        """Gives the file its name and the default permissions."""
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(self._file.fileno(), 0o666 & ~mask)
        self._file.close()
        self._folder.replace(os.path.basename(self._file.name), self.name)

    def abandon(self) -> None:
        """Deletes the temporary file."""
        self._file.close()
        Path(self._file.name).unlink(missing_ok=True)


class _Store:
    """Assembles files from messages. An invalid message is reported, and ends only the file to which it belongs."""

    def __init__(self, folder: Folder, subscription: aeron.Subscription) -> None:
        self._folder = folder
        self._subscription = subscription
        self._transfers: dict[Key, _Transfer] = {}
        self.complete = 0

    def on_message(self, payload: bytes, header: aeron.Header) -> None:
        """Handles one message. A poll calls this method."""
        session_id = header.session_id
        try:
            message = decode(payload)
        except BadMessageError as error:
            click.echo(f"Ignored a message of session {session_id}: {error}", err=True)
            return
        key = (session_id, message.correlation_id)
        try:
            self._take(key, message)
        except (BadMessageError, OSError) as error:
            name = message.name if isinstance(message, Create) else self._transfers[key].name
            click.echo(f"Refused file {name!r} of session {session_id}: {printable(str(error))}", err=True)
            self._abandon(key)

    def close(self) -> None:
        """Deletes all incomplete files."""
        for key in list(self._transfers):
            self._abandon(key)

    def _take(self, key: Key, message: Create | Chunk) -> None:
        if isinstance(message, Create):
            self._abandon(key)
            self._check(message)
            self._transfers[key] = _Transfer(self._folder, message)
            is_complete = message.length == 0
        elif key in self._transfers:
            is_complete = self._transfers[key].write(message)
        else:
            return  # The file was refused, or its announcement came before this receiver started.
        if is_complete:
            transfer = self._transfers[key]
            transfer.finish()
            del self._transfers[key]
            self.complete += 1
            click.echo(f"Received {printable(transfer.name)}, {transfer.length} bytes")

    def _check(self, create: Create) -> None:
        if create.name in ("", ".", "..") or any(character in create.name for character in "/\\\0"):
            raise BadMessageError("a name must not be empty, '.' or '..', or contain a path separator or a zero byte")
        for key in list(self._transfers):
            if self._subscription.image_by_session_id(key[0]) is None:
                self._abandon(key)
        if len(self._transfers) >= _MAX_TRANSFERS:
            raise BadMessageError(f"{_MAX_TRANSFERS} other files are not complete yet")

    def _abandon(self, key: Key) -> None:
        transfer = self._transfers.pop(key, None)
        if transfer is not None:
            transfer.abandon()

"""``aeron send``: sends a file to ``aeron receive`` or to Aeron's FileReceiver (docs/spec/06, 4.7)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import click

import aeron
from aeron._folder import open_regular
from aeron.cli.file_messages import CHUNK_HEADER_LENGTH, Chunk, Create, encode
from aeron.cli.options import client_options, linger_option, stream_options
from aeron.cli.session import Publication, add_publication, session


@click.command("send")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@stream_options
@client_options
@linger_option
def command(
    *,
    file: Path,
    channel: str,
    stream_id: int,
    directory: str,
    embedded: bool,
    driver_timeout_s: float | None,
    linger_s: float,
) -> None:
    """Wait for a receiver, then send FILE under its name."""
    with _opened(file) as content, session(directory, embedded, driver_timeout_s) as (client, stop):
        publication = add_publication(client, channel, stream_id, exclusive=True)
        click.echo(f"Sending {file.name} to {channel} on stream id {stream_id}")
        while not publication.is_connected and not stop.wait(0.001):
            pass
        length = _send(publication, file, content, client.next_correlation_id(), stop)
        click.echo(f"Sent {file.name}, {length} bytes")
        stop.wait(linger_s)


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from error


def _send(
    publication: Publication, path: Path, file: BinaryIO, correlation_id: int, stop: aeron.ShutdownSignalBarrier
) -> int:
    chunk_length = publication.max_payload_length - CHUNK_HEADER_LENGTH
    length = os.fstat(file.fileno()).st_size
    _offer(publication, encode(Create(correlation_id, length, path.name)), stop)
    offset = 0
    while offset < length:
        data = file.read(min(chunk_length, length - offset))
        if not data:
            raise click.ClickException(f"{path} was {length} bytes long and ends at {offset} now")
        _offer(publication, encode(Chunk(correlation_id, offset, data)), stop)
        offset += len(data)
    return length


def _offer(publication: Publication, message: bytes, stop: aeron.ShutdownSignalBarrier) -> None:
    idle = aeron.BackoffIdleStrategy()
    while not stop.is_signalled:
        if publication.offer(message):
            return
        if not publication.is_connected:
            raise click.ClickException("the receiver is gone, and the file is not sent completely")
        idle(0)
    raise click.ClickException("interrupted, and the file is not sent completely")

"""``aeron inspect``: the frames of a log buffer file in the form of LogInspector (docs/spec/06, section 1.7)."""

from __future__ import annotations

import time
from pathlib import Path

import click

import aeron
from aeron.cli.text import printable
from aeron.cli.timestamps import local_time

_RULE = "=" * 70


@click.command("inspect")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("limit", type=click.IntRange(min=0, max=2**31 - 1), default=2**31 - 1, metavar="[BYTES_PER_MESSAGE]")
@click.option(
    "-f",
    "--format",
    "payload_format",
    type=click.Choice(["hex", "ascii"]),
    default="hex",
    show_default=True,
    help="Form of the payload.",
)
@click.option("-d", "--skip-default-header", is_flag=True, help="Leave out the default header.")
@click.option("-z", "--scan-over-zeroes", is_flag=True, help="Continue after gaps instead of ending a term there.")
def command(file: Path, limit: int, payload_format: str, skip_default_header: bool, scan_over_zeroes: bool) -> None:
    """Print the metadata and every frame, padding included, of a *.logbuffer FILE."""
    try:
        log = aeron.LogFile(str(file))
    except (aeron.AeronError, OSError, ValueError) as error:
        raise click.ClickException(f"{file}: {error}") from error
    with log:
        _heading(file, log, skip_default_header)
        for index in range(3):
            click.echo(f"\n{_RULE}\nIndex {index} Term Data\n")
            for frame in log.frames(index, scan_over_zeroes=scan_over_zeroes):
                click.echo(f"{frame.term_offset}: {frame.header}")
                click.echo(_payload(log.payload(index, frame, limit), payload_format))


def _heading(file: Path, log: aeron.LogFile, skip_default_header: bool) -> None:
    click.echo(f"{_RULE}\n{local_time(time.time_ns() // 1_000_000)} Inspection dump for {file}\n{_RULE}")
    fields = {
        "Is connected": str(log.is_connected).lower(),
        "Initial term id": log.initial_term_id,
        "Term count": log.active_term_count,
        "Active index": log.active_term_count % 3,
        "Term length": log.term_length,
        "MTU length": log.mtu_length,
        "Page size": log.page_size,
        "EOS position": log.end_of_stream_position,
    }
    for label, value in fields.items():
        click.echo(f"{label:>15}: {value}")
    click.echo()
    if not skip_default_header:
        click.echo(f"default {log.default_header}\n")
    for index, tail in enumerate(log.raw_tails):
        term_id, term_offset = tail >> 32, tail & 0xFFFF_FFFF
        click.echo(
            f"Index {index} Term Meta Data termOffset={term_offset} termId={term_id} rawTail={tail} "
            f"position={log.position(term_id, min(term_offset, log.term_length))}"
        )


def _payload(data: bytes, payload_format: str) -> str:
    if payload_format == "hex":
        return data.hex().upper()
    text = bytes(byte if byte < 0x80 else 0 for byte in data).decode("ascii")
    # A zero replaces each byte that is not ASCII. A terminal does not show a zero.
    return printable(text, keep="\0")

"""``aeron archive export``: writes a recording to Parquet or Arrow files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

import click

import aeron
from aeron.cli.archive.files import (
    POSITION,
    RECORDING_ID,
    Bar,
    archive_argument,
    check_directory,
    explained,
    json_option,
    print_json,
    progress_bar,
)
from aeron.cli.options import size
from aeron.cli.sbe_text import schema_in
from aeron.cli.text import printable
from aeron.export import COMPRESSIONS

if TYPE_CHECKING:
    from aeron.sbe import Template
    from aeron.types import ExportFormat, MalformedTreatment

_COUNT = click.IntRange(min=1)


@click.command("export")
@archive_argument
@click.argument("recording_id", type=RECORDING_ID)
@click.argument("output", type=click.Path(path_type=str))
@click.option(
    "--format",
    "file_format",
    type=click.Choice(get_args(aeron.ExportFormat)),
    show_default="arrow for .arrow, .feather and .ipc, else parquet",
    help="Format of the files. Arrow is Arrow IPC, also known as Feather.",
)
@click.option("--layout", help="Layout of the records in each message, such as 'ts ts_ns, px f64, sym char[8]'.")
@click.option("--text", is_flag=True, help="Payloads are UTF-8 text.")
@click.option(
    "--columns",
    metavar="NAME,...",
    help="Columns and their order.  [default: those of the payload, stream_id, session_id, position, reserved_value, "
    "timestamp]",
)
@click.option("--from", "from_position", type=POSITION, help="Leave out messages before this position.")
@click.option("--to", "to_position", type=POSITION, help="Leave out messages from this position on.")
@click.option("--sbe", type=click.Path(dir_okay=False), help="File with the SBE schema of the messages.")
@click.option("--template", metavar="NAME", help="Message of the SBE schema: its fields are the columns.")
@click.option(
    "--malformed",
    type=click.Choice(get_args(aeron.MalformedTreatment)),
    default="fail",
    show_default=True,
    help="Treatment of messages that do not fit the layout or the schema: fail, drop them, or keep their bytes in the "
    "column _corrupt_record.",
)
@click.option(
    "--verify-checksums/--no-verify-checksums",
    default=True,
    show_default=True,
    help="Whether a frame with a wrong checksum ends the export.",
)
@click.option(
    "--compression",
    type=click.Choice(COMPRESSIONS["parquet"]),
    default="zstd",
    show_default=True,
    help="Compression of the files. Arrow files have zstd, lz4 or none.",
)
@click.option(
    "--row-group-rows",
    type=_COUNT,
    default=1_048_576,
    show_default=True,
    help="Maximum number of rows of a row group, or of a record batch in Arrow files.",
)
@click.option("--max-rows-per-file", type=_COUNT, help="Write a directory of files, each with at most this many rows.")
@click.option(
    "--max-bytes-per-file",
    type=size,
    help="Write a directory of files. A file ends with the row group at which it has this length. May have the suffix "
    "k, m or g.",
)
@click.option("-f", "--force", is_flag=True, help="Replace an existing output.")
@json_option
def export(
    *,
    directory: str,
    recording_id: int,
    output: str,
    file_format: ExportFormat | None,
    layout: str | None,
    text: bool,
    columns: str | None,
    from_position: int | None,
    to_position: int | None,
    sbe: str | None,
    template: str | None,
    malformed: MalformedTreatment,
    verify_checksums: bool,
    compression: str,
    row_group_rows: int,
    max_rows_per_file: int | None,
    max_bytes_per_file: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the recording RECORDING_ID of the archive in DIRECTORY to OUTPUT, as Parquet or Arrow.

    The archive may run: an active recording is exported up to the position that is recorded at this moment. OUTPUT
    gets its name when it is complete, so an interrupted export leaves no file.
    """
    check_directory(directory)
    chosen = _template(sbe, template)
    with explained(), _with_pyarrow(), aeron.ShutdownSignalBarrier() as stop:
        batches = aeron.read_recording(
            directory,
            recording_id,
            from_position=from_position,
            to_position=to_position,
            layout=layout,
            text=text,
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            malformed=malformed,
            sbe=chosen,
            verify_checksums=verify_checksums,
        )
        length = batches.to_position - batches.from_position
        with progress_bar("exporting", length, hidden=as_json) as bar:
            exported = batches.export(
                output,
                format=file_format,
                compression=compression,
                row_group_rows=row_group_rows,
                max_rows_per_file=max_rows_per_file,
                max_bytes_per_file=max_bytes_per_file,
                overwrite=force,
                on_progress=lambda done, _: _report(bar, done, stop),
            )
    if as_json:
        print_json(_as_json(exported))
    else:
        click.echo(_line(exported, output))


def _template(path: str | None, name: str | None) -> Template | None:
    """Returns the template that the options name."""
    if path is None:
        if name is not None:
            raise click.UsageError("--template needs --sbe: pass the file with the schema too")
        return None
    schema = schema_in(path)
    if name is not None and name in schema:
        return schema[name]
    problem = "--sbe needs --template" if name is None else f"{printable(path)} has no message '{printable(name)}'"
    raise click.UsageError(f"{problem}: name one of {printable(', '.join(schema))}")


@contextlib.contextmanager
def _with_pyarrow() -> Iterator[None]:
    """If pyarrow is missing, explains how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise click.ClickException("an export needs pyarrow: pip install 'aeron-py[arrow]'") from error


def _report(bar: Bar, done_bytes: int, stop: aeron.ShutdownSignalBarrier) -> None:
    """Moves the bar, or ends the export after a signal."""
    if stop.is_signalled:
        raise click.Abort
    bar.reach(done_bytes)


def _as_json(exported: aeron.RecordingExport) -> dict[str, object]:
    return {
        "recording_id": exported.recording_id,
        "from_position": exported.from_position,
        "to_position": exported.to_position,
        "rows": exported.rows,
        "malformed": exported.malformed,
        "skipped": exported.skipped,
        "unknown": exported.unknown,
        "files": [str(path) for path in exported.files],
        "file_bytes": exported.file_bytes,
    }


def _line(exported: aeron.RecordingExport, output: str) -> str:
    notes = [
        f"{count:,} {what}"
        for count, what in (
            (exported.malformed, "malformed messages and records"),
            (exported.skipped, "messages of other templates"),
            (exported.unknown, "unknown values of enums"),
        )
        if count
    ]
    counts = f"; {', '.join(notes)}" if notes else ""
    files = "" if len(exported.files) == 1 else f" in {len(exported.files)} files"
    return (
        f"(recordingId={exported.recording_id}) {exported.rows:,} rows from position {exported.from_position} to "
        f"{exported.to_position}: {printable(output)}, {exported.file_bytes:,} bytes{files}{counts}"
    )

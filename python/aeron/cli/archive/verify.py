"""``aeron archive verify``: the checks of ArchiveTool's verify, and with ``--repair`` its changes."""

from __future__ import annotations

import time
from typing import cast

import click

import aeron
from aeron._pipeline import _CatalogEntry, _read_archive_mark, _Verification
from aeron.cli.archive.files import (
    MISUSED,
    Bar,
    all_option,
    archive_argument,
    entries_of,
    explained,
    json_option,
    open_files,
    print_json,
    progress_bar,
    recording_argument,
)
from aeron.cli.text import printable_lines

_ATTEMPTS, _PAUSE_S = 3, 0.2
"""Further attempts to verify a recording that an archive may be changing, and the seconds before each of them."""


@click.command("verify")
@archive_argument
@recording_argument
@all_option
@click.option("--checksum", help="Compare entries and frames with their checksums: CRC-32 or CRC-32C, or a class name.")
@click.option(
    "--repair",
    is_flag=True,
    help="Correct the catalog: stop positions, INVALID for broken recordings, VALID for intact ones.",
)
@click.option(
    "--on-torn-fragment",
    type=click.Choice(["ask", "truncate", "keep"]),
    default="ask",
    show_default=True,
    help="Treatment of a last fragment that may be torn.",
)
@json_option
def verify(
    *,
    directory: str,
    recording_id: int | None,
    all_segments: bool,
    checksum: str | None,
    repair: bool,
    on_torn_fragment: str,
    as_json: bool,
) -> None:
    """Verify all recordings of the archive in DIRECTORY, or the recording RECORDING_ID. The exit status is 255 if a
    recording is broken.

    Without --repair nothing is changed, and an archive may use the directory: a recording that seems broken is read
    again, because the archive may have written or deleted bytes in between.
    """
    results = []
    with open_files(directory, write=repair) as files, explained():
        entries = entries_of(files, recording_id)
        total = sum(files.segment_bytes(entry.recording.recording_id, all_segments) for entry in entries)
        with progress_bar("verifying", total, hidden=as_json) as bar:
            for entry in entries:
                try:
                    found = files.verify(entry.recording.recording_id, all_segments, checksum, bar.advance)
                    keep = _keeps_torn(directory, found, on_torn_fragment, bar) if repair else True
                    state = files.repair(found, keep) if repair else entry.state
                    result = _result(found, entry, state, keep=keep)
                except aeron.ArchiveDirectoryError as error:
                    result = _failure(entry, str(error))
                if result["verdict"] == "ERR" and not repair:
                    result = _confirmed(directory, result, all_segments, checksum)
                results.append(result)
                if not as_json:
                    bar.echo(_line(results[-1], is_repaired=repair))
    if as_json:
        print_json(results)
    if any(result["verdict"] == "ERR" for result in results):
        raise SystemExit(MISUSED)


def _confirmed(
    directory: str, result: dict[str, object], all_segments: bool, checksum: str | None
) -> dict[str, object]:
    """Repeats the verification of a recording that seems broken, if an archive uses the directory. Returns the last
    result."""
    for _ in range(_ATTEMPTS):
        mark = _read_archive_mark(directory)
        if mark is None or not mark.is_active:
            break
        time.sleep(_PAUSE_S)
        files = open_files(directory)
        entry = files.entry(cast(int, result["recording_id"]))
        try:
            found = files.verify(entry.recording.recording_id, all_segments, checksum, lambda _: None)
            result = _result(found, entry, entry.state, keep=True)
        except aeron.ArchiveDirectoryError as error:
            result = _failure(entry, str(error))
        if result["verdict"] != "ERR":
            break
    return result


def _keeps_torn(directory: str, found: _Verification, on_torn_fragment: str, bar: Bar) -> bool:
    """Returns whether to keep a last fragment that may be torn. May ask the user."""
    if found.torn_file is None or on_torn_fragment != "ask":
        return on_torn_fragment == "keep"
    question = (
        f"\nLast fragment in segment file: {directory}/{found.torn_file} straddles a page boundary,\n"
        "i.e. it is not possible to verify if it was written correctly.\n\n"
        "Please choose the corrective action: (y) to truncate the file or (n) to do nothing"
    )
    bar.clear()
    return not click.confirm(question, err=True)


def _result(found: _Verification, entry: _CatalogEntry, state: str, *, keep: bool) -> dict[str, object]:
    problem = found.problem(keep)
    verdict = "SKIPPED" if entry.state == "DELETED" else "OK" if problem is None else "ERR"
    torn = None if found.torn_file is None else {"file": found.torn_file, "position": found.torn_position}
    stop = found.stop_position(keep) if verdict == "OK" else found.recorded_stop_position
    return {
        "recording_id": found.recording_id,
        "verdict": verdict,
        "problem": problem,
        "state": state,
        "start_position": entry.recording.start_position,
        "stop_position": None if stop == -1 else stop,
        "recorded_stop_position": entry.recording.stop_position,
        "torn_fragment": torn,
    }


def _failure(entry: _CatalogEntry, problem: str) -> dict[str, object]:
    """Returns the result for a recording with files that cannot be read. Its entry does not change."""
    recording = entry.recording
    return {
        "recording_id": recording.recording_id,
        "verdict": "ERR",
        "problem": problem,
        "state": entry.state,
        "start_position": recording.start_position,
        "stop_position": recording.stop_position,
        "recorded_stop_position": recording.stop_position,
        "torn_fragment": None,
    }


def _line(result: dict[str, object], *, is_repaired: bool) -> str:
    name = f"(recordingId={result['recording_id']})"
    if result["verdict"] == "SKIPPED":
        return f"{name} skipping: {result['state']}"
    if result["problem"] is not None:
        return printable_lines(f"{name} ERR: {result['problem']}")
    notes = [f"{name} OK"]
    torn, stop = result["torn_fragment"], result["stop_position"]
    if isinstance(torn, dict) and not is_repaired:
        notes.append(f"the last fragment may not be whole: {torn['file']}, position {torn['position']}")
    if stop != result["recorded_stop_position"]:
        # An active recording also gets this note, because its entry has no stop position.
        what = "its stop position is now" if is_repaired else "its segment files end at position"
        notes.append(f"{what} {stop}")
    if result["state"] == "INVALID":
        notes.append("the recording is marked as INVALID")
    return "; ".join(notes)

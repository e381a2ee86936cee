"""Tests of `RecordedBatches.export` and `aeron archive export`, which write recordings to Parquet and Arrow files."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import eventually
from tests.recorded import SEGMENT_LENGTH, Recorder, recorder

import aeron
from aeron import export as export_module
from aeron.sbe import Schema
from commands import Command, run

LAYOUT = "n i64, price f64"
COUNT = 10_000

stream_ids = itertools.count(6000)


@pytest.fixture(scope="module")
def recordings(driver: aeron.MediaDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    with recorder(driver, tmp_path_factory.mktemp("archive") / "archive") as recordings:
        yield recordings


@pytest.fixture(scope="module")
def trades(recordings: Recorder) -> aeron.Recording:
    """Returns a recording of 10,000 trades of 16 bytes, in ten segments."""
    messages = [struct.pack("<qd", number, number / 4) for number in range(COUNT)]
    return recordings.record(next(stream_ids), messages)


Read = Callable[..., aeron.RecordedBatches]


@pytest.fixture
def read(recordings: Recorder, trades: aeron.Recording) -> Read:
    """`read(**options)` reads the trades. The options are the keywords of `read_recording`."""

    def read(**options: Any) -> aeron.RecordedBatches:
        return aeron.read_recording(recordings.directory, trades.recording_id, **options)

    return read


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# ---- the files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "load"),
    [
        ("trades.parquet", {}, pa.parquet.read_table),
        ("trades.parquet", {"compression": "none"}, pa.parquet.read_table),
        ("trades", {"compression": "snappy"}, pa.parquet.read_table),
        ("trades.arrow", {}, pa.feather.read_table),
        ("trades.FEATHER", {"compression": "lz4"}, pa.feather.read_table),
        ("trades", {"format": "arrow", "compression": "none"}, pa.feather.read_table),
    ],
)
def test_a_file_has_the_rows_the_schema_and_the_origin_of_the_recording(
    read: Read, trades: aeron.Recording, tmp_path: Path, name: str, options: Any, load: Callable[..., pa.Table]
) -> None:
    path = tmp_path / name
    exported = read(layout=LAYOUT).export(path, **options)
    assert exported == aeron.RecordingExport(
        recording_id=trades.recording_id,
        from_position=0,
        to_position=trades.stop_position or 0,
        rows=COUNT,
        malformed=0,
        skipped=0,
        unknown=0,
        files=(path,),
        file_bytes=path.stat().st_size,
    )
    expected = pa.table(read(layout=LAYOUT))
    table = load(path)
    assert table.equals(expected)
    assert table.schema.metadata == expected.schema.metadata
    assert left_in(tmp_path) == [name]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(0, 8192), max_size=40),
    file_format=st.sampled_from(["parquet", "arrow"]),
    row_group_rows=st.integers(1, 50),
    max_rows_per_file=st.none() | st.integers(1, 50),
)
def test_files_of_any_size_contain_all_random_messages(
    recordings: Recorder,
    tmp_path: Path,
    lengths: list[int],
    file_format: aeron.ExportFormat,
    row_group_rows: int,
    max_rows_per_file: int | None,
) -> None:
    payloads = [bytes([index % 256]) * length for index, length in enumerate(lengths)]
    recording = recordings.record(next(stream_ids), [b"first", *payloads])
    output = tmp_path / str(recording.recording_id)
    exported = aeron.read_recording(recordings.directory, recording.recording_id).export(
        output, format=file_format, row_group_rows=row_group_rows, max_rows_per_file=max_rows_per_file
    )
    table = pa.dataset.dataset([str(path) for path in exported.files], format=file_format).to_table()
    expected = [(each.position, each.reserved_value, each.payload) for each in recordings.messages(recording)]
    columns = (table[name].to_pylist() for name in ("position", "reserved_value", "value"))
    assert list(zip(*columns, strict=True)) == expected
    assert table["value"].to_pylist() == [b"first", *payloads]


def test_a_row_group_ends_at_its_limit_of_rows_or_bytes(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trades.parquet"
    read().export(path, row_group_rows=3000)
    assert group_rows(path) == [3000, 3000, 3000, 1000]
    whole = pa.parquet.read_table(path).nbytes
    monkeypatch.setattr(export_module, "ROW_GROUP_BYTES", whole // 5)
    read().export(path, overwrite=True)
    assert sum(group_rows(path)) == COUNT
    assert len(group_rows(path)) > 1
    arrow = tmp_path / "trades.arrow"
    read().export(arrow, row_group_rows=3000)
    with pa.ipc.open_file(arrow) as file:
        rows = [file.get_batch(index).num_rows for index in range(file.num_record_batches)]
    assert max(rows) <= 3000
    assert sum(rows) == COUNT


def group_rows(path: Path) -> list[int]:
    metadata = pa.parquet.read_metadata(path)
    return [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]


def test_a_limit_of_rows_for_each_file_makes_an_export_of_several_files_in_a_directory(
    read: Read, tmp_path: Path
) -> None:
    output = tmp_path / "trades"
    exported = read(columns=["reserved_value"]).export(output, max_rows_per_file=4000, row_group_rows=1500)
    assert exported.files == tuple(output / f"part-{number:05d}.parquet" for number in range(3))
    assert [group_rows(path) for path in exported.files] == [[1500, 1500, 1000], [500, 1500, 1500, 500], [1000, 1000]]
    assert exported.file_bytes == sum(path.stat().st_size for path in exported.files)
    table = pa.dataset.dataset(output).to_table()
    assert table["reserved_value"].to_pylist() == list(range(COUNT))


@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
def test_a_limit_of_bytes_begins_a_new_file_after_the_row_group_that_reaches_it(
    read: Read, tmp_path: Path, file_format: aeron.ExportFormat
) -> None:
    limit = 50_000
    exported = read().export(
        tmp_path / "trades", format=file_format, compression="none", max_bytes_per_file=limit, row_group_rows=500
    )
    lengths = [path.stat().st_size for path in exported.files]
    assert len(lengths) > 3
    assert all(limit <= length < 2 * limit for length in lengths[:-1]), lengths
    table = pa.dataset.dataset(tmp_path / "trades", format=file_format).to_table()
    assert table["reserved_value"].to_pylist() == list(range(COUNT))


def test_the_export_of_a_range_without_messages_is_a_file_without_rows(read: Read, tmp_path: Path) -> None:
    for name, options in (("file", {}), ("directory", {"max_rows_per_file": 7})):
        exported = read(from_position=64, to_position=64, layout=LAYOUT).export(tmp_path / name, **options)
        assert (exported.rows, exported.to_position, len(exported.files)) == (0, 64, 1)
        assert pa.parquet.read_schema(exported.files[0]) == read(layout=LAYOUT).schema


def test_an_export_continues_at_the_end_of_an_earlier_export(
    read: Read, trades: aeron.Recording, tmp_path: Path
) -> None:
    middle = (trades.stop_position or 0) // 2
    first = read(to_position=middle).export(tmp_path / "a.parquet")
    second = read(from_position=first.to_position).export(tmp_path / "b.parquet")
    assert 0 < first.rows < COUNT
    table = pa.dataset.dataset(tmp_path).to_table()
    assert table["reserved_value"].to_pylist() == list(range(COUNT))
    assert second.to_position == trades.stop_position


def test_duckdb_reads_the_files(read: Read, tmp_path: Path) -> None:
    read(layout=LAYOUT).export(tmp_path / "trades", max_rows_per_file=4000)
    query = f"SELECT count(*), sum(price), max(n) FROM '{tmp_path}/trades/*.parquet' WHERE n % 2 = 0"
    even = range(0, COUNT, 2)
    assert duckdb.sql(query).fetchall() == [(len(even), sum(even) / 4, COUNT - 2)]


# ---- outputs that exist, and exports that fail -----------------------------------------------------------------------


def test_an_existing_output_is_refused_and_replaced_on_request(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "trades.parquet"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True") as raised:
        read().export(path)
    assert raised.value.filename == str(path)
    assert path.read_text() == "mine"
    read().export(path, overwrite=True)
    assert pa.parquet.read_table(path).num_rows == COUNT
    assert left_in(tmp_path) == ["trades.parquet"]


def test_an_output_that_appears_during_the_export_is_not_replaced(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "trades.parquet"
    with pytest.raises(FileExistsError):
        read().export(path, on_progress=lambda *_: path.write_text("theirs"))
    assert path.read_text() == "theirs"
    assert left_in(tmp_path) == ["trades.parquet"]


def test_a_directory_is_replaced_only_if_it_is_an_earlier_export(read: Read, tmp_path: Path) -> None:
    output = tmp_path / "trades"
    read().export(output, max_rows_per_file=1000)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        read().export(output, max_rows_per_file=5000)
    read().export(output, max_rows_per_file=5000, overwrite=True)
    assert left_in(output) == ["part-00000.parquet", "part-00001.parquet"]
    (output / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"has the file 'notes.txt', which is not of an export"):
        read().export(output, max_rows_per_file=5000, overwrite=True)
    assert len(left_in(output)) == 3
    assert left_in(tmp_path) == ["trades"]


def test_an_empty_directory_becomes_the_output_and_a_file_does_not(read: Read, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert len(read().export(tmp_path / "empty", max_rows_per_file=5000).files) == 2
    (tmp_path / "file").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="is not a directory"):
            read().export(tmp_path / "file", max_rows_per_file=5000, overwrite=overwrite)
        with pytest.raises(FileExistsError, match="the output is a directory"):
            read().export(tmp_path, overwrite=overwrite)
    with pytest.raises(FileNotFoundError, match="missing"):
        read().export(tmp_path / "missing" / "trades.parquet")
    assert left_in(tmp_path) == ["empty", "file"]


@pytest.mark.parametrize("owned", ["archive.catalog", "archive-mark.dat", "cnc.dat"])
def test_a_file_of_an_archive_or_driver_is_never_replaced(read: Read, tmp_path: Path, owned: str) -> None:
    """07-191"""
    (tmp_path / owned).write_text("theirs")
    (tmp_path / "0-0.rec").write_text("theirs")
    for overwrite in (False, True):
        for name in (owned, "0-0.rec"):
            with pytest.raises(FileExistsError, match="in the directory of an archive or a driver") as raised:
                read().export(tmp_path / name, overwrite=overwrite)
            assert "overwrite" not in str(raised.value)
    (tmp_path / "parts").mkdir()
    with pytest.raises(FileExistsError, match="in the directory of an archive or a driver"):
        read().export(tmp_path / "parts", max_rows_per_file=5000, overwrite=True)
    assert [path.read_text() for path in tmp_path.iterdir() if path.is_file()] == ["theirs"] * 2
    assert left_in(tmp_path) == sorted([owned, "0-0.rec", "parts"])


def test_a_log_buffer_of_a_driver_is_never_replaced(read: Read, tmp_path: Path) -> None:
    """07-191"""
    (tmp_path / "cnc.dat").touch()
    (tmp_path / "publications").mkdir()
    log = tmp_path / "publications" / "5.logbuffer"
    log.write_text("theirs")
    with pytest.raises(FileExistsError, match="in the directory of an archive or a driver"):
        read().export(log, overwrite=True)
    assert log.read_text() == "theirs"


def test_only_a_regular_file_or_a_link_is_replaced(read: Read, tmp_path: Path) -> None:
    """07-191"""
    os.mkfifo(tmp_path / "pipe")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="not a regular file, and is never replaced") as raised:
            read().export(tmp_path / "pipe", overwrite=overwrite)
        assert "overwrite" not in str(raised.value)
    with pytest.raises(FileExistsError, match="not a regular file, and is never replaced"):
        read().export("/dev/null", overwrite=True)
    assert Path("/dev/null").is_char_device()
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link").symlink_to("target")
    read().export(tmp_path / "link", overwrite=True)
    assert (tmp_path / "target").read_text() == "mine"
    assert not (tmp_path / "link").is_symlink()
    (tmp_path / "parts").mkdir()
    os.mkfifo(tmp_path / "parts" / "part-00000.parquet")
    with pytest.raises(FileExistsError, match="is not of an export"):
        read().export(tmp_path / "parts", max_rows_per_file=5000, overwrite=True)
    assert left_in(tmp_path) == ["link", "parts", "pipe", "target"]


def test_a_pipe_that_appears_during_the_export_is_not_replaced(read: Read, tmp_path: Path) -> None:
    """07-191"""
    path = tmp_path / "trades.parquet"
    path.write_text("mine")

    def swap(*_: object) -> None:
        if path.is_file():
            path.unlink()
            os.mkfifo(path)

    with pytest.raises(FileExistsError, match="not a regular file"):
        read().export(path, on_progress=swap, overwrite=True)
    assert path.is_fifo()


class Stop(BaseException):
    """Interruption by the test. pytest would end the whole run at a KeyboardInterrupt."""


@pytest.mark.parametrize("options", [{}, {"format": "arrow"}, {"max_rows_per_file": 1000}])
def test_an_interrupted_export_leaves_no_file_and_keeps_an_existing_output(
    read: Read, tmp_path: Path, options: dict[str, Any]
) -> None:
    seen: list[tuple[int, int]] = []

    def interrupt(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 2:
            raise Stop

    with pytest.raises(Stop):
        read().export(tmp_path / "trades", on_progress=interrupt, **options)
    assert left_in(tmp_path) == []
    assert 0 < seen[0][0] < seen[1][0] < seen[1][1]
    old = read().export(tmp_path / "trades", **options).files
    contents = [path.read_bytes() for path in old]
    seen.clear()
    with pytest.raises(Stop):
        read().export(tmp_path / "trades", on_progress=interrupt, overwrite=True, **options)
    assert [path.read_bytes() for path in old] == contents
    assert left_in(tmp_path) == ["trades"]


@pytest.mark.parametrize("options", [{}, {"format": "arrow"}, {"max_rows_per_file": 2000}])
def test_the_export_of_a_damaged_recording_raises_an_error_and_leaves_no_file(
    recordings: Recorder, trades: aeron.Recording, tmp_path: Path, options: dict[str, Any]
) -> None:
    copy = shutil.copytree(recordings.directory, tmp_path / "copy")
    (copy / f"{trades.recording_id}-{5 * SEGMENT_LENGTH}.rec").unlink()
    output = tmp_path / "output"
    output.mkdir()
    with pytest.raises(aeron.ArchiveDirectoryError, match=rf"{trades.recording_id}-{5 * SEGMENT_LENGTH}\.rec"):
        aeron.read_recording(copy, trades.recording_id).export(output / "trades", **options)
    assert left_in(output) == []


FULL_DISK = """
import resource, sys
import aeron

directory, recording_id, output, format, limit = sys.argv[1:]
batches = aeron.read_recording(directory, int(recording_id))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    batches.export(output, format=format, compression="none", row_group_rows=500)
except OSError as error:
    print(type(error).__name__, error.errno, error.filename)
"""


@pytest.mark.parametrize("place", ["in the rows", "in the footer"])
@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
def test_a_full_disk_is_an_error_that_names_the_output_and_leaves_no_file(
    recordings: Recorder, trades: aeron.Recording, tmp_path: Path, file_format: aeron.ExportFormat, place: str
) -> None:
    """A limit for the length of files simulates the full disk: the file system refuses to write more bytes."""
    output = tmp_path / "trades"
    whole = aeron.read_recording(recordings.directory, trades.recording_id).export(
        output, format=file_format, compression="none", row_group_rows=500
    )
    output.unlink()
    limit = 50_000 if place == "in the rows" else whole.file_bytes - 20
    command = [sys.executable, "-W", "error", "-c", FULL_DISK]
    arguments = [recordings.directory, trades.recording_id, output, file_format, limit]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"OSError 27 {output}\n", "")
    assert left_in(tmp_path) == []


def test_a_killed_export_leaves_only_a_hidden_file_that_readers_ignore(
    recordings: Recorder, trades: aeron.Recording, tmp_path: Path
) -> None:
    program = (
        "import sys, time, aeron\n"
        "batches = aeron.read_recording(sys.argv[1], int(sys.argv[2]))\n"
        "batches.export(sys.argv[3], on_progress=lambda *_: print('begun', flush=True) or time.sleep(60))\n"
    )
    output = tmp_path / "killed.parquet"
    command = [sys.executable, "-c", program, str(recordings.directory), str(trades.recording_id), str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    [left] = left_in(tmp_path)
    assert left.startswith(".killed.parquet.")
    aeron.read_recording(recordings.directory, trades.recording_id).export(output)
    assert pa.dataset.dataset(tmp_path).count_rows() == COUNT


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"format": "csv"}, "format='csv' is not 'parquet' or 'arrow'"),
        ({"compression": "zip"}, "compression='zip' does not exist in format parquet: use one of zstd, lz4"),
        ({"format": "arrow", "compression": "snappy"}, "use one of zstd, lz4, none"),
        ({"row_group_rows": 0}, "row_group_rows=0 is not within 1 to"),
        ({"max_rows_per_file": -1}, "max_rows_per_file=-1 is not within 1 to"),
        ({"max_bytes_per_file": 0}, "max_bytes_per_file=0 is not within 1 to"),
    ],
)
def test_the_error_for_an_invalid_option_names_the_option(
    read: Read, tmp_path: Path, options: dict[str, Any], error: str
) -> None:
    with pytest.raises(aeron.InvalidArgumentError) as raised:
        read().export(tmp_path / "trades", **options)
    assert error in str(raised.value)
    with pytest.raises(aeron.ArgumentTypeError, match="row_group_rows='many' is not an integer"):
        read().export(tmp_path / "trades", row_group_rows="many")  # type: ignore[arg-type]
    for output in ("", ".."):
        with pytest.raises(aeron.InvalidArgumentError, match="names no file"):
            read().export(output)
    assert left_in(tmp_path) == []


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_exports_and_prints_the_result(
    recordings: Recorder, trades: aeron.Recording, tmp_path: Path
) -> None:
    id, stop = trades.recording_id, trades.stop_position
    path = tmp_path / "trades.parquet"
    result = run("archive", "export", recordings.directory, id, path, "--layout", LAYOUT, "--columns", "n, price")
    assert result.exit_code == 0, result.output
    length = path.stat().st_size
    assert result.stdout == (f"(recordingId={id}) 10,000 rows from position 0 to {stop}: {path}, {length:,} bytes\n")
    assert pa.parquet.read_table(path).column_names == ["n", "price"]
    again = ["archive", "export", recordings.directory, id, path, "--json", "--from", 6400, "--to", 12800]
    refused = run(*again)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "--force" in refused.stderr
    assert str(path) in refused.stderr
    result = run(*again, "--force")
    assert json.loads(result.stdout) == {
        "recording_id": id,
        "from_position": 6400,
        "to_position": 12800,
        "rows": 100,
        "malformed": 0,
        "skipped": 0,
        "unknown": 0,
        "files": [str(path)],
        "file_bytes": path.stat().st_size,
    }


def test_the_command_exports_the_messages_of_an_sbe_template(recordings: Recorder, tmp_path: Path) -> None:
    market = Path(__file__).parent / "sbe" / "market.xml"
    trade, book = (Schema(market)[name] for name in ("Trade", "BookUpdate"))
    values = {"transactTime": 5, "tradeId": 1, "side": "Buy", "price": 1, "symbol": "ES", "expiry": 9}
    known = trade.encode_one(values)
    messages = [known, book.encode_one({"transactTime": 5, "flags": []}), known[:20] + b"?" + known[21:], known[:-1]]
    id = recordings.record(next(stream_ids), messages).recording_id
    path = tmp_path / "trades.parquet"
    command = ["archive", "export", recordings.directory, id, path, "--sbe", market]
    result = run(*command, "--template", "Trade", "--malformed", "keep")
    assert result.exit_code == 0, result.output
    counts = "1 malformed messages and records, 1 messages of other templates, 1 unknown values of enums"
    assert result.stdout.endswith(f"bytes; {counts}\n")
    table = pa.parquet.read_table(path)
    assert table["side"].to_pylist() == ["Buy", None, None]
    assert table["_corrupt_record"].to_pylist() == [None, None, messages[3]]
    for more, text in (
        ([], "--sbe needs --template: name one of Trade, BookUpdate"),
        (["--template", "trade"], "has no message 'trade': name one of Trade"),
    ):
        refused = run(*command, *more)
        assert (refused.exit_code, text in refused.stderr) == (1, True), refused.stderr
    assert "--template needs --sbe" in run(*command[:5], "--template", "Trade").stderr


def test_the_command_has_the_options_of_the_method(
    recordings: Recorder, trades: aeron.Recording, tmp_path: Path
) -> None:
    id, output = trades.recording_id, tmp_path / "trades"
    command = ["archive", "export", recordings.directory, id, output, "--format", "arrow", "--compression", "none"]
    limits = ["--max-bytes-per-file", "100k", "--max-rows-per-file", "3000", "--row-group-rows", "500"]
    result = run(*command, *limits, "--layout", "a i8, b i16", "--malformed", "drop")
    assert result.exit_code == 0, result.output
    assert f"bytes; {COUNT:,} malformed messages and records" in result.stdout
    result = run(*command, *limits, "--force")
    assert f"bytes in {len(left_in(output))} files\n" in result.stdout
    assert len(left_in(output)) > 4
    assert pa.dataset.dataset(output, format="arrow").count_rows() == COUNT
    assert all(path.suffix == ".arrow" for path in output.iterdir())
    failed = run("archive", "export", recordings.directory, id, tmp_path / "text", "--text")
    assert failed.exit_code == 1
    assert "not UTF-8 from byte" in failed.stderr


def test_the_command_refuses_an_unknown_recording_and_a_missing_directory(recordings: Recorder, tmp_path: Path) -> None:
    output = tmp_path / "output"
    unknown = run("archive", "export", recordings.directory, 999, output)
    assert unknown.exit_code == 1
    assert "no recording 999 in" in unknown.stderr
    assert run("archive", "export", tmp_path / "missing", 0, output).exit_code == 255
    assert left_in(tmp_path) == []


def test_the_error_of_the_command_without_pyarrow_names_the_package_to_install(
    recordings: Recorder, trades: aeron.Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("archive", "export", recordings.directory, trades.recording_id, tmp_path / "trades")
    assert result.exit_code == 1
    assert "pip install 'aeron-py[arrow]'" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_leaves_no_file(
    recordings: Recorder, tmp_path: Path, number: signal.Signals
) -> None:
    # Different bytes: of equal ones a fast machine has compressed 32 MB before the signal arrives.
    recording = recordings.record(next(stream_ids), [os.urandom(8000) for _ in range(4000)])
    output = tmp_path / "output.parquet"
    arguments = ["--compression", "brotli", "--row-group-rows", 100]
    with Command("archive", "export", recordings.directory, recording.recording_id, output, *arguments) as command:
        eventually(lambda: left_in(tmp_path), timeout=20)
        time.sleep(0.02)
        command.send(number)
        assert command.end() == 1
        assert "Aborted" in command.errors()
    assert left_in(tmp_path) == []

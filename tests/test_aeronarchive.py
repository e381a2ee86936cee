"""Tests of the start and end of the command `aeronarchive`, with a driver in another process and an embedded driver."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from ports import free_port

_MAIN = "from aeron._aeron import aeronarchive_main; raise SystemExit(aeronarchive_main())"
_ANY_PORT = "aeron:udp?endpoint=localhost:0"


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def aeronarchive() -> Iterator[Start]:
    """Returns a function that starts the command as a process. The fixture kills the process after the test."""
    started = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _MAIN, *arguments]
        started.append(subprocess.Popen(command, env={**os.environ, **environment}, stdout=-1, stderr=-1, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def settings(path: Path, *more: str) -> list[str]:
    """Returns arguments for an archive whose directories are below `path`."""
    return [
        "--dir",
        str(path / "md"),
        "--archive-dir",
        str(path / "archive"),
        f"-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:{free_port()}",
        f"-Daeron.archive.replication.channel={_ANY_PORT}",
        *more,
    ]


def mark(path: Path) -> tuple[int, int]:
    """Returns version and activity timestamp of the mark file, or (0, 0) if no complete mark file exists."""
    try:
        data = (path / "archive" / "archive-mark.dat").read_bytes()
        (version,) = struct.unpack_from("<i", data, 8)
        (activity,) = struct.unpack_from("<q", data, 16)
        return version, activity
    except (FileNotFoundError, struct.error):
        return 0, 0


def is_ready(path: Path) -> bool:
    version, activity = mark(path)
    return version != 0 and activity > 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("mode", ["DEDICATED", "SHARED", "INVOKER"])
def test_an_archive_with_an_embedded_driver_ends_cleanly_at_a_signal(
    aeronarchive: Start, tmp_path: Path, number: signal.Signals, mode: str
) -> None:
    process = aeronarchive("--with-driver", *settings(tmp_path, f"-Daeron.archive.threading.mode={mode}"))
    eventually(lambda: is_ready(tmp_path))
    aeron.connect(tmp_path / "md").close()
    begin = time.monotonic()
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=10)
    assert time.monotonic() - begin < 1.5
    assert (process.returncode, stdout, stderr) == (number, "Shutting down archive...\n", "")
    assert mark(tmp_path)[1] == -1


@pytest.mark.parametrize("mode", ["SHARED", "INVOKER"])
def test_the_thread_of_the_archive_runs_an_embedded_driver_without_threads(
    aeronarchive: Start, tmp_path: Path, mode: str
) -> None:
    modes = ("-Daeron.threading.mode=INVOKER", f"-Daeron.archive.threading.mode={mode}")
    process = aeronarchive("--with-driver", *settings(tmp_path, *modes))
    eventually(lambda: is_ready(tmp_path))
    threads = [(task / "comm").read_text() for task in Path(f"/proc/{process.pid}/task").iterdir()]
    assert not [name for name in threads if "conductor" in name or "sender" in name or "receiver" in name]
    channel = f"aeron:udp?endpoint=localhost:{free_port()}|ssc=true"
    with aeron.connect(tmp_path / "md") as client, aeron.connect_archive(client) as archive:
        publication = archive.add_recorded_exclusive_publication(channel, 1001)
        recording = archive.wait_recorded(publication, publication.publish(b"x", timeout=5), timeout=5)
        archive.stop_recording(publication)
        with archive.replay(recording.recording_id, channel=_ANY_PORT, length=aeron.REPLAY_ALL_AND_STOP) as replay:
            assert [message for batch in replay.batches(timeout=10) for message in batch.to_list()] == [b"x"]
    process.terminate()
    stdout, stderr = process.communicate(timeout=10)
    assert (process.returncode, stdout, stderr) == (signal.SIGTERM, "Shutting down archive...\n", "")
    assert mark(tmp_path)[1] == -1


def test_an_archive_with_several_threads_refuses_a_driver_without_threads(aeronarchive: Start, tmp_path: Path) -> None:
    process = aeronarchive("--with-driver", *settings(tmp_path, "-Daeron.threading.mode=INVOKER"))
    _, stderr = process.communicate(timeout=10)
    problem = "cannot run a driver with aeron.threading.mode=INVOKER: use SHARED or INVOKER"
    assert stderr == f"ERROR: aeron.archive.threading.mode=DEDICATED {problem}\n"
    assert process.returncode == 1


def test_an_archive_ends_with_status_1_when_its_driver_dies_07_190(aeronarchive: Start, tmp_path: Path) -> None:
    """07, section 1.5"""
    with aeron.MediaDriver(dir=tmp_path / "md"):
        process = aeronarchive(*settings(tmp_path, "-Daeron.driver.timeout=500"))
        eventually(lambda: is_ready(tmp_path))
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (1, "Shutting down archive...\n")
    assert "ERROR: the archive ended because it lost its driver" in stderr
    assert mark(tmp_path)[1] == -1


def test_an_archive_that_its_driver_times_out_ends_with_status_1(aeronarchive: Start, tmp_path: Path) -> None:
    with aeron.MediaDriver(dir=tmp_path / "md", client_liveness_timeout_ns=2_000_000_000):
        process = aeronarchive(*settings(tmp_path))
        eventually(lambda: is_ready(tmp_path))
        process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        process.send_signal(signal.SIGCONT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "ERROR: the archive ended because it lost its driver" in stderr


def test_an_archive_whose_driver_is_terminated_by_a_command_ends_with_status_0(
    aeronarchive: Start, tmp_path: Path
) -> None:
    process = aeronarchive("--with-driver", *settings(tmp_path, "-Daeron.driver.termination.validator=allow"))
    eventually(lambda: is_ready(tmp_path))
    aeron.request_driver_termination(tmp_path / "md")
    assert process.wait(timeout=20) == 0


def test_an_archive_waits_for_a_driver_and_a_signal_ends_the_wait(aeronarchive: Start, tmp_path: Path) -> None:
    """07, section 1.4, step 5"""
    process = aeronarchive(*settings(tmp_path))
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    with aeron.MediaDriver(dir=tmp_path / "md"):
        eventually(lambda: is_ready(tmp_path))
        process.terminate()
        assert process.wait(timeout=10) == signal.SIGTERM
    process = aeronarchive(*settings(tmp_path))
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    process.terminate()
    assert process.wait(timeout=10) == signal.SIGTERM


def test_an_archive_without_a_driver_fails_after_the_driver_timeout(aeronarchive: Start, tmp_path: Path) -> None:
    process = aeronarchive(*settings(tmp_path, "-Daeron.driver.timeout=200"))
    _, stderr = process.communicate(timeout=10)
    remedy = "start one there, or use --with-driver"
    assert stderr == f"ERROR: no media driver in {tmp_path / 'md'} after 200 ms: {remedy}\n"
    assert process.returncode == 1


def test_a_refused_start_prints_one_line(aeronarchive: Start, tmp_path: Path) -> None:
    with aeron.MediaDriver(dir=tmp_path / "md"):
        for more, expected in [
            (
                "-Daeron.archive.segment.file.length=100000",
                "ERROR: aeron.archive.segment.file.length=100000 is not a power of two: use 65536 or 131072\n",
            ),
            (
                "-Daeron.archive.authenticator.supplier=com.acme.Guard",
                "ERROR: aeron.archive.authenticator.supplier=com.acme.Guard is a class that cannot run here: ",
            ),
        ]:
            process = aeronarchive(*settings(tmp_path, more))
            _, stderr = process.communicate(timeout=20)
            assert process.returncode == 1
            assert stderr.startswith(expected)
            assert stderr.count("\n") == 1


def test_settings_come_from_the_environment_and_properties_files(aeronarchive: Start, tmp_path: Path) -> None:
    properties = tmp_path / "archive.properties"
    properties.write_text("aeron.archive.id = 4711\naeron.archive.control.channel.enabled=false")
    directory, archive = str(tmp_path / "md"), str(tmp_path / "archive")
    process = aeronarchive(
        "--with-driver",
        str(properties),
        AERON_DIR=directory,
        AERON_ARCHIVE_DIR=archive,
        AERON_ARCHIVE_REPLICATION_CHANNEL=_ANY_PORT,
    )
    eventually(lambda: is_ready(tmp_path))
    data = (tmp_path / "archive" / "archive-mark.dat").read_bytes()
    assert struct.unpack_from("<q", data, 64) == (4711,)
    process.terminate()
    process.communicate(timeout=10)


def test_the_command_prints_its_version_and_refuses_unknown_options(aeronarchive: Start) -> None:
    process = aeronarchive("-v")
    assert process.communicate()[0].startswith("aeronarchive <aeron version=")
    assert process.returncode == 0
    process = aeronarchive("--wrong")
    assert "Usage: aeronarchive" in process.communicate()[1]
    assert process.returncode == 1


def test_neither_numpy_nor_click_is_imported() -> None:
    check = (
        "import sys; from aeron._aeron import aeronarchive_main as run; run(['-v']); "
        "print('numpy' in sys.modules, 'click' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "False False"


def test_a_failed_start_leaves_a_mark_file_that_every_archive_accepts_07_192(
    aeronarchive: Start, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        channel = f"aeron:udp?endpoint=127.0.0.1:{taken.getsockname()[1]}"
        process = aeronarchive("--with-driver", *settings(tmp_path, f"-Daeron.archive.control.channel={channel}"))
        process.communicate(timeout=20)
    assert process.returncode == 1
    assert mark(tmp_path) == (3 << 16 | 1 << 8, -1)


def test_a_pipe_in_place_of_a_segment_is_an_error_and_the_archive_goes_on_07_193(
    aeronarchive: Start, tmp_path: Path
) -> None:
    arguments = ("--with-driver", *settings(tmp_path))
    process = aeronarchive(*arguments)
    eventually(lambda: is_ready(tmp_path))
    with aeron.connect(tmp_path / "md") as client, aeron.connect_archive(client) as archive:
        publication = archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 1001)
        recording = archive.wait_recorded(publication, publication.publish(b"x", timeout=5), timeout=5)
        archive.stop_recording(publication)
    process.terminate()
    assert process.wait(timeout=10) == signal.SIGTERM
    segment = tmp_path / "archive" / f"{recording.recording_id}-0.rec"
    segment.unlink()
    os.mkfifo(segment)
    process = aeronarchive(*arguments)
    eventually(lambda: is_ready(tmp_path))
    with aeron.connect(tmp_path / "md") as client, aeron.connect_archive(client) as archive:
        with pytest.raises(aeron.ArchiveError, match="not a regular file"):
            archive.replay(recording.recording_id, length=aeron.REPLAY_ALL_AND_STOP)
        assert len(archive.list_recordings()) == 1
    process.terminate()
    assert process.wait(timeout=10) == signal.SIGTERM


def test_the_settings_of_driver_and_archive_are_printed_on_request(aeronarchive: Start, tmp_path: Path) -> None:
    process = aeronarchive("--with-driver", *settings(tmp_path, "-Daeron.print.configuration=true"))
    eventually(lambda: is_ready(tmp_path))
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=30)
    assert errors == ""
    assert "aeron_driver_context_t {\n" in output
    _, _, printed = output.partition("aeron_archive_context {\n")
    assert f"    aeron.archive.dir={tmp_path / 'archive'}\n" in printed
    names = [line.partition("=")[0].strip() for line in printed.partition("\n}")[0].splitlines()]
    assert all(name.startswith("aeron.") for name in names)
    assert len(names) == len(set(names)) >= 40


def test_settings_without_effect_end_the_start_with_strict(aeronarchive: Start, tmp_path: Path) -> None:
    """05-57"""
    given = (
        "-Daeron.archive.max.catalog.entries=5",
        "-Daeron.archive.segment.file.lenght=64k",
        "-Daeron.multicast.flow.control.strategy=x",
    )
    archive = "WARNING: known to Aeron's Java archive, has no effect here: aeron.archive.max.catalog.entries"
    driver = "WARNING: known to Aeron's Java driver, has no effect here: aeron.multicast.flow.control.strategy"
    unknown = (
        "WARNING: aeron.archive.segment.file.lenght is not a setting of Aeron and has no effect: "
        "the nearest name is aeron.archive.segment.file.length"
    )
    strict = "ERROR: --strict, and there are warnings"
    process = aeronarchive("--strict", *settings(tmp_path, *given))
    assert process.communicate(timeout=20)[1].splitlines() == [archive, unknown, strict]
    process = aeronarchive("--with-driver", "--strict", *settings(tmp_path, *given))
    assert process.communicate(timeout=20)[1].splitlines() == [driver, archive, unknown, strict]
    assert process.returncode == 1
    process = aeronarchive("--with-driver", *settings(tmp_path, *given))
    eventually(lambda: is_ready(tmp_path))
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30)[1].splitlines() == [driver, archive, unknown]

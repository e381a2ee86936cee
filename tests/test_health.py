"""Tests of `aeron.health` and `aeron health`: a probe says why a driver or an archive is not live or not ready."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron
from aeron._health import about_process
from commands import run

IPC = "aeron:ipc?term-length=64k"


def reasons(result: aeron.Health) -> str:
    """Returns all reasons as one text."""
    return "\n".join(result.reasons)


def test_a_running_driver_is_live_and_ready(driver: aeron.MediaDriver) -> None:
    assert aeron.health(driver.dir) == aeron.Health(is_live=True, is_ready=True, reasons=())
    assert run("health", "--dir", driver.dir).stdout == "ready\n"
    assert run("health", "--dir", driver.dir, "--deep").stdout == "ready\n"
    assert run("health", "--dir", driver.dir, "--live").stdout == "live\n"


def test_a_directory_without_a_driver_is_not_live(tmp_path: Path) -> None:
    result = aeron.health(tmp_path)
    assert (result.is_live, result.is_ready) == (False, False)
    assert str(tmp_path) in reasons(result)
    command = run("health", "--dir", tmp_path, "--live")
    assert command.exit_code == 1
    assert str(tmp_path) in command.stdout


def test_a_missing_archive_says_nothing_about_a_driver_that_nobody_named(tmp_path: Path) -> None:
    assert reasons(aeron.health(archive=tmp_path)) == f"{tmp_path} has no archive: there is no mark file"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_driver_that_has_ended_is_not_live(tmp_path: Path, how: signal.Signals) -> None:
    """The file of a killed driver remains, and its heartbeat grows old. A driver that ends writes that it has ended."""
    directory = tmp_path / "driver"
    process = subprocess.Popen(
        [sys.executable, "-m", "aeron", "driver", "--dir", str(directory)], stdout=subprocess.DEVNULL
    )
    eventually(lambda: (directory / "cnc.dat").exists() and aeron.health(directory).is_live)
    os.kill(process.pid, how)
    process.wait(10)
    if how == signal.SIGTERM:
        assert "has ended" in reasons(aeron.health(directory))
        return
    assert aeron.health(directory).is_live
    eventually(lambda: not aeron.health(directory).is_live, timeout=15)
    assert "is dead or stopped: its last heartbeat is" in reasons(aeron.health(directory))
    assert reasons(aeron.health(directory)).endswith(f"and there is no process {process.pid} here")


def test_a_stopped_process_is_told_from_a_dead_one() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        os.kill(process.pid, signal.SIGSTOP)
        eventually(lambda: about_process(process.pid) == f"and its process {process.pid} is stopped by a signal")
        os.kill(process.pid, signal.SIGCONT)
        eventually(lambda: about_process(process.pid) == f"and process {process.pid} exists")
        process.kill()
        eventually(lambda: about_process(process.pid) == f"and its process {process.pid} is a zombie")
    assert about_process(process.pid) == f"and there is no process {process.pid} here"


def test_a_stopped_driver_is_not_live_until_it_continues(tmp_path: Path) -> None:
    directory = tmp_path / "driver"
    process = subprocess.Popen(
        [sys.executable, "-m", "aeron", "driver", "--dir", str(directory)], stdout=subprocess.DEVNULL
    )
    try:
        eventually(lambda: (directory / "cnc.dat").exists() and aeron.health(directory).is_live)
        process.send_signal(signal.SIGSTOP)
        eventually(lambda: not aeron.health(directory).is_live, timeout=15)
        process.send_signal(signal.SIGCONT)
        eventually(lambda: aeron.health(directory).is_live)
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.parametrize("media", ["ipc", "udp"])
def test_a_stream_is_ready_while_it_is_connected(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, media: str
) -> None:
    channel = IPC if media == "ipc" else f"aeron:udp?endpoint=localhost:{free_port()}|term-length=64k"
    directory = driver.dir
    named = channel.split("|")[0].split("?term")[0]

    def found() -> aeron.Health:
        return aeron.health(directory, streams=[(named, stream_id)])

    assert f"stream {stream_id} on {named}: there is no publication" in reasons(found())
    assert found().is_live
    publication = client.add_publication(channel, stream_id)
    assert f"publication {publication.registration_id} has no subscriber" in reasons(found())
    subscription = client.add_subscription(channel, stream_id)
    eventually(lambda: found().is_ready)
    assert not aeron.health(directory, streams=[(channel + "|alias=x", stream_id)]).is_ready
    assert not aeron.health(directory, streams=[(channel, stream_id + 1)]).is_ready
    subscription.close()
    eventually(lambda: not found().is_ready, timeout=20)
    assert found().is_live


def test_a_subscriber_that_is_slow_is_named(driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int) -> None:
    subscription = client.add_subscription(IPC, stream_id)
    publication = client.add_exclusive_publication(IPC, stream_id)
    publication.wait_connected(timeout=5)
    for _ in range(10):
        publication.publish(bytes(992), timeout=5)
    streams = [(IPC, stream_id)]

    def found(max_lag: int) -> aeron.Health:
        return aeron.health(driver.dir, streams=streams, max_lag=max_lag)

    # The driver's position of the publisher follows once in a duty cycle of the conductor.
    eventually(lambda: not found(10_239).is_ready)
    assert found(10_240).is_ready
    assert "lags by 10240 bytes, more than 10239" in reasons(found(10_239))
    assert str(subscription.registration_id) in reasons(found(10_239))
    received = 0
    while received < 10:
        received += len(subscription.poll_batch(10))
    assert found(0).is_ready


@pytest.fixture
def archive_dir(driver: aeron.MediaDriver, tmp_path: Path) -> Iterator[Path]:
    with aeron.Archive(tmp_path / "archive", driver=driver, low_storage_space_threshold=0):
        yield tmp_path / "archive"


def test_an_archive_and_its_recordings_are_checked(client: aeron.Aeron, archive_dir: Path, stream_id: int) -> None:
    assert aeron.health(archive=archive_dir).is_ready
    with aeron.connect_archive(client) as archive:
        publication = archive.add_recorded_exclusive_publication(IPC, stream_id)
        recording = archive.wait_recorded(publication, publication.publish(bytes(100), timeout=5), timeout=5)
        recordings = [recording.recording_id]
        assert aeron.health(archive=archive_dir, recordings=recordings, max_lag=1000).is_ready
        archive.stop_recording(publication)
        eventually(lambda: not aeron.health(archive=archive_dir, recordings=recordings).is_ready)
        assert "recording 0 is not active" in reasons(aeron.health(archive=archive_dir, recordings=recordings))


def test_an_archive_that_has_ended_or_never_was_is_not_live(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    directory = tmp_path / "archive"
    assert "there is no mark file" in reasons(aeron.health(driver.dir, archive=directory))
    with aeron.Archive(directory, driver=driver, low_storage_space_threshold=0):
        assert aeron.health(driver.dir, archive=directory).is_live
    result = aeron.health(driver.dir, archive=directory)
    assert not result.is_live
    assert f"the archive in {directory} has ended" in reasons(result)


def test_too_little_space_and_too_few_counters_are_not_ready(driver: aeron.MediaDriver) -> None:
    result = aeron.health(driver.dir, min_free_bytes=2**62, min_free_counters=10**9)
    assert (result.is_live, result.is_ready) == (True, False)
    assert "bytes free, less than 4611686018427387904" in reasons(result)
    assert "more counters, less than 1000000000" in reasons(result)


def test_a_deep_check_leaves_no_counter(driver: aeron.MediaDriver, client: aeron.Aeron) -> None:
    assert aeron.health(driver.dir, deep=True).is_ready
    eventually(lambda: all(each.name != "health_probe" for each in client.counters_reader))


@pytest.mark.parametrize(
    "arguments", [{"max_lag": -1}, {"min_free_bytes": -1}, {"min_free_counters": -1}, {"streams": [("udp:", 1)]}]
)
def test_wrong_arguments_are_refused(driver: aeron.MediaDriver, arguments: dict[str, object]) -> None:
    with pytest.raises((aeron.InvalidArgumentError, aeron.InvalidChannelError)):
        aeron.health(driver.dir, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["--stream=aeron:ipc", "--stream=aeron:ipc,x", "--max-lag=-1", "--stream=udp:,1"])
def test_wrong_options_are_refused(driver: aeron.MediaDriver, option: str) -> None:
    command = run("health", "--dir", driver.dir, option)
    assert command.exit_code == 1
    assert "Error" in command.stderr


def test_json_has_the_whole_result(driver: aeron.MediaDriver) -> None:
    command = run("health", "--dir", driver.dir, "--json", "--stream", "aeron:ipc,77")
    assert command.exit_code == 1
    result = json.loads(command.stdout)
    assert (result["is_live"], result["is_ready"]) == (True, False)
    assert len(result["reasons"]) == 1


def test_the_check_imports_neither_numpy_nor_pyarrow_nor_spark(driver: aeron.MediaDriver) -> None:
    program = f"""
import sys, aeron
assert aeron.health({str(driver.dir)!r}).is_ready
print([name for name in ("numpy", "pyarrow", "pyspark", "rich") if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"

"""Kills archives at random times. After the next start, no recording ends before a position that clients have seen.

`make soak` sets the variable `SOAK`, which raises the number of kills to 200.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import aeron
from interop import toolchain
from interop.archive_tool import ArchiveTool
from interop.processes import Process
from interop.waiting import eventually

_KILLS = 200 if os.environ.get("SOAK") else 20
_STREAM = 4001
_CHANNEL = "aeron:ipc?term-length=64k"
_RECORDING_POSITION_TYPE = 100


_PUBLISHER = """
import os, sys, time, aeron
directory, channel, stream = sys.argv[1:]
with aeron.connect(directory) as client:
    publication = client.add_exclusive_publication(channel, int(stream))
    publication.wait_connected(timeout=10)
    while True:
        publication.offer(os.urandom(1500))
        time.sleep(0.0001)
"""


def _recorded_positions(driver):
    """Returns the values of the counters of recorded positions, by recording id."""
    with aeron.CncFile(driver.directory) as file:
        counters = [counter for counter in file.counters() if counter.type_id == _RECORDING_POSITION_TYPE]
    return {int.from_bytes(counter.key[:8], "little"): counter.value for counter in counters}


@pytest.mark.timeout(300 if _KILLS == 20 else 3600)
def test_a_restarted_archive_has_all_data_that_its_counters_showed_before_the_kill(
    drivers, start_archive, archive_client
):
    """07-47, 07-72, 07-77, 07-78, 07-81"""
    generator = random.Random(7)
    driver = drivers("ours")
    archive = start_archive("ours", driver)
    told = {}
    for number in range(_KILLS):
        client = archive_client(driver, archive)
        for recording, position in told.items():
            stop = client.stop_position(recording)
            assert stop >= position, f"recording {recording} ends at {stop}, clients saw {position}"
        client.start_recording(_CHANNEL, _STREAM + number)
        with aeron.connect(driver.directory) as publisher:
            publication = publisher.add_exclusive_publication(_CHANNEL, _STREAM + number)
            recording = client.await_signal("START")["recording"]
            publication.wait_connected(timeout=10)
            told[recording] = 0
            end = time.monotonic() + generator.uniform(0.0, 0.08)
            while time.monotonic() < end:
                publication.offer(generator.randbytes(generator.randrange(3000)))
                if generator.random() < 0.05:
                    told[recording] = _recorded_positions(driver).get(recording, told[recording])
            archive.kill()
        archive.start()
    client = archive_client(driver, archive)
    assert len(client.list_recordings(count=2 * _KILLS)) == _KILLS
    client.close()
    assert archive.stop() == 15
    ArchiveTool(archive.directory).verify()


@pytest.mark.timeout(300 if _KILLS == 20 else 3600)
def test_a_restarted_archive_keeps_complete_frames_of_zeros_that_look_torn(start_driver, start_archive):
    """07-79: with the default settings, the index decides whether the last frame is complete."""
    generator = random.Random(13)
    driver = start_driver("ours")
    archive = start_archive("ours", driver)
    told = {}
    for number in range(_KILLS):
        with _connected(driver, archive) as client, aeron.connect(driver.directory) as publisher:
            _check(client, told)
            client.start_recording(_CHANNEL, _STREAM + number)
            publication = publisher.add_exclusive_publication(_CHANNEL, _STREAM + number)
            recording = next(signal for signal in client.signals(10) if signal.signal == "START").recording_id
            publication.wait_connected(timeout=10)
            for _ in range(generator.randrange(1, 300)):
                publication.offer(bytes(generator.randrange(6000)))
            _await_progress(driver, recording)
            told[recording] = _recorded_positions(driver)[recording]
            archive.kill()
        archive.start()
    with _connected(driver, archive) as client:
        _check(client, told)
    assert len(told) == _KILLS


@pytest.mark.timeout(300 if _KILLS == 20 else 3600)
def test_recorded_data_survives_kills_of_drivers_and_publishers(start_driver, start_archive, tmp_path):
    """07-77, 07-78"""
    generator = random.Random(11)
    driver = start_driver("ours")
    archive = start_archive("ours", driver, {"aeron.driver.timeout": 2000})
    told = {}
    for number in range(_KILLS // 5):
        kills_driver = number % 2 == 0
        arguments = (driver.directory, _CHANNEL, _STREAM + number)
        publisher = Process((sys.executable, "-c", _PUBLISHER, *arguments), log=tmp_path / f"publisher-{number}.txt")
        try:
            with _connected(driver, archive) as client:
                _check(client, told)
                client.start_recording(_CHANNEL, _STREAM + number)
                recording = next(signal for signal in client.signals(10) if signal.signal == "START").recording_id
                _await_progress(driver, recording)
                time.sleep(generator.uniform(0.0, 0.08))
                told[recording] = _recorded_positions(driver)[recording]
                if not kills_driver:
                    publisher.kill()
                    _await_stop(client, recording)
                    _check(client, told)
                    continue
                driver.kill()
            assert archive.process.wait(timeout_s=20) == 1
        finally:
            publisher.kill()
        driver = start_driver("ours")
        archive.settings["aeron.dir"] = driver.directory
        archive.start()
    with _connected(driver, archive) as client:
        _check(client, told)
        assert len(client.list_recordings()) == len(told)
    assert archive.stop() == 15
    ArchiveTool(archive.directory).verify()


@contextmanager
def _connected(driver, archive):
    control, control_stream, _ = archive.control("udp")
    with (
        aeron.connect(driver.directory, error_handler=lambda _: None) as client,
        aeron.connect_archive(client, control_channel=control, control_stream_id=control_stream) as connected,
    ):
        yield connected


def _await_progress(driver, recording):
    eventually(lambda: _recorded_positions(driver).get(recording, 0) > 0)


def _await_stop(client, recording):
    eventually(lambda: client.get_stop_position(recording) is not None)


def _check(client, told):
    """Checks that no recording ends before the position in `told`, which clients have seen."""
    for recording, position in told.items():
        stop = client.get_stop_position(recording)
        assert stop is not None
        assert stop >= position, f"recording {recording} ends at {stop}, clients saw {position}"


@pytest.mark.parametrize("mode", ["SHARED", "DEDICATED"])
def test_an_archive_ends_by_itself_when_its_driver_is_killed(start_driver, start_archive, archive_client, mode):
    driver = start_driver("ours")
    settings = {"aeron.archive.threading.mode": mode, "aeron.driver.timeout": 2000}
    archive = start_archive("ours", driver, settings)
    client = archive_client(driver, archive)
    client.start_recording(_CHANNEL, _STREAM)
    with aeron.connect(driver.directory) as publisher:
        publication = publisher.add_exclusive_publication(_CHANNEL, _STREAM)
        recording = client.await_signal("START")["recording"]
        publication.wait_connected(timeout=10)
        position = publication.publish(bytes(1000), timeout=10)
        client.await_recorded(recording, position)
        driver.kill()
    assert archive.process.wait(timeout_s=20) == 1
    assert archive.mark_file()[1] == -1


def test_the_archive_refuses_to_start_with_a_torn_last_fragment_unless_a_setting_lets_it_truncate(
    drivers, start_archive, archive_client
):
    """07-79"""
    driver = drivers("ours")
    archive = start_archive("ours", driver)
    assert archive.stop() == 15
    shutil.rmtree(archive.directory)
    archive.directory.mkdir()
    states = toolchain.rust_example("archive_states")
    subprocess.run([states, "write", "torn", archive.directory], check=True, capture_output=True, timeout=60)
    (archive.directory / "archive-mark.dat").unlink()
    catalog = (archive.directory / "archive.catalog").read_bytes()
    with pytest.raises(AssertionError, match=r"straddling page boundary in file: .*aeron\.archive\.on\.torn\.fragment"):
        archive.start()
    assert (archive.directory / "archive.catalog").read_bytes() == catalog
    archive.settings["aeron.archive.on.torn.fragment"] = "truncate"
    archive.start()
    (recording,) = archive_client(driver, archive).list_recordings()
    assert recording["stop"] > recording["start"]
    assert archive.stop() == 15
    ArchiveTool(archive.directory).verify()

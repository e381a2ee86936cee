"""Tests of ``aeron archive replicate --follow``. A copy continues after the command or an archive has ended."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually

import aeron
from commands import Command, driver_directory, run
from ports import free_port

CHANNEL = "aeron:ipc?term-length=64k"
MESSAGE = bytes(992)
"""Message with a frame of 1024 bytes."""

SETTINGS: dict[str, Any] = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0}


class Scene:
    """A driver with two archives: the origin of a recording, and the archive of the copy."""

    def __init__(self, driver: aeron.MediaDriver, directory: Path) -> None:
        self.driver, self._directory = driver, directory
        self.origin_channel = f"aeron:udp?endpoint=localhost:{free_port()}"
        self.channel = f"aeron:udp?endpoint=localhost:{free_port()}"
        self.client = aeron.connect(driver)
        self.origin_server, self.server = self.start_origin(), self.start()
        self.origin = aeron.connect_archive(self.client, control_channel=self.origin_channel)
        self.publication = self.origin.add_recorded_exclusive_publication(CHANNEL, 1001)
        self.recording_id = self.record(1).recording_id

    def start_origin(self) -> aeron.Archive:
        return aeron.Archive(
            self._directory / "origin",
            driver=self.driver,
            control_channel=self.origin_channel,
            local_control_stream_id=20,
            archive_id=1,
            **SETTINGS,
        )

    def start(self) -> aeron.Archive:
        return aeron.Archive(
            self._directory / "copy",
            driver=self.driver,
            control_channel=self.channel,
            local_control_stream_id=30,
            archive_id=2,
            **SETTINGS,
        )

    def record(self, count: int) -> aeron.Recording:
        for _ in range(count):
            position = self.publication.publish(MESSAGE, timeout=5)
        return self.origin.wait_recorded(self.publication, position, timeout=5)

    def stop_recording(self) -> int:
        self.origin.stop_recording(self.publication)
        eventually(lambda: self.origin.get_stop_position(self.recording_id) is not None)
        position = self.origin.get_stop_position(self.recording_id)
        assert position is not None
        return position

    @property
    def arguments(self) -> list[object]:
        return [
            "archive",
            "replicate",
            "--dir",
            self.driver.dir,
            "--control-channel",
            self.channel,
            self.recording_id,
            self.origin_channel,
            "--follow",
            "--json",
        ]

    def copies(self) -> list[tuple[int, int | None]]:
        with aeron.connect_archive(self.client, control_channel=self.channel) as archive:
            return [(each.recording_id, each.stop_position) for each in archive.list_recordings()]

    def close(self) -> None:
        self.origin.close()
        self.client.close()
        self.server.close()
        self.origin_server.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with driver_directory() as directory, aeron.MediaDriver(dir=directory) as driver:
        scene = Scene(driver, tmp_path)
        yield scene
        scene.close()


def test_a_copy_is_complete_and_the_same_command_reuses_the_copy(scene: Scene) -> None:
    scene.record(150)
    end = scene.stop_recording()
    partial = run(*scene.arguments, "--to", 64 * 1024)
    assert partial.exit_code == 0, partial.output
    assert scene.copies() == [(0, 64 * 1024)]
    for _ in range(2):
        result = run(*scene.arguments)
        assert result.exit_code == 0, result.output
        last = json.loads(result.stdout.splitlines()[-1])
        assert last == {"recording_id": 0, "position": end, "source_position": end, "complete": True}
        assert scene.copies() == [(0, end)]


def test_a_copy_continues_after_the_archive_and_the_command_have_ended(scene: Scene) -> None:
    with Command(*scene.arguments) as command:
        command.wait_for('"recording_id": 0, "position": 1024')
        command.send(signal.SIGKILL)
    scene.record(100)
    with Command(*scene.arguments) as command:
        command.wait_for(f'"position": {101 * 1024}')
        scene.server.close()
        scene.record(100)
        scene.server = scene.start()
        command.wait_for(f'"position": {201 * 1024}', timeout=30)
        end = scene.stop_recording()
        assert command.end(timeout=30) == 0
        assert "trying again" in command.errors()
    assert scene.copies() == [(0, end)]


def test_a_copy_is_completed_after_the_origin_has_started_again(scene: Scene) -> None:
    with Command(*scene.arguments) as command:
        command.wait_for('"recording_id": 0, "position": 1024')
        scene.origin.close()
        scene.origin_server.close()
        scene.origin_server = scene.start_origin()
        # The end of the origin has stopped the recording, so the command ends.
        assert command.end(timeout=30) == 0
    assert scene.copies() == [(0, 1024)]


def test_an_unknown_recording_and_contradictory_options_are_errors(scene: Scene) -> None:
    scene.recording_id = 99
    result = run(*scene.arguments)
    assert result.exit_code == 1
    assert "no recording 99 in the archive" in result.stderr
    result = run(*scene.arguments, "--detach")
    assert result.exit_code == 1
    assert "--follow cannot be given with --detach" in result.stderr

"""Tests of `aeron report`: one file has what a bug report needs, and neither payloads nor secrets."""

from __future__ import annotations

import json
import os
import signal
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually

import aeron
from commands import Command, run

SECRET = "s3cr3t-value"


def parts(path: Path) -> dict[str, bytes]:
    """Returns the contents of a report by name."""
    with tarfile.open(path) as archived:
        members = {each.name.removeprefix("aeron-report/"): archived.extractfile(each) for each in archived}
        return {name: file.read() for name, file in members.items() if file is not None}


def loaded(path: Path, name: str) -> Any:
    return json.loads(parts(path)[name])


def test_a_report_has_a_part_for_each_view_of_driver_and_archive(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path
) -> None:
    output = tmp_path / "report.tar.gz"
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, low_storage_space_threshold=0),
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", stream_id)
        archive.wait_recorded(publication, publication.publish(SECRET.encode(), timeout=5), timeout=5)
        result = run("report", "--dir", driver.dir, "--archive", tmp_path / "archive", "-o", output)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"wrote {output}, ")
    found = parts(output)
    assert {
        "driver/info.txt",
        "driver/health.json",
        "driver/counters.json",
        "driver/streams.json",
        "driver/errors.json",
        "driver/losses.json",
        "driver/files.json",
        "archive/catalog.json",
        "archive/errors.txt",
        "archive/files.json",
        f"processes/{os.getpid()}.json",
        "host.json",
        "problems.json",
    } == set(found)
    assert loaded(output, "problems.json") == []
    assert any(each["stream_id"] == stream_id for each in loaded(output, "driver/streams.json"))
    assert [each["stream_id"] for each in loaded(output, "archive/catalog.json")["recordings"]] == [stream_id]
    assert any(each["name"].endswith(".rec") for each in loaded(output, "archive/files.json"))
    assert loaded(output, "host.json")["packages"]["aeron-py"] == aeron.__version__
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    # The payload is in a log buffer and in a segment file.
    assert all(SECRET.encode() not in content for content in found.values())


def test_values_of_settings_that_may_be_secrets_are_left_out(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    output = tmp_path / "report.tar.gz"
    run(
        "report",
        "--dir",
        driver.dir,
        "-o",
        output,
        AERON_TEST_PASSWORD=SECRET,
        AERON_TEST_URL=f"s3://me:{SECRET}@host/x",
    )
    environment = loaded(output, "host.json")["environment"]
    assert "AERON_TEST_PASSWORD=(left out)" in environment
    assert "AERON_TEST_URL=s3://(left out)@host/x" in environment
    assert all(SECRET.encode() not in content for content in parts(output).values())


def test_a_report_on_a_directory_without_a_driver_names_the_missing_parts(tmp_path: Path) -> None:
    output = tmp_path / "report.tar.gz"
    result = run("report", "--dir", tmp_path / "driver", "--archive", tmp_path / "archive", "-o", output)
    assert result.exit_code == 0
    assert "left out: driver/counters.json: " in result.stderr
    assert "left out: archive/catalog.json: " in result.stderr
    assert loaded(output, "driver/health.json")["is_live"] is False
    assert len(loaded(output, "problems.json")) >= 5
    assert "python" in loaded(output, "host.json")


def test_an_existing_file_is_not_replaced(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    output = tmp_path / "report.tar.gz"
    output.write_text("mine")
    result = run("report", "--dir", driver.dir, "-o", output)
    assert result.exit_code == 1
    assert f"{output} cannot be created: File exists" in result.stderr
    assert output.read_text() == "mine"


def test_a_signal_right_after_the_creation_of_the_file_leaves_no_file(
    driver: aeron.MediaDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fdopen = os.fdopen

    def interrupted(descriptor: int, mode: str) -> Any:
        assert len(list(tmp_path.iterdir())) == 1
        fdopen(descriptor, mode).close()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fdopen", interrupted)
    result = run("report", "--dir", driver.dir, "-o", tmp_path / "report.tar.gz")
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [])


def test_an_interrupted_report_leaves_no_file(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    output = tmp_path / "report.tar.gz"
    with Command("report", "--dir", driver.dir, "-o", output) as command:
        eventually(lambda: any(tmp_path.iterdir()))
        command.send(signal.SIGTERM)
        assert command.end() == 1
    assert list(tmp_path.iterdir()) == []

"""Tests of exports with pandas, and of Spark Connect, where a session talks to its server by gRPC.

`make test-spark-connect` runs this file, and installs packages that other tests must not use, for example pandas.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.recorded import recorder

import aeron


@pytest.mark.timeout(600)
def test_a_session_of_connect_reads_streams_and_recordings_and_writes_frames(
    java: None, media_driver: aeron.MediaDriver, shared_memory: Path
) -> None:
    program = Path(__file__).with_name("connect_program.py")
    done = subprocess.run(
        [sys.executable, program, str(media_driver.dir), str(shared_memory)],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    steps = ["discovered", "refused", "streamed", "recorded", "written", "copied"]
    assert (done.returncode, done.stdout.split()) == (0, steps), done.stderr[-5000:]


def test_pandas_reads_an_exported_recording(media_driver: aeron.MediaDriver, tmp_path: Path) -> None:
    import pandas as pd

    directory = tmp_path / "archive"
    with recorder(media_driver, directory) as recordings:
        recording = recordings.record(7101, [b"message %d" % number for number in range(100)])
    for name, load in (("recording.parquet", pd.read_parquet), ("recording.arrow", pd.read_feather)):
        path = tmp_path / name
        aeron.read_recording(directory, recording.recording_id).export(path)
        frame = load(path)
        assert frame["value"].to_list() == [b"message %d" % number for number in range(100)]
        assert str(frame["timestamp"].dtype) == "datetime64[us, UTC]"
        assert frame["position"].iloc[-1] == recording.stop_position

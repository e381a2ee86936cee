"""Spark Connect: streams, recordings and frames of a session that talks to its server by gRPC.

`make test-spark-connect` runs this. It installs packages for Connect that other tests must not use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import aeron


@pytest.mark.timeout(600)
def test_a_session_of_connect_reads_and_writes(
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

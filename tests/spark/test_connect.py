"""Spark Connect: streams, recordings and frames of a session that talks to its server by gRPC."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import aeron

NEEDED = ("pandas", "grpc", "grpc_status", "zstandard")


@pytest.mark.timeout(600)
def test_a_session_of_connect_reads_and_writes(
    java: None, media_driver: aeron.MediaDriver, shared_memory: Path
) -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}, which only `make test-spark-connect` installs")
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

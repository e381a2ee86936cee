"""Test of the reader of a source process, without Spark."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron

pytest.importorskip("pyspark")

from aeron.spark.stream_reader import AeronStreamReader

PROGRAM = Path(__file__).with_name("ending_reader.py")
_STOP = AeronStreamReader.stop.__code__
LINES_OF_STOP = len({line for *_, line in _STOP.co_lines()} - {None, _STOP.co_firstlineno})
"""Number of lines of `stop`. A test sends SIGTERM before each line."""


@pytest.mark.parametrize("line", range(LINES_OF_STOP))
def test_a_source_process_that_is_terminated_while_it_stops_releases_its_publisher(
    media_driver: aeron.MediaDriver, shared_memory: Path, line: int
) -> None:
    """08-34: Spark sends SIGTERM and closes the socket, in either order. Each of the two ends the reader."""
    stream_id = 2200 + line
    options = {
        "channel": "aeron:ipc",
        "streamId": str(stream_id),
        "aeron.dir": str(media_driver.dir),
        "archiveDir": str(shared_memory),
    }
    command = [sys.executable, str(PROGRAM), json.dumps(options), str(line)]
    with (
        aeron.connect(media_driver) as client,
        client.add_exclusive_publication("aeron:ipc", stream_id) as publication,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        publication.wait_connected(timeout=5)
        process.communicate("\n", timeout=20)
        assert process.returncode == -signal.SIGTERM
        eventually(lambda: not publication.is_connected, 5)

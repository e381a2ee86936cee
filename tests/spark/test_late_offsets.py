"""Test of asynchronous progress tracking: batches run before their offsets are logged, and a kill comes between the
two.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.conftest import eventually
from tests.spark.collecting import numbers, send
from tests.spark.conftest import SETTINGS

import aeron

Publisher = Callable[..., aeron.ExclusivePublication]

PROGRAM = Path(__file__).parent / "killed" / "late.py"
STREAM_ID = 4003
PATIENCE_S = 120


@pytest.mark.timeout(600)
def test_a_kill_between_a_batch_and_the_log_of_its_offsets_loses_no_message(
    java: None,
    media_driver: aeron.MediaDriver,
    publisher: Callable[..., aeron.ExclusivePublication],
    shared_memory: Path,
) -> None:
    """08-47: messages after the last logged offset are read again."""
    publication = publisher(STREAM_ID)
    sent = 0
    with application(shared_memory, media_driver, "first") as first:
        while sent < 1000 or not batches_without_an_offset(shared_memory / "checkpoint"):
            assert sent < 100_000, "all batches are logged"
            send(publication, numbers(sent, sent + 100))
            sent += 100
            eventually(lambda count=sent: len(first()) >= count, PATIENCE_S)
    with application(shared_memory, media_driver, "second") as second:
        # A row shows that the second query has subscribed. A connected publication would not show it, because the
        # subscription of the killed query stays for a while.
        eventually(second, PATIENCE_S)
        send(publication, numbers(sent, sent + 100))
        sent += 100
        eventually(lambda: {*first(), *second()} == {*numbers(0, sent)}, PATIENCE_S)
        rows = second()
    assert len(rows) == len(set(rows)), "a row occurs twice after the restart"


@contextmanager
def application(place: Path, driver: aeron.MediaDriver, name: str) -> Iterator[Callable[[], list[bytes]]]:
    """Runs the application during the block, and then kills all its processes. Yields a function that returns the
    complete lines of the application's batches.
    """
    rows = place / name
    rows.touch()
    environment = os.environ | {"SPARK_SETTINGS": json.dumps(SETTINGS), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, PROGRAM, place, str(STREAM_ID), str(driver.dir), rows]
    with open(place / f"{name}.log", "wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield lambda: rows.read_bytes().split(b"\n")[:-1]
        assert process.poll() is None, (place / f"{name}.log").read_text()[-4000:]
    finally:
        family = [*psutil.Process(process.pid).children(recursive=True), process]
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait(10)
        psutil.wait_procs(family[:-1], timeout=10)


def batches_without_an_offset(checkpoint: Path) -> int:
    logged = [int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*")]
    return max(logged, default=-1) + 1 - len(logged)

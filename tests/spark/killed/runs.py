"""Runs of a killed application, and the comparison of its rows with the published messages."""

import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from hooks import pause_at
from interop.archive_tool import ArchiveTool
from spark.conftest import SETTINGS
from spark.killed.publisher import message

HERE = Path(__file__).parent
STREAM_ID = 1001
RATE = 4000
START_TIMEOUT_S = 180
PROCESSES = {"source": "python_streaming_source_runner", "jvm": "SparkSubmit", "worker": "pyspark.daemon"}


@dataclass(frozen=True)
class Kill:
    """A kill when a point of the pipeline is reached for the `count`-th time. If `point` is ``None``, the kill comes
    after some batches.
    """

    point: str | None
    whom: str
    count: int = 1
    wait_s: float = 1


class Application:
    """A run of the application in a separate process group."""

    def __init__(self, place, channel, directory, kill):
        self._reached = place / "reached"
        self._reached.unlink(missing_ok=True)
        environment = os.environ | {"SPARK_SETTINGS": json.dumps(SETTINGS), "PYSPARK_PYTHON": sys.executable}
        if kill and kill.point:
            environment |= pause_at(f"{kill.point}:{kill.count}:{self._reached}")
        command = [sys.executable, HERE / "application.py", place, channel, str(STREAM_ID), directory]
        self._log = place / "log.txt"
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def source_process(self):
        """Returns the process that records the stream."""
        return self._find("source")

    def await_point(self):
        self.await_(self._reached.exists)

    def await_(self, holds, timeout_s=START_TIMEOUT_S):
        deadline = time.monotonic() + timeout_s
        while not holds():
            assert self.process.poll() is None, f"the application ended by itself:\n{self.told()}"
            assert time.monotonic() < deadline, f"not within {timeout_s} s:\n{self.told()}"
            time.sleep(0.02)

    def kill(self, whom):
        """Kills one process of the application, or all. If it kills one, it then also kills the remaining processes,
        because an application ends when its query has failed. Does nothing if the application has ended by itself.
        """
        if self.process.poll() is not None:
            return
        family = psutil.Process(self.process.pid).children(recursive=True)
        if whom != "application":
            self._find(whom).kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
        for process in [psutil.Process(self.process.pid), *family] if self.process.poll() is None else family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(10)
        psutil.wait_procs(family, timeout=10)

    def _find(self, whom):
        family = psutil.Process(self.process.pid).children(recursive=True)
        [*_, found] = [process for process in family if PROCESSES[whom] in " ".join(command(process))]
        return found

    def told(self):
        return self._log.read_text(errors="replace")[-4000:]


def command(process):
    """Returns the command line of a process; empty if the process has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class Publisher:
    """A publisher in a separate process, and the positions of accepted messages."""

    def __init__(self, place, channel, directory):
        self._file = place / "accepted"
        command = [sys.executable, HERE / "publisher.py", directory, channel, str(STREAM_ID), str(RATE), self._file]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.session_id = int(self._process.stdout.readline())

    def stop(self):
        """Stops publishing. Returns the position after each message."""
        self._process.stdin.write("enough\n")
        self._process.stdin.flush()
        count = int(self._process.stdout.readline())
        return list(struct.unpack(f"<{count}q", self._file.read_bytes()))

    def close(self):
        self._process.kill()
        self._process.wait(10)
        self._process.stdin.close()
        self._process.stdout.close()


def verify(place):
    """Verifies a copy of a killed archive with the real tool."""
    for archive in (place / "archives").glob("*"):
        copy = place / "copy"
        shutil.copytree(archive, copy)
        if (copy / "archive.catalog").exists():
            ArchiveTool(copy).verify(answer="y")
        shutil.rmtree(copy)


def batches(place):
    return sorted((place / "batches").glob("*.parquet"), key=lambda path: int(path.stem))


def progress(place):
    """Returns the progress lines that are complete. The last line of the file may be incomplete."""
    path = place / "progress.jsonl"
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def run_killed(place, channel, directory, kill):
    """Starts the application, and kills it at the given point."""
    application = Application(place, channel, directory, kill)
    try:
        if kill.point:
            application.await_point()
        else:
            goal = len(batches(place)) + 5
            application.await_(lambda: len(batches(place)) >= goal)
        assert application.process.poll() is None, f"the application ended by itself:\n{application.told()}"
        print(
            f"killed {kill.whom} at {kill.point or 'a random moment'}, {len(batches(place))} batches done", flush=True
        )
    finally:
        application.kill(kill.whom)
    verify(place)
    time.sleep(kill.wait_s)


def run_to_the_end(place, channel, directory, publisher):
    """Runs the application without a kill until the last message is in a batch. Returns the position after each
    message.
    """
    with running(place, channel, directory) as application:
        done = len(batches(place))
        application.await_(lambda: len(batches(place)) > done + 2)
        return finish(place, application, publisher)


@contextlib.contextmanager
def running(place, channel, directory):
    """Runs the application during the block. Kills it only if the block fails."""
    application = Application(place, channel, directory, None)
    try:
        yield application
    finally:
        if application.process.poll() is None:
            application.kill("application")


def finish(place, application, publisher):
    """Stops the publisher, and ends the run after the last message is in a batch. Returns the position after each
    message.
    """
    accepted = publisher.stop()
    application.await_(lambda: any(accepted[-1] in _positions(path) for path in batches(place)[-20:]))
    (place / "stop").touch()
    assert application.process.wait(30) == 0, application.told()
    return accepted


def _positions(path):
    return set(pq.read_table(path, columns=["position"])["position"].to_pylist())


def check(place, publisher, accepted):
    """Checks that each message occurs at most once and unchanged. Returns the ranges of missing positions."""
    rows = pa.concat_tables([pq.read_table(path) for path in batches(place)]).to_pylist()
    assert {row["session_id"] for row in rows} == {publisher.session_id}
    assert all(row["timestamp"] is not None for row in rows)
    number_at = {position: number for number, position in enumerate(accepted)}
    numbers = [number_at[row["position"]] for row in rows]
    assert len(set(numbers)) == len(numbers), "a message was read twice"
    assert all(row["value"] == message(number) for row, number in zip(rows, numbers, strict=True))
    missing = sorted(set(range(len(accepted))) - set(numbers))
    ranges = []
    for number in missing:
        begin = accepted[number - 1] if number else 0
        if ranges and ranges[-1][1] == begin:
            ranges[-1][1] = accepted[number]
        else:
            ranges.append([begin, accepted[number]])
    return ranges

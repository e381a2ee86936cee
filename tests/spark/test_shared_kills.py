"""Test of a query on a running archive, while Spark, its source process, the archive and the driver are killed in
turn.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import eventually

import aeron
from spark.collecting import PATIENCE_S, numbers
from spark.conftest import SETTINGS
from spark.killed import shared_application
from spark.killed.runs import PROCESSES, batches, command

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 4901

DRIVER = """
import signal, sys, aeron
with aeron.MediaDriver(dir=sys.argv[1], ipc_term_buffer_length=1 << 20):
    signal.pause()
"""

# The driver starts at the same time, and its directory may still have the files of a killed driver.
ARCHIVE = """
import signal, sys, time, aeron

def start():
    while True:
        try:
            settings = {"segment_file_length": 128 * 1024, "low_storage_space_threshold": 0}
            return aeron.Archive(sys.argv[2], sys.argv[1], **settings)
        except aeron.AeronError as error:
            print(error, file=sys.stderr)
            time.sleep(0.1)

with start():
    signal.pause()
"""


class Servers:
    """A driver and an archive in separate processes, and a publisher in this process."""

    def __init__(self, place):
        self.place = place
        self.driver_directory = str(place / "driver")
        self.archive_directory = str(place / "archive")
        self.published = []
        self.processes = {}
        self.start("driver")
        self.start("archive")

    def start(self, name):
        """Starts a process for the first time or after a kill."""
        program = {"driver": DRIVER, "archive": ARCHIVE}[name]
        command = [sys.executable, "-c", program, self.driver_directory, self.archive_directory]
        self.processes[name] = subprocess.Popen(command)

    def kill(self, name):
        """Kills a process with SIGKILL."""
        self.processes[name].kill()
        self.processes[name].wait(10)

    def publish(self, count):
        """Publishes messages on a new session. Returns when all of them are recorded."""
        messages = numbers(len(self.published), len(self.published) + count)

        with (
            waited(self._client) as client,
            aeron.connect_archive(client) as archive,
            archive.add_recorded_exclusive_publication(CHANNEL, STREAM_ID) as publication,
        ):
            for message in messages:
                position = publication.publish(message, timeout=20)
            archive.wait_recorded(publication, position, timeout=20)
        self.published += messages

    def _client(self):
        """Returns clients of the driver and of the archive, which may be starting; `None` if a client cannot connect
        yet.
        """
        client = None
        try:
            client = aeron.connect(self.driver_directory)
            aeron.connect_archive(client, message_timeout=1).close()
        except aeron.AeronError:
            # The client may have found the files of the killed driver.
            if client is not None:
                client.close()
            return None
        return client


def waited(attempt):
    """Calls a function until it returns a result, and returns the result."""
    results = []
    eventually(lambda: results.append(attempt()) or results[-1], PATIENCE_S)
    return results[-1]


@pytest.fixture
def servers(shared_memory):
    servers = Servers(shared_memory)
    yield servers
    for process in servers.processes.values():
        process.kill()
        process.wait(10)


def values(place):
    """Returns the values of all rows of all batches, ordered by recording and position."""
    tables = [pq.read_table(path) for path in batches(place)]
    rows = pa.concat_tables(tables).sort_by([("recording_id", "ascending"), ("position", "ascending")])
    return rows["value"].to_pylist()


def source_process():
    """Returns the process that plans the batches of the query."""
    family = psutil.Process(os.getpid()).children(recursive=True)
    [*_, found] = [process for process in family if PROCESSES["source"] in " ".join(command(process))]
    return found


@pytest.mark.timeout(600)  # starts a second application, which takes a minute on a busy machine
def test_each_message_is_read_once_after_kills(spark, servers, shared_memory):
    options = {
        "archive.controlChannel": "aeron:ipc",
        "archive.dir": servers.archive_directory,
        "streamId": str(STREAM_ID),
        "aeron.dir": servers.driver_directory,
        "startingOffsets": "earliest",
        "maxRowsPerTrigger": "400",
    }
    servers.publish(1000)
    program = Path(shared_application.__file__)
    environment = os.environ | {"SPARK_SETTINGS": json.dumps(SETTINGS), "PYTHONPATH": str(program.parents[2])}
    with subprocess.Popen([sys.executable, program, shared_memory, json.dumps(options)], env=environment) as spark_:
        eventually(lambda: len(batches(shared_memory)) > 1, PATIENCE_S)
        family = psutil.Process(spark_.pid).children(recursive=True)
        for process in [spark_, *family]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def catch_up(query):
        """Waits until the query has all rows. Starts it again if a kill has ended it."""
        running = [query]

        def has_all():
            if not running[-1].isActive:
                running.append(shared_application.start(spark, shared_memory, options))
            return len(values(shared_memory)) == len(servers.published)

        eventually(has_all, PATIENCE_S)
        return running[-1]

    query = catch_up(shared_application.start(spark, shared_memory, options))
    for victims in (["source"], ["archive"], ["driver", "archive"]):
        servers.publish(500)
        if victims == ["source"]:
            source_process().kill()
        for name in victims:
            if name != "source":
                servers.kill(name)
        for name in victims:
            if name != "source":
                servers.start(name)
        servers.publish(300)
        query = catch_up(query)
    query.stop()
    assert values(shared_memory) == servers.published

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

from spark.collecting import PATIENCE_S, numbers
from spark.conftest import SETTINGS
from spark.killed import shared_application
from spark.killed.runs import PROCESSES, batches, command
from spark.killed.servers import Servers

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 4901


class Recorder(Servers):
    """A driver and an archive in separate processes, and a publisher in this process."""

    def __init__(self, place):
        super().__init__(place)
        self.published = []

    def publish(self, count):
        """Publishes messages on a new session. Returns when all of them are recorded."""
        messages = numbers(len(self.published), len(self.published) + count)

        with (
            self.connected() as archive,
            archive.add_recorded_exclusive_publication(CHANNEL, STREAM_ID) as publication,
        ):
            for message in messages:
                position = publication.publish(message, timeout=20)
            archive.wait_recorded(publication, position, timeout=20)
        self.published += messages


@pytest.fixture
def servers(shared_memory):
    servers = Recorder(shared_memory)
    yield servers
    servers.close()


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
        "archive.dir": str(servers.archive_directory),
        "streamId": str(STREAM_ID),
        "aeron.dir": str(servers.dir),
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

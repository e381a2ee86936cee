"""Test of Spark that reads an archive on another host. A firewall lets in only packets that respond to packets of
Spark's host.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from tests.conftest import eventually

import aeron
from commands import driver_directory
from firewall import two_hosts_with_a_firewall
from spark.collecting import PATIENCE_S, numbers
from spark.conftest import SETTINGS
from spark.killed import shared_application
from spark.killed.runs import batches
from test_archive_firewall import ARCHIVE_OPTIONS, CONTROL, RESPONSES
from test_archive_scenarios import running_archive

STREAM_ID = 5101
OPTIONS = {
    "archive.controlChannel": CONTROL,
    "archive.responseChannel": RESPONSES,
    "embeddedDriver": "true",
    "streamId": str(STREAM_ID),
    "startingOffsets": "earliest",
}


@contextmanager
def running_query(namespace: str, place: Path) -> Iterator[None]:
    """Runs a query in a namespace. Its source and its workers have drivers of their own."""
    program = Path(shared_application.__file__)
    environment = {
        **os.environ,
        "SPARK_SETTINGS": json.dumps(SETTINGS),
        "PYTHONPATH": str(program.parents[2]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = ["ip", "netns", "exec", namespace, sys.executable, str(program), str(place), json.dumps(OPTIONS)]
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield
        finally:
            family = psutil.Process(process.pid).children(recursive=True)
            for each in [process, *family]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()


def test_spark_behind_a_firewall_reads_an_archive_on_another_host(java: None, shared_memory: Path) -> None:
    def values() -> list[bytes]:
        tables = [pq.read_table(path) for path in batches(shared_memory)]
        return pa.concat_tables(tables)["value"].to_pylist() if tables else []

    published = numbers(0, 1500)
    with ExitStack() as stack:
        firewall = stack.enter_context(two_hosts_with_a_firewall())
        there = stack.enter_context(driver_directory())
        directory = shared_memory / "archive"
        stack.enter_context(running_archive(there, directory, *ARCHIVE_OPTIONS, namespace=firewall.outside))
        archive = stack.enter_context(aeron.connect_archive(stack.enter_context(aeron.connect(there))))
        publication = archive.add_recorded_publication("aeron:ipc", STREAM_ID)

        def publish(messages: list[bytes]) -> None:
            for message in messages:
                position = publication.publish(message, timeout=20)
            archive.wait_recorded(publication, position, timeout=20)

        publish(published[:1000])
        stack.enter_context(running_query(firewall.inside, shared_memory))
        eventually(lambda: len(values()) == 1000, PATIENCE_S)
        publish(published[1000:])
        eventually(lambda: len(values()) == 1500, PATIENCE_S)
        assert values() == published
        assert firewall.refused == []

"""Tests that each code block in the Spark guide runs without an error. 08-85"""

from __future__ import annotations

import json
import os
import re
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import eventually

import aeron
import aeron.spark
from aeron import _aeron
from commands import run as run_aeron

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[2] / "docs" / "spark.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(found.group(1), found.group(2), found.start()) for found in _BLOCK.finditer(GUIDE.read_text())]

TRADE = struct.Struct("<qddiq")


def end_jvm() -> None:
    """Ends the JVM that PySpark keeps for the next session, so that the next session starts a new one."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="module", autouse=True)
def environment(media_driver: aeron.MediaDriver) -> Iterator[None]:
    """Makes the module's driver the default driver, because the guide uses the default driver. Spark's workers inherit
    the environment of the JVM, so this module starts a separate JVM."""
    os.environ["AERON_DIR"] = str(media_driver.dir)
    end_jvm()
    yield
    del os.environ["AERON_DIR"]
    end_jvm()


@pytest.fixture(scope="module")
def published(environment: None, media_driver: aeron.MediaDriver) -> Iterator[None]:
    """Publishes texts on stream 1001 and trades on stream 1002, and reads the streams 2001 and 2002, while the guide's
    blocks run.
    """
    stop = threading.Event()
    with aeron.connect(media_driver) as client:
        texts = client.add_exclusive_publication("aeron:ipc", 1001)
        trades = client.add_exclusive_publication("aeron:ipc", 1002)
        written = [client.add_subscription("aeron:ipc", stream_id) for stream_id in (2001, 2002)]

        def publish() -> None:
            number = 0
            while not stop.wait(0.01):
                number += 1
                texts.offer(b"message %d" % number)
                trades.offer(TRADE.pack(time.time_ns() // 1000, 100.0 + number, 1.0, 7, number))
                for subscription in written:
                    subscription.poll_batch()

        thread = threading.Thread(target=publish)
        thread.start()
        yield
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def recorded(media_driver: aeron.MediaDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Yields while an archive with a recording of stream 1003 exists."""
    directory = tmp_path_factory.mktemp("running")
    with (
        aeron.Archive(directory, driver=media_driver, low_storage_space_threshold=0),
        aeron.connect(media_driver) as client,
        aeron.connect_archive(client) as archive,
        archive.add_recorded_publication("aeron:ipc", 1003) as publication,
    ):
        position = publication.publish(b"recorded", timeout=20)
        archive.wait_recorded(publication, position, timeout=20)
        yield


@pytest.fixture(scope="module")
def names(
    spark: SparkSession,
    published: None,
    recorded: None,
    media_driver: aeron.MediaDriver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Any]]:
    """Returns the names that earlier blocks of the guide define for later blocks, and the archive of an ended query."""
    directory = tmp_path_factory.mktemp("archives")
    directory.chmod(0o700)
    source = _aeron.LiveSource("aeron:ipc", [1001], client={"aeron_dir": media_driver.dir}, archive_dir=directory)
    offset = source.initial_offset()
    source.partitions(offset, offset)
    eventually(lambda: json.loads(source.report())["recordings"], 20)
    source.close()
    names = {"spark": spark, "aeron": aeron, "archive_directory": str(directory)}
    yield names
    for query in spark.streams.active:
        query.stop()
    if "done" in names:
        names["done"].set()


def test_the_guide_has_blocks() -> None:
    assert len(BLOCKS) > 4
    assert {language for language, _, _ in BLOCKS} <= {"python", "console"}


@pytest.mark.parametrize(("language", "code", "place"), BLOCKS, ids=[f"{block[0]}-{block[2]}" for block in BLOCKS])
def test_a_block_of_the_guide_runs(
    spark: SparkSession, published: None, names: dict[str, Any], language: str, code: str, place: int
) -> None:
    """08-85"""
    if language == "console":
        for line in code.splitlines():
            result = run_aeron(*line.removeprefix("$ aeron ").split())
            assert result.exit_code == 0, result.output
        return
    compiled = compile("\n" * GUIDE.read_text()[:place].count("\n") + "\n" + code, str(GUIDE), "exec")
    exec(compiled, names)
    for query in spark.streams.active:
        assert query.exception() is None

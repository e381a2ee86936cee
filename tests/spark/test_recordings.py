"""Tests of batch reads with Spark: the recordings of a query that was stopped or killed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import eventually

import aeron
from aeron import _aeron

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Publisher = Callable[..., aeron.ExclusivePublication]

MESSAGES = [b"message %d" % number for number in range(500)] + [bytes(5000)] * 3


class Recorder:
    """A live source without Spark. The recordings remain after the end of the source."""

    def __init__(self, media_driver: aeron.MediaDriver, directory: Path, stream_ids: list[int]) -> None:
        self.source = _aeron.LiveSource(
            "aeron:ipc", stream_ids, client={"aeron_dir": media_driver.dir}, archive_dir=directory
        )
        offset = self.source.initial_offset()
        self.source.partitions(offset, offset)

    def wait_for(self, publications: list[aeron.ExclusivePublication]) -> None:
        """Waits until all sent messages are recorded."""
        positions = sorted(publication.position for publication in publications)
        eventually(lambda: sorted(json.loads(self.source.report())["recordings"].values()) == positions, 20)


@pytest.fixture(scope="module")
def archive(
    media_driver: aeron.MediaDriver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, list[int]]]:
    """Returns a directory with one private archive of two streams, and the session ids of the streams."""
    directory = tmp_path_factory.mktemp("archives", numbered=True)
    directory.chmod(0o700)
    recorder = Recorder(media_driver, directory, [3001, 3002])
    with aeron.connect(media_driver) as client:
        publications = [client.add_exclusive_publication("aeron:ipc", stream_id) for stream_id in (3001, 3002)]
        for publication in publications:
            publication.wait_connected(timeout=20)
            for message in MESSAGES:
                publication.publish(message, timeout=20)
        recorder.wait_for(publications)
        recorder.source.close()
        yield directory, [publication.session_id for publication in publications]


@pytest.fixture
def recordings(spark: SparkSession, archive: tuple[Path, list[int]]) -> Callable[..., DataFrame]:
    """Returns `recordings(schema=None, **options)`, which loads the frame of the module's archive."""

    def load(schema: str | None = None, **options: Any) -> DataFrame:
        texts = {name: str(value) for name, value in options.items()}
        reader = spark.read.format("aeron").options(**{"archiveDir": str(archive[0]), **texts})
        return (reader.schema(schema) if schema else reader).load()

    return load


def test_two_reads_of_a_stopped_query_have_all_messages_and_change_no_file(
    recordings: Callable[..., DataFrame], archive: tuple[Path, list[int]]
) -> None:
    """08-58"""
    before = contents(archive[0])
    first = recordings().toArrow()
    assert first.sort_by([("stream_id", "ascending"), ("position", "ascending")])["value"].to_pylist() == MESSAGES * 2
    assert set(first["session_id"].to_pylist()) == set(archive[1])
    assert first["timestamp"].null_count == 0
    assert recordings().toArrow().equals(first)
    assert contents(archive[0]) == before


def contents(directory: Path) -> dict[str, tuple[int, int]]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


@pytest.mark.parametrize("options", [{"minPartitions": 7}, {"maxRowsPerPartition": 50}, {"minPartitions": 1}])
def test_each_message_occurs_once_for_each_number_of_partitions(
    recordings: Callable[..., DataFrame], options: dict[str, int]
) -> None:
    """08-58"""
    frame = recordings("position BIGINT, session_id INT, value BINARY", **options)
    if "minPartitions" in options:
        assert frame.rdd.getNumPartitions() >= options["minPartitions"]
    rows = frame.toArrow()
    assert rows.num_rows == 2 * len(MESSAGES)
    assert len(set(zip(rows["session_id"].to_pylist(), rows["position"].to_pylist(), strict=True))) == rows.num_rows
    assert sorted(rows["value"].to_pylist()) == sorted(MESSAGES * 2)


def test_stream_and_recording_ids_select_the_recordings(recordings: Callable[..., DataFrame]) -> None:
    """08-58"""
    assert recordings(streamId=3002).count() == len(MESSAGES)
    assert {row.recording_id for row in recordings(recordingId="0", includeHeaders=True).collect()} == {0}
    with pytest.raises(Exception, match=r"no recording 9 in .*; it has 0-1"):
        recordings(recordingId="9").count()


def test_an_archive_that_is_in_use_is_refused(
    spark: SparkSession, media_driver: aeron.MediaDriver, shared_memory: Path
) -> None:
    """08-58"""
    recorder = Recorder(media_driver, shared_memory, [3003])
    frame = spark.read.format("aeron").option("archiveDir", str(shared_memory)).load()
    with pytest.raises(Exception, match=rf"archive .* is in use by process {os.getpid()}"):
        frame.count()
    recorder.source.close()
    assert frame.count() == 0


def test_a_directory_without_an_archive_is_refused(spark: SparkSession, shared_memory: Path) -> None:
    """08-58"""
    frame = spark.read.format("aeron").option("archiveDir", str(shared_memory)).load()
    with pytest.raises(Exception, match=f"no archive at {shared_memory}"):
        frame.count()

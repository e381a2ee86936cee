"""Tests of Spark with the real Aeron: with real drivers, and with real clients."""

import pytest
from tests.spark.collecting import Batches, running, until
from tests.spark.conftest import java, spark, spark_settings  # noqa: F401 - fixtures

from interop.kinds import REAL
from interop.peer.pattern import message

IPC = "aeron:ipc"
COUNT = 3000
LENGTHS = [8, 100, 1376, 1377, 5000]


@pytest.fixture
def live(spark, run_directory):  # noqa: F811
    """`live(driver, stream)` returns a Spark data frame with the payloads of a stream. The archives are in this run's
    directory."""

    def load(driver, stream):
        archives = run_directory / "archives"
        options = {"channel": IPC, "streamId": str(stream), "aeron.dir": driver.directory, "archiveDir": str(archives)}
        return spark.readStream.format("aeron").options(**options).schema("value BINARY").load()

    return load


@pytest.mark.parametrize("driver", REAL)
def test_spark_reads_rows_that_spark_wrote_through_a_real_driver(driver, shared_drivers, spark, live, stream, tmp_path):  # noqa: F811
    """08-80"""
    running_driver = shared_drivers(driver)
    batches = Batches()
    with running(live(running_driver, stream), tmp_path / "checkpoint", batches) as query:
        frame = spark.range(COUNT, numPartitions=1).selectExpr("cast(id as string) as value")
        options = {"channel": IPC, "streamId": str(stream), "aeron.dir": running_driver.directory}
        frame.write.format("aeron").options(**options).mode("append").save()
        until(query, lambda: batches.rows == COUNT)
    assert batches.column("value") == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("publisher", REAL)
def test_spark_reads_messages_that_real_clients_publish(publisher, shared_drivers, start_peer, live, stream, tmp_path):
    """08-80"""
    driver = shared_drivers("ours")
    publication = start_peer(publisher, driver).add_publication(IPC, stream)
    batches = Batches()
    with running(live(driver, stream), tmp_path / "checkpoint", batches) as query:
        publication.await_connected()
        publication.start_publish(COUNT, LENGTHS)
        publication.peer.answer(60)
        until(query, lambda: batches.rows == COUNT)
    assert batches.column("value") == [message(number, LENGTHS[number % len(LENGTHS)]) for number in range(COUNT)]

"""Spark's part of the demo: a separate session, and two queries that make bars of a stream of trades."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aeron.spark
from aeron.demo.bars import BAR_LAYOUT, TRADE_LAYOUT, bars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

CORES = 2

# These settings save time. The checkpoints are deleted after the demo, so they need no atomic renames and no checksums.
_FAST_CHECKPOINTS: dict[str, object] = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": False,
}


@dataclass(frozen=True)
class Pipeline:
    """Settings of the queries: the directory of the driver, the channel and streams of trades and bars, the length of a
    bar, and the directory of the demo's files (`place`)."""

    directory: str
    channel: str
    trades_stream_id: int
    bars_stream_id: int
    bar_us: int
    place: Path

    @property
    def parquet(self) -> Path:
        """Directory of the Parquet files."""
        return self.place / "bars.parquet"

    def start(self, spark: SparkSession) -> Iterator[StreamingQuery]:
        """Starts two queries: one writes bars to a stream, the other to Parquet. Each query reads all trades.

        The iterator starts a query when the caller requests the next item. Spark starts a Python process for each
        query, and the process has 10 s to report. If two such processes start at once on a machine with few cores,
        they may take longer."""
        to_aeron = (
            self._bars(spark)
            .writeStream.format("aeron")
            .option("channel", self.channel)
            .option("streamId", self.bars_stream_id)
            .option("aeron.dir", self.directory)
            .option("valueFormat", "struct")
            .option("valueSchema", BAR_LAYOUT)
        )
        to_parquet = self._bars(spark).writeStream.format("parquet").option("path", str(self.parquet))
        yield self._started("to Aeron", to_aeron)
        yield self._started("to Parquet", to_parquet)

    def _started(self, name: str, writer: DataStreamWriter) -> StreamingQuery:
        checkpoint = self.place / "checkpoints" / name.replace(" ", "-")
        return writer.queryName(name).outputMode("append").option("checkpointLocation", str(checkpoint)).start()

    def _bars(self, spark: SparkSession) -> DataFrame:
        trades = (
            spark.readStream.format("aeron")
            .option("channel", self.channel)
            .option("streamId", self.trades_stream_id)
            .option("aeron.dir", self.directory)
            .option("archiveDir", str(self.place / "archives"))
            .option("maxRetainedBytes", "256m")
            .option("valueFormat", "struct")
            .option("valueSchema", TRADE_LAYOUT)
            .load()
        )
        return bars(trades, self.bar_us)


@contextmanager
def session(place: Path, *, survives_kills: bool = False) -> Iterator[SparkSession]:
    """Yields a Spark session for the demo. The log of the session is a file in ``place``. The JVM ends at the end of
    the block.

    Args:
        place: Directory of the session's files.
        survives_kills: Whether checkpoints are written safely, so that the process may be killed.

    Raises:
        RuntimeError: any error of Spark, with the line that names the cause.
        KeyboardInterrupt: SIGINT or SIGTERM while the session started.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{CORES}]").appName("aeron demo")
    settings = _settings(place) | ({} if survives_kills else _FAST_CHECKPOINTS)
    for name, value in settings.items():
        builder = builder.config(name, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # The redirection lasts for the whole block, because PySpark's threads print tracebacks when queries are interrupted
    # or the JVM ends.
    with _errors_to(place / "spark.log"):
        # If the start of a JVM is interrupted, this process cannot end the JVM. So the barrier delays signals until the
        # start is complete.
        with aeron.ShutdownSignalBarrier() as stop:
            spark = builder.getOrCreate()
            is_stopped = stop.is_signalled
        try:
            if is_stopped:
                raise KeyboardInterrupt
            spark.sparkContext.setLogLevel("ERROR")
            aeron.spark.register(spark)
            yield spark
        except PySparkException as error:
            raise RuntimeError(reason(str(error))) from error
        finally:
            gateway: Any = spark.sparkContext._gateway
            spark.stop()
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()


def reason(text: str) -> str:
    """Finds the line that names the cause in the long text of a Spark error. If the text contains an exception of this
    package, returns the line of that exception."""
    ours: list[str] = re.findall(r"^aeron\.[\w.]+: (.+)$", text, re.MULTILINE)
    return ours[-1] if ours else text.strip().splitlines()[0]


def _settings(place: Path) -> dict[str, object]:
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": place / "spark",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={place}",
        "spark.sql.warehouse.dir": place / "warehouse",
        "spark.ui.enabled": False,
        "spark.sql.session.timeZone": "UTC",
        # One partition of state per core. The default is 200.
        "spark.sql.shuffle.partitions": CORES,
        "spark.sql.streaming.numRecentProgressUpdates": 20,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # With a lower limit, Spark would measure the size of each row that it passes to a Python sink.
        "spark.sql.execution.arrow.maxBytesPerBatch": 2**31 - 1,
    }


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Redirects standard error to a file during the block, for this process and for the processes that it starts."""
    sys.stderr.flush()
    terminal = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)

"""The Spark side of the demo: a session of its own, and the two queries that make bars of a stream of trades."""

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


@dataclass(frozen=True)
class Pipeline:
    """Trades from one stream of a driver, bars of a length to another one and to Parquet; all files in one place."""

    directory: str
    channel: str
    trades_stream_id: int
    bars_stream_id: int
    bar_us: int
    place: Path

    @property
    def parquet(self) -> Path:
        """Where Spark writes the bars."""
        return self.place / "bars.parquet"

    def start(self, spark: SparkSession) -> Iterator[StreamingQuery]:
        """Both queries: two sinks need two, as each reads the stream for itself. No Python touches a row.

        Each is started when it is asked for. A Python process that Spark starts for a query has 10 s to report, which
        two at once may miss where cores are few and busy.
        """
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
def session(place: Path) -> Iterator[SparkSession]:
    """A Spark of the demo's own, whose log goes to a file in ``place``; at the end its JVM is gone.

    Raises:
        RuntimeError: for any error of Spark, with the line that says what failed.
        KeyboardInterrupt: SIGINT or SIGTERM while it started.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{CORES}]").appName("aeron demo")
    for name, value in _settings(place).items():
        builder = builder.config(name, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # All the time: threads of PySpark's own print traces when queries are interrupted or the JVM goes.
    with _errors_to(place / "spark.log"):
        # Nobody could end a JVM whose start was interrupted.
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
    """The line of an error of Spark, long with traces and plans, that says what failed: ours if there is one."""
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
        # As many partitions of state as cores, where the default is 200.
        "spark.sql.shuffle.partitions": CORES,
        "spark.sql.streaming.numRecentProgressUpdates": 20,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Below this Spark measures each row on its way to a sink in Python.
        "spark.sql.execution.arrow.maxBytesPerBatch": 2**31 - 1,
        # Checkpoints that die with the demo need no renaming and no checksums.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": False,
    }


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Standard error of this process, and of those that it starts in the block, goes to a file."""
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

"""The Spark process that the demo kills. Usage: ``python -m aeron.demo.crash_query PLAN``.

The process makes bars of the trades in a running archive. If it starts with the files of a killed process, it continues
the work of that process.
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aeron.demo.bars import TRADE_LAYOUT, bars
from aeron.demo.pipeline import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True)
class Query:
    """Plan of the process: the driver, the archive, the length of a bar, and the directory of the query's files."""

    driver: str
    archive: str
    stream_id: int
    bar_us: int
    place: str
    is_last: bool
    """Whether this is the last process. The last process reads all recorded trades, copies all bars to `result`, and
    ends."""

    @property
    def checkpoint(self) -> Path:
        """Directory of Spark's checkpoint."""
        return Path(self.place) / "checkpoint"

    @property
    def parquet(self) -> Path:
        """Directory of the bars. A killed process may leave files that Spark's file log does not contain."""
        return Path(self.place) / "bars.parquet"

    @property
    def result(self) -> Path:
        """Directory with a copy of all bars in the files of Spark's file log."""
        return Path(self.place) / "result.parquet"

    def to_json(self) -> str:
        """Returns the plan as one line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Query:
        """Parses a plan that :meth:`to_json` returned."""
        return Query(**json.loads(text))

    def batches(self) -> int:
        """Returns the number of batches that Spark has committed."""
        return len(list((self.checkpoint / "commits").glob("[0-9]*")))

    def written(self) -> tuple[int, int]:
        """Returns the number and the total length of the files that Spark has written, with its log."""
        lengths = []
        for path in Path(self.place).rglob("*"):
            # Spark may remove the file in between.
            with contextlib.suppress(OSError):
                lengths.append(path.stat().st_size)
        return len(lengths), sum(lengths)


def main(query: Query) -> None:
    """Runs the query until the process is killed. The last process runs it up to the end of the recorded trades."""
    with session(Path(query.place), survives_kills=True) as spark:
        writer = _bars(spark, query)
        if not query.is_last:
            writer.start().awaitTermination()
            return
        writer.trigger(availableNow=True).start().awaitTermination()
        spark.read.parquet(str(query.parquet)).write.parquet(str(query.result))


def _bars(spark: SparkSession, query: Query) -> DataStreamWriter:
    trades = (
        spark.readStream.format("aeron")
        .option("archive.controlChannel", "aeron:ipc")
        .option("archive.dir", query.archive)
        .option("streamId", query.stream_id)
        .option("startingOffsets", "earliest")
        .option("aeron.dir", query.driver)
        .option("valueFormat", "struct")
        .option("valueSchema", TRADE_LAYOUT)
        .load()
    )
    writer = bars(trades, query.bar_us).writeStream.format("parquet").option("path", str(query.parquet))
    return writer.queryName("bars").outputMode("append").option("checkpointLocation", str(query.checkpoint))


if __name__ == "__main__":
    try:
        main(Query.from_json(sys.argv[1]))
    except RuntimeError as error:
        sys.exit(f"Spark: {error}".rstrip())

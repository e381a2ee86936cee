"""A source process that ends in both ways in which Spark ends it. Usage: `ending_reader.py <options as JSON> <line>`.

The process stops its reader, as it does after Spark has closed the socket. In addition, SIGTERM arrives before the
given line of :meth:`AeronStreamReader.stop`, counted from 0.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from types import FrameType
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from aeron.spark.source import AeronDataSource
from aeron.spark.stream_reader import AeronStreamReader


def terminate_before(line: int) -> None:
    """Sends SIGTERM to this process when it reaches the given line of `stop`."""
    lines = iter(range(line + 1))

    def in_stop(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and next(lines, None) == line:
            os.kill(os.getpid(), signal.SIGTERM)
        return in_stop

    sys.settrace(lambda frame, *_: in_stop if frame.f_code is AeronStreamReader.stop.__code__ else None)


def main() -> None:
    """Opens the archive, prints a line, waits for a line, and stops."""
    options, line = json.loads(sys.argv[1]), int(sys.argv[2])
    source = AeronDataSource(options)
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    print("open", flush=True)
    sys.stdin.readline()
    terminate_before(line)
    reader.stop()


if __name__ == "__main__":
    main()

"""Uses a live source as Spark does.

A query logs the end offset of a batch before it plans the batch. After it has logged the end offset of batch n, it
commits the end offset of batch n - 1. The checkpoint is a directory: the query writes `offsets/<n>` before it plans
batch n, and `rows/<n>` (the idempotent sink) and then `commits/<n>` at the end of the batch. As a program, this module
is a source process that tests kill."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from aeron import _aeron
from live.segments import Message, messages


class Query:
    """A streaming query on a checkpoint. With asynchronous progress tracking, Spark commits older batches only."""

    commits_behind = 1
    """Number of batches from the batch that is committed to the batch that was logged last."""

    def __init__(self, checkpoint: Path, source: _aeron.LiveSource) -> None:
        self.checkpoint = checkpoint
        self.source = source
        self._parsed: dict[int, tuple[tuple[int, int], list[Message]]] = {}
        for name in ("offsets", "rows", "commits"):
            (checkpoint / name).mkdir(parents=True, exist_ok=True)

    @property
    def logged(self) -> int:
        """Number of batches with a logged end offset."""
        return len(list((self.checkpoint / "offsets").glob("[0-9]*")))

    @property
    def done(self) -> int:
        """Number of finished batches."""
        return len(list((self.checkpoint / "commits").glob("[0-9]*")))

    def offset(self, batch: int) -> str:
        """Returns the logged end offset of a batch."""
        return (self.checkpoint / "offsets" / str(batch)).read_text()

    def run_batch(self, *, limited: bool = True) -> list[Message] | None:
        """Runs the unfinished batch if there is one, or else the next batch. Returns the rows, or `None` if there is no
        new data."""
        batch = self.done
        if batch == self.logged:
            start = self.offset(batch - 1) if batch else self.source.initial_offset()
            end = _canonical(self.source.latest_offset(start, limited=limited))
            self.source.report()
            if end == start and batch:
                return None
            self._write("offsets", batch, end)
            if batch >= self.commits_behind:
                self.source.commit(self.offset(batch - self.commits_behind))
        start = self.offset(batch - 1) if batch else self.source.initial_offset()
        partitions = self.source.partitions(start, self.offset(batch))
        rows = [message for partition in partitions for message in messages(partition)]
        text = "\n".join(json.dumps([*row[:4], row.payload.hex()]) for row in rows)
        self._write("rows", batch, text)
        self._write("commits", batch, "")
        return rows

    def run_until(self, count: int, timeout: float = 20.0) -> list[Message]:
        """Runs batches until the sink has `count` rows. Returns all rows."""
        deadline = time.monotonic() + timeout
        while len(rows := self.rows()) < count:
            assert time.monotonic() < deadline, (
                f"{len(rows)} of {count} rows within {timeout} s: {self.source.report()}"
            )
            self.run_batch()
        return rows

    def rows(self) -> list[Message]:
        """Returns all rows of the sink, in the order of the batches."""
        return [row for batch in range(self.logged) for row in self._rows_of(batch)]

    def _rows_of(self, batch: int) -> list[Message]:
        """Returns the rows of a batch. Parses each file once; a batch that runs again makes a new file."""
        path = self.checkpoint / "rows" / str(batch)
        if not path.exists():
            return []
        status = path.stat()
        file = status.st_ino, status.st_mtime_ns
        if batch not in self._parsed or self._parsed[batch][0] != file:
            lines = (json.loads(line) for line in path.read_text().splitlines())
            self._parsed[batch] = file, [Message(*fields, bytes.fromhex(payload)) for *fields, payload in lines]
        return self._parsed[batch][1]

    @staticmethod
    def read(partition: str) -> list[Message]:
        """Returns the rows of a partition."""
        return messages(partition)

    def report(self) -> dict[str, int]:
        """Returns the progress report of the source."""
        report: dict[str, int] = json.loads(self.source.report())
        return report

    def _write(self, kind: str, batch: int, text: str) -> None:
        path = self.checkpoint / kind / str(batch)
        new = path.with_name(f".{batch}")
        new.write_text(text)
        new.rename(path)


def _canonical(text: str) -> str:
    """Returns the offset in the form in which Spark logs it: parsed and serialized again."""
    return json.dumps(json.loads(text))


def _terminate(source: _aeron.LiveSource, number: int) -> None:
    """Closes the source and ends the process by the signal, as a source process of Spark does."""
    source.close()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def main() -> None:
    """Runs batches until the process is killed. Arguments: `query.py <checkpoint> <options as JSON>`."""
    checkpoint, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    query = Query(checkpoint, _aeron.LiveSource(**options))
    signal.signal(signal.SIGTERM, lambda number, frame: _terminate(query.source, number))
    while True:
        query.run_batch()


if __name__ == "__main__":
    main()

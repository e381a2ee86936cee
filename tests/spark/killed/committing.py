"""A commit of the exactly-once sink that kills its process at a named step."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import aeron
from aeron.spark.options import recorded_write_options
from aeron.spark.recorded_sink import BatchCommit, StagedPartition, TaskName
from aeron.spark.recorded_state import SinkState

STEPS = ("begin", "decided", "appending", "appended", "completed", "discarded")


def stop_at(step: str, stop: Callable[[], object], set_attribute: Callable[[type, str, Any], object]) -> None:
    """Calls `stop` when a commit comes to a step. `set_attribute` replaces a method of a class."""

    def wrap(kind: type, name: str, *, before: bool = False) -> None:
        method = getattr(kind, name)

        def wrapped(self: Any, *arguments: Any) -> Any:
            if before:
                stop()
            result = method(self, *arguments)
            if not before:
                stop()
            return result

        set_attribute(kind, name, wrapped)

    if step == "begin":
        wrap(BatchCommit, "_decide", before=True)
    elif step == "decided":
        wrap(BatchCommit, "_decide")
    elif step == "appending":
        # Stops after the first half of the messages is published. The archive may have recorded the last message of
        # this half only in part, or not at all.
        append = BatchCommit._append

        def partly(self: BatchCommit, publication: aeron.ExclusivePublication, messages: aeron.Batch) -> None:
            append(self, publication, messages[: (len(messages) + 1) // 2])
            stop()
            append(self, publication, messages[(len(messages) + 1) // 2 :])

        set_attribute(BatchCommit, "_append", partly)
    elif step == "appended":
        wrap(SinkState, "complete", before=True)
    elif step == "completed":
        wrap(BatchCommit, "_complete")
    elif step == "discarded":
        wrap(BatchCommit, "_discard")
    else:
        raise ValueError(step)


def to_json(part: StagedPartition) -> list[Any]:
    """Returns the values of a staged partition, for the arguments of this program."""
    task = part.task
    names = [task.query, task.batch_id, task.partition, task.attempt]
    return [*names, part.recording_id, part.rows, part.messages, part.bytes]


def main() -> None:
    """Commits a batch, and is killed at the step."""
    step, options, parts = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    stop_at(step, lambda: os.kill(os.getpid(), signal.SIGKILL), setattr)
    staged = [StagedPartition(TaskName(*part[:4]), *part[4:]) for part in parts]
    BatchCommit(recorded_write_options(options), staged[0].task.batch_id, staged).run()


if __name__ == "__main__":
    main()

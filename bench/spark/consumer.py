"""Subscribes to the stream of a sink, and checks the number in every row. Runs as a process with these arguments:

`DIRECTORY CHANNEL STREAM ROWS PARTITIONS FORM MODULUS`

FORM is `typed` for records of `TYPED_TYPE`, or `text` for messages of equal length that begin with a number of sixteen
digits. Row n contains the number n modulo MODULUS. The rows are divided into PARTITIONS equal ranges. The number of a
row identifies its partition, so MODULUS must be at least ROWS if there are several partitions. The rows of one
partition arrive in order, and rows of different partitions may interleave. At the end, the process prints the number of
received rows and the number of faults.
"""

import sys
import time

import numpy as np

import aeron
from bench.spark.content import TYPED_TYPE

_SILENCE_S = 60
_DIGITS = 16
_POWERS = 10 ** np.arange(_DIGITS - 1, -1, -1)


def main(directory, channel, stream_id, *what):
    rows, partitions, form, modulus = int(what[0]), int(what[1]), what[2], int(what[3])
    following = [rows * partition // partitions for partition in range(partitions)]
    bounds, received, faults = np.array(following[1:]), 0, 0
    with aeron.connect(directory) as client:
        subscription = client.add_subscription(channel, int(stream_id))
        print("ready", flush=True)
        idle, heard = aeron.BackoffIdleStrategy(), time.monotonic()
        while received < rows and time.monotonic() < heard + _SILENCE_S:
            if not (batch := subscription.poll_batch(4096)):
                idle.idle()
                continue
            idle.reset()
            heard = time.monotonic()
            numbers = typed_numbers(batch) if form == "typed" else text_numbers(batch)
            owners = np.searchsorted(bounds, numbers, side="right")
            for partition in range(partitions):
                mine = numbers[owners == partition]
                faults += not np.array_equal(mine, (following[partition] + np.arange(len(mine))) % modulus)
                following[partition] += len(mine)
            received += len(numbers)
    print(received, faults, flush=True)


def typed_numbers(batch):
    return batch.as_records(TYPED_TYPE)["seq"]


def text_numbers(batch):
    """Returns the number in the first sixteen digits of each message."""
    digits = np.frombuffer(batch.payload, np.uint8).reshape(len(batch), -1)[:, :_DIGITS]
    return (digits - 48) @ _POWERS


if __name__ == "__main__":
    main(*sys.argv[1:])

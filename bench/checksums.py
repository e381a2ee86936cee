"""Cost of the verification of checksums for readers of recordings: `python -m bench.checksums`.

Each recording is read with and without verification, alternately, by `read_recording` and by the reader of Spark's
tasks. The ratio of a pair is the rate with verification divided by the rate without. The ratio of processor times is
the time without verification divided by the time with it. The goals are 0.9 for a recording with checksums and 0.98 for
one without.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass

import pyarrow as pa

import aeron
from aeron import _pipeline

_CHANNEL = "aeron:ipc?term-length=16m"
_KINDS = ("", "CRC-32", "CRC-32C")
_LENGTHS = (32, 1024)
_FRAME_HEADER = 32
_VALUES = pa.schema([("value", pa.binary())])


def _record(directory, checksum, length, mib):
    """Records messages in a new archive directory. Returns the number of messages."""
    count = (mib << 20) // (length + _FRAME_HEADER)
    settings = {"record_checksum": checksum, "low_storage_space_threshold": 0}
    with (
        aeron.MediaDriver() as driver,
        aeron.Archive(directory, driver=driver, **settings),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
        archive.add_recorded_exclusive_publication(_CHANNEL, 1) as publication,
    ):
        block = [os.urandom(length)] * min(count, 1000)
        sent = 0
        while sent < count:
            sent += publication.offer_batch(block[: count - sent])
        archive.wait_recorded(publication, publication.position, timeout=60)
        archive.stop_recording(publication)
    return count


def _batches(directory, verify):
    return aeron.read_recording(directory, 0, columns=["value"], verify_checksums=verify)


def _partitions(directory, verify):
    for partition in _pipeline.plan_recordings(directory, min_partitions=1):
        yield from _pipeline.PartitionReader(partition, _VALUES, verify_checksums=verify)


_READERS = {"read_recording": _batches, "Spark's reader": _partitions}


@dataclass
class _Reading:
    """Messages per second, and processor seconds per million messages."""

    rate: float
    cost: float


def _read(reader, directory, verify, count):
    begin, processor = time.perf_counter(), time.process_time()
    rows = sum(len(pa.record_batch(batch)) for batch in reader(directory, verify))
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    assert rows == count, f"{rows} rows of {count}"
    return _Reading(rows / seconds, processor / rows * 1e6)


def _measure(directory, count, pairs):
    """Yields for each reader its name, and the readings with and without verification."""
    for name, reader in _READERS.items():
        _read(reader, directory, True, count)
        readings = {True: [], False: []}
        for pair in range(pairs):
            for verify in (True, False) if pair % 2 else (False, True):
                readings[verify].append(_read(reader, directory, verify, count))
        yield name, readings[True], readings[False]


def _ratio(values, others):
    ratios = [value / other for value, other in zip(values, others, strict=True)]
    return f"{statistics.median(values) / statistics.median(others):.3f} [{min(ratios):.2f} - {max(ratios):.2f}]"


def _row(recording, name, with_, without, goal):
    rates = [[reading.rate for reading in readings] for readings in (with_, without)]
    # A busy machine changes the rate, but hardly the processor time.
    costs = [[reading.cost for reading in readings] for readings in (without, with_)]
    shown = " | ".join(f"{statistics.median(values) / 1e6:.2f} M/s" for values in rates)
    cells = [recording, name, shown, _ratio(*rates), _ratio(*costs), f"at least {goal}", f"{os.getloadavg()[0]:.1f}"]
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.checksums", description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=512, help="length of each recording")
    parser.add_argument("--pairs", type=int, default=7)
    chosen = parser.parse_args()
    print("| recording | reader | with verification | without | ratio [of pairs] | processor time | goal | load |")
    print("|---|---|---|---|---|---|---|---|")
    for length in _LENGTHS:
        for kind in _KINDS:
            parent = tempfile.mkdtemp(prefix="aeron-bench-checksums-", dir="/dev/shm")
            try:
                directory = f"{parent}/archive"
                count = _record(directory, kind, length, chosen.mib)
                for name, with_, without in _measure(directory, count, chosen.pairs):
                    recording = f"{length} B, {kind or 'no checksum'}"
                    print(_row(recording, name, with_, without, 0.9 if kind else 0.98), flush=True)
            finally:
                shutil.rmtree(parent)


if __name__ == "__main__":
    main()

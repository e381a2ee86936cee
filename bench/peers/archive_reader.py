"""Reads a recording in batches from Python, and checks the messages. The source is a replay or the segment files."""

import glob
import os
import time

import numpy as np
from records import END, record_type, run, say

import aeron

HEADER = 32
BLOCK = 1 << 20


class Check:
    """Checks the sequence of the native publisher's records and adds up their values. The numbers never start again at
    0."""

    def __init__(self, length):
        self._type = record_type(length)
        self._numbers = np.arange(BLOCK)
        self.received, self.sum, self.faults = 0, 0, 0
        self._start, self._before = None, 0

    def take(self, payloads):
        records = np.frombuffer(payloads, self._type)
        if len(records) and records["number"][-1] == END:
            records = records[:-1]
        if self._start is None:
            self._start, self._before = time.perf_counter(), len(records)
        self.faults += int((records["number"] != self._numbers[: len(records)] + self.received).any())
        self.sum += int(records["value"].sum())
        self.received += len(records)

    def report(self):
        seconds, measured = time.perf_counter() - self._start, self.received - self._before
        say(received=self.received, sum=self.sum, faults=self.faults, measured=measured, seconds=seconds)


def subscribe(arguments):
    check = Check(arguments.length)
    {"replay": by_replay, "files": from_files}[arguments.how](arguments, check)
    check.report()


def by_replay(arguments, check):
    dtype = record_type(arguments.length)
    with (
        aeron.connect(arguments.directory) as client,
        aeron.connect_archive(client) as archive,
        archive.replay(arguments.recording, length=aeron.REPLAY_ALL_AND_STOP) as replay,
    ):
        for batch in replay.batches():
            check.take(batch.as_records(dtype))


def from_files(arguments, check):
    frame = np.dtype([("header", f"V{HEADER}"), ("record", record_type(arguments.length))])
    left = arguments.stop
    paths = glob.glob(os.path.join(arguments.files, f"{arguments.recording}-*.rec"))
    for path in sorted(paths, key=lambda path: int(path.rsplit("-", 1)[1].removesuffix(".rec"))):
        with open(path, "rb", buffering=0) as file:
            while left > 0 and (block := file.read(min(BLOCK, left))):
                left -= len(block)
                check.take(np.ascontiguousarray(np.frombuffer(block, frame)["record"]))


run({"sub": subscribe})

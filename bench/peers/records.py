"""Content of messages from Python, and the check of received messages. All Python peers use this module.

Each message is a record with a number and a value. The publisher creates `RING` records before the measurement. It
sends these records in order, and then begins again with the first record. So message n has the number n modulo `RING`.
The last message of a stream has the number -1. The receiver checks whole batches with numpy.
"""

import json
import sys
import time

import numpy as np

RING = 4096
END = -1


class Arguments:
    """The command line: `ROLE DIRECTORY name=value...`."""

    def __init__(self, words):
        self.role, self.directory = words[1:3]
        self._values = dict(word.split("=", 1) for word in words[3:])
        self.seconds = float(self._values.get("seconds", 2))
        self.warmup = float(self._values.get("warmup", 0))
        self.length = int(self._values.get("length", 32))
        self.channel = self._values.get("channel", "aeron:ipc")
        self.how = self._values.get("how", "")
        self.limit = int(self._values.get("limit", 256))
        self.queue = int(self._values.get("queue", 0))
        self.recording, self.stop = int(self._values.get("recording", 0)), int(self._values.get("stop", 0))
        self.files = self._values.get("files", "")


def record_type(length):
    """Returns the numpy type of a record: number, value, and padding bytes."""
    fields = [("number", "<i8"), ("value", "<i8")]
    return np.dtype(fields + ([("rest", f"V{length - 16}")] if length > 16 else []))


def ring(length):
    """Returns all records of the ring as a structured array."""
    records = np.zeros(RING, record_type(length))
    records["number"] = np.arange(RING)
    records["value"] = (records["number"] * 7) ^ 0x55
    return records


def ring_of_bytes(length):
    """Returns all records of the ring, each as `bytes`."""
    return [row.tobytes() for row in ring(length)]


def last(length):
    """Returns the record that ends a stream."""
    record = np.zeros(1, record_type(length))
    record["number"] = END
    return record


class Check:
    """Checks the sequence of received records and adds up their values. The rate is measured after the warm-up, which
    begins with the first record."""

    def __init__(self, arguments):
        self._type = record_type(arguments.length)
        self._expected = np.concatenate([np.arange(RING)] * 2)
        self.received, self.sum, self.faults, self.ended = 0, 0, 0, False
        self._warmup, self._warm = arguments.warmup, None
        self._start, self._before = None, 0

    def take(self, payloads):
        """Checks and adds the records in `payloads`, a buffer that contains only whole records."""
        records = np.frombuffer(payloads, self._type)
        if len(records) and records["number"][-1] == END:
            self.ended = True
            records = records[:-1]
        self.take_records(records)

    def take_records(self, records):
        if self._start is None:
            self._begin(self.received + len(records))
        for at in range(0, len(records), RING):
            part = records[at : at + RING]
            first = self.received % RING
            self.faults += int((part["number"] != self._expected[first : first + len(part)]).any())
            self.sum += int(part["value"].sum())
            self.received += len(part)

    def take_one(self, number, value):
        """Checks and adds one record. The caller has read its number and value from a message without a copy."""
        if self._start is None:
            self._begin(self.received + 1)
        if number == END:
            self.ended = True
            return
        self.faults += number != self.received % RING
        self.sum += value
        self.received += 1

    def _begin(self, received):
        """Begins the measurement if the warm-up is over."""
        now = time.perf_counter()
        if self._warm is None:
            self._warm = now + self._warmup
        if now >= self._warm:
            self._start, self._before = now, received

    def report(self):
        seconds = time.perf_counter() - self._start
        measured = self.received - self._before
        say(received=self.received, sum=self.sum, faults=self.faults, measured=measured, seconds=seconds)


def report_sent(sent):
    """Prints the publisher's report, with the sum that the receiver must find."""
    whole, rest = divmod(sent, RING)
    values = (np.arange(RING) * 7) ^ 0x55
    say(sent=sent, sum=whole * int(values.sum()) + int(values[:rest].sum()))


def report_times(times):
    """Prints percentiles of round trips, in nanoseconds."""
    times = np.sort(np.asarray(times))
    share = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    say(count=len(times), **{name: int(times[int((len(times) - 1) * at)]) for name, at in share.items()})


def say(**values):
    print(json.dumps(values), flush=True)


def ready():
    print("ready", flush=True)


def run(roles):
    """Performs the role that the command line names."""
    arguments = Arguments(sys.argv)
    roles[arguments.role](arguments)

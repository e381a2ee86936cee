"""`python -m bench.soak [--seconds N]`: UDP at full rate with 1 % loss for a long time.

The publisher and the subscriber each have their own driver of this project. Both drivers drop 1 % of the received
datagrams. The subscriber checks every message. At intervals the soak prints the resources of each process. The soak
fails if a message is missing, if a resource grows after the first tenth of the time, if a driver has errors, or if
resources remain after both clients have ended. The injected loss is not an error.
"""

import argparse
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import environments as env
from bench.hosts import HERE
from bench.measure import SPARE_TIME_S, expect_ready, running_driver, started, words_of
from bench.udp import unicast
from bench.udp_lines import CLIENTS, LOSS
from interop.control import ControlClient
from interop.waiting import eventually

DEFAULT_SECONDS = 1800
_SAMPLES = 60
_SHORTEST_INTERVAL_S = 2
# Allowed growth of memory in MiB, because the allocator itself grows. A leak of one byte per datagram is far more.
_RESIDENT_SLACK_MIB = 4
_RELEASE_TIMEOUT_S = 30
_NAKS_SENT, _RETRANSMITS, _ERRORS = 5, 11, 15
_LOSES = {**LOSS, "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS": "rate=0.01|recv-msg-mask=0xFFFF"}


@dataclass
class Holding:
    """Resources that a process has at one time."""

    resident_mib: float
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid):
        process = Path("/proc") / str(pid)
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        # Only private memory counts: files in shared memory belong to the streams.
        resident = int(status["RssAnon"].split()[0]) / 1024
        return cls(resident, len(list((process / "fd").iterdir())), int(status["Threads"]))

    def grown_from(self, earlier):
        """Yields a text for each resource that has grown by more than the allowed amount since `earlier`."""
        if self.resident_mib > earlier.resident_mib + _RESIDENT_SLACK_MIB:
            yield f"memory from {earlier.resident_mib:.0f} to {self.resident_mib:.0f} MiB"
        if self.descriptors > earlier.descriptors:
            yield f"descriptors from {earlier.descriptors} to {self.descriptors}"
        if self.threads > earlier.threads:
            yield f"threads from {earlier.threads} to {self.threads}"

    def __str__(self):
        return f"{self.resident_mib:6.1f} MiB {self.descriptors:3} fds"


class End:
    """One side of the stream: a driver and its client."""

    def __init__(self, name, directory, driver):
        self.name, self.directory, self.processes = name, Path(directory), {f"{name} driver": driver.pid}
        self.driver = driver
        self._control = ControlClient(directory)
        self._at_start = self._resources()

    def counter(self, id):
        return self._counters()[id].value

    def counter_count(self):
        return len(self._counters())

    def errors(self):
        return [text for _, text in self._control.error_log()]

    def await_release(self):
        """Waits until the driver has the same counters and files as before the stream."""
        try:
            eventually(lambda: self._resources() == self._at_start, timeout_s=_RELEASE_TIMEOUT_S)
        except AssertionError:
            raise SoakError(f"left at the {self.name}: {self._resources() - self._at_start}") from None

    def _counters(self):
        return {counter.id: counter for counter in self._control.counters()}

    def _resources(self):
        labels = {counter.label for counter in self._control.counters()}
        logs = {str(path) for path in self.directory.glob("*/*.logbuffer")}
        return labels | logs


class SoakError(Exception):
    """Reason why the soak fails, such as a leaked resource or a lost message."""


def soak(seconds):
    """Runs one stream for `seconds`, checks messages and resources, and prints a summary."""
    with ExitStack() as stack:
        ends = [End(name, *stack.enter_context(running_driver("ours", _LOSES))) for name in ("publisher", "subscriber")]
        sending, receiving = ends
        to, (at,) = unicast(HERE)
        words = words_of({**CLIENTS, "length": 1024, "seconds": seconds})
        command = (env.native(),)
        receiver = stack.enter_context(started(command, receiving.directory, ["sub", f"channel={at}", *words]))
        expect_ready(receiver)
        sender = stack.enter_context(started(command, sending.directory, ["pub", f"channel={to}", *words]))
        expect_ready(sender)
        sending.processes["publisher"], receiving.processes["subscriber"] = sender.pid, receiver.pid
        _watch(ends, seconds)
        sent = json.loads(sender.read(SPARE_TIME_S))
        got = json.loads(receiver.read(SPARE_TIME_S))
        if got["faults"] or (got["received"], got["sum"]) != (sent["sent"], sent["sum"]):
            raise SoakError(f"sent {sent}, received {got}")
        if not receiving.counter(_NAKS_SENT) or not sending.counter(_RETRANSMITS):
            raise SoakError("no datagram was lost: the soak did not test anything")
        for process in (sender, receiver):
            if process.wait(SPARE_TIME_S) != 0:
                raise SoakError(process.output())
        for end in ends:
            end.await_release()
            if end.driver.output() or end.errors() or end.counter(_ERRORS):
                counted = f"{end.counter(_ERRORS)} errors"
                raise SoakError(f"the {end.name}'s driver says: {end.driver.output()} {end.errors()} {counted}")
        print(
            f"{sent['sent']:,} messages of 1 KiB in {seconds} s, {receiving.counter(_NAKS_SENT):,} NAKs, "
            f"{sending.counter(_RETRANSMITS):,} retransmits; nothing is missing, nothing grew, nothing is left"
        )


def _watch(ends, seconds):
    """Prints and checks the resources of all processes until the time is over."""
    interval = max(_SHORTEST_INTERVAL_S, seconds / _SAMPLES)
    start, settled = time.monotonic(), None
    while (passed := time.monotonic() - start) < seconds - interval:
        time.sleep(interval)
        now = {name: Holding.of(pid) for end in ends for name, pid in end.processes.items()}
        counters = sum(end.counter_count() for end in ends)
        held = "  ".join(f"{name}: {holding}" for name, holding in now.items())
        print(f"{passed + interval:6.0f} s  {counters} counters  {held}", flush=True)
        if settled is None:
            if passed >= seconds / 10:
                settled = now, counters
            continue
        for name, holding in now.items():
            if grown := list(holding.grown_from(settled[0][name])):
                raise SoakError(f"{name}: {', '.join(grown)}")
        if counters > settled[1]:
            raise SoakError(f"counters from {settled[1]} to {counters}")


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, help=f"duration ({DEFAULT_SECONDS})")
    parser.add_argument("--build", type=Path, help="environment with our programs (default: builds them)")
    chosen = parser.parse_args()
    try:
        with env.using(chosen.build):
            soak(chosen.seconds)
    except SoakError as error:
        sys.exit(f"soak: {error}")


if __name__ == "__main__":
    main()

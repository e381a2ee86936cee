"""Sends a slow flood of SETUP frames, and measures the waiting times of local clients of the flooded driver.

Each SETUP announces a new session, so each one makes the driver create another image. As a program, this module floods
the C driver and then ours, and prints the waiting times of both:

    cd tests && python -m interop.floods --rate 1000 --seconds 15
"""

import argparse
import contextlib
import itertools
import shutil
import tempfile
import threading
import time
from pathlib import Path

import aeron
from differential import wire
from differential.rig import Socket
from interop.drivers import PATIENT_SETTINGS, Driver

STREAM = 1001
TERM_LENGTH = 64 * 1024
_BURST_S = 0.01


class SetupFlood:
    """Sends SETUP frames of new sessions to each endpoint, `rate` per second, until the block ends."""

    def __init__(self, addresses, rate):
        self.sent = 0
        self._addresses, self._rate = addresses, rate
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="setup-flood", daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _run(self):
        sessions, start = itertools.count(1), time.monotonic()
        with contextlib.closing(Socket()) as source:
            while not self._is_over.wait(_BURST_S):
                due = int((time.monotonic() - start) * self._rate) * len(self._addresses)
                for session in itertools.islice(sessions, due - self.sent):
                    frame = wire.setup(session, STREAM, initial=0, active=0, offset=0, term_length=TERM_LENGTH)
                    source.send(frame, self._addresses[session % len(self._addresses)])
                self.sent = max(self.sent, due)


@contextlib.contextmanager
def flooded(client, endpoints, rate):
    """Adds `endpoints` subscriptions with the client, and floods all of them until the block ends."""
    subscriptions = [client.add_subscription("aeron:udp?endpoint=127.0.0.1:0", STREAM) for _ in range(endpoints)]
    addresses = [_address(subscription) for subscription in subscriptions]
    with SetupFlood(addresses, rate) as flood:
        yield flood
    for subscription in subscriptions:
        subscription.close()


def waiting_times(client, seconds):
    """Adds and closes IPC publications one after the other. Returns the time of each in seconds."""
    end, times = time.monotonic() + seconds, []
    while time.monotonic() < end:
        start = time.monotonic()
        client.add_publication("aeron:ipc", 2001).close()
        times.append(time.monotonic() - start)
        time.sleep(0.01)  # sets the rate of the measurement and waits for nothing
    return times


def _address(subscription):
    host, port = subscription.local_socket_addresses[0].rsplit(":", 1)
    return host, int(port)


def _measure(kind, options, directory):
    settings = {**PATIENT_SETTINGS, "AERON_THREADING_MODE": options.threading}
    program = options.program if kind == "ours" else None
    driver = Driver(kind, directory / kind, directory / f"{kind}.txt", settings, program)
    try:
        with aeron.connect(driver.directory, driver_timeout_ms=60_000) as client:
            with flooded(client, options.endpoints, options.rate) as flood:
                times = sorted(waiting_times(client, options.seconds))
            median, longest = times[len(times) // 2] * 1e3, times[-1] * 1e3
            counts = f"{flood.sent} SETUPs, {len(times)} publications"
            print(f"{kind}: {counts}, median {median:.1f} ms, longest {longest:.0f} ms")
    finally:
        driver.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=1000, help="SETUPs per second to each endpoint")
    parser.add_argument("--endpoints", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--threading", default="SHARED", help="threading mode of the drivers")
    parser.add_argument("--program", help="another aeronmd than the installed one")
    parser.add_argument("kinds", nargs="*", default=["c", "ours"])
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="aeron-flood-", dir="/dev/shm"))
    try:
        for kind in options.kinds:
            _measure(kind, options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()

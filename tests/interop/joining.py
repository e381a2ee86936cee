"""Measures the time that a receiver needs to join a running multi-destination stream.

A publisher sends at a steady rate to one permanent receiver. As a program, this module adds subscriptions on other
drivers. For each sender, receiver and rate it prints the time from `add_subscription` to the first message, and to the
end of the first 1 MB without a gap:

    cd tests && python -m interop.joining --runs 8 --sender /path/to/another/aeronmd --sender ""
"""

import argparse
import contextlib
import itertools
import multiprocessing
import shutil
import struct
import tempfile
import time
from pathlib import Path

import aeron
from interop.channels import dynamic
from interop.drivers import Driver

STREAM = 1001
MESSAGE_LENGTH = 992
# Frames of this length fill a term exactly, so the position of a message is its number times `FRAME_LENGTH`.
FRAME_LENGTH = 1024
_BATCH_S = 0.001
_TOO_LONG_S = 10
_NUMBER = struct.Struct("<q")


class Gap(Exception):
    """A message is missing after the join position."""


@contextlib.contextmanager
def running_stream(directory, control, channel, rate):
    """Runs a stream of numbered messages with `rate` bytes per second in a separate process."""
    processes = multiprocessing.get_context("spawn")
    is_running = processes.Event()
    process = processes.Process(target=_publish, args=(directory, control, channel, rate, is_running), daemon=True)
    process.start()
    try:
        assert is_running.wait(60), "the stream does not run"
        yield
    finally:
        process.kill()
        process.join()


def join(client, channel, length):
    """Joins a stream and reads `length` bytes. Returns the seconds until the first and until the last message.

    A time is `None` if its message did not arrive within ten seconds, or if the driver ended the image before that
    message. Raises `Gap` if a message between the join position and the last message is missing.
    """
    start = time.monotonic()
    with client.add_subscription(channel, STREAM) as subscription:
        return _times_of_messages(subscription, start, length)


def _times_of_messages(subscription, start, length):
    first, image, expected = None, None, None
    while length > 0:
        batch = subscription.poll_batch(256)
        now = time.monotonic() - start
        if now > _TOO_LONG_S:
            return first, None
        for message in batch:
            if first is None:
                [image] = subscription.images
                first, expected = now, image.join_position // FRAME_LENGTH
            if image.is_closed:
                return first, None
            (number,) = _NUMBER.unpack_from(message)
            if number != expected:
                raise Gap(f"message {number} arrived instead of {expected}")
            expected, length = number + 1, length - len(message)
    return first, now


def _publish(directory, control, channel, rate, is_running):
    """Publishes, and also receives the stream, so that the stream never waits for joining receivers."""
    numbers, padding = itertools.count(), bytes(MESSAGE_LENGTH - _NUMBER.size)
    with aeron.connect(directory) as client:
        publication = client.add_exclusive_publication(control, STREAM)
        subscription = client.add_subscription(channel, STREAM)
        publication.wait_connected(timeout=20)
        start = time.monotonic()
        message = _NUMBER.pack(next(numbers)) + padding
        while True:
            due = int((time.monotonic() - start) * rate / MESSAGE_LENGTH)
            sent = 0
            while sent < due and publication.offer(message) > 0:
                message = _NUMBER.pack(next(numbers)) + padding
                sent += 1
            start += sent * MESSAGE_LENGTH / rate
            if subscription.poll_batch(256) and not is_running.is_set():
                is_running.set()
            time.sleep(_BATCH_S)


def _measure(options, program, kind, rate, directory):
    control, channel = dynamic(options.parameters)
    settings = {"AERON_TERM_BUFFER_LENGTH": options.term_length}
    with contextlib.ExitStack() as stack:
        sender = Driver("ours", directory / "sender", directory / "sender.txt", settings, program or None)
        stack.callback(sender.remove)
        receiver = Driver(kind, directory / kind, directory / f"{kind}.txt", settings)
        stack.callback(receiver.remove)
        stack.enter_context(running_stream(sender.directory, control, channel, rate))
        client = stack.enter_context(aeron.connect(receiver.directory))
        time.sleep(0.2)  # until the stream has settled
        return [join(client, channel, options.length) for _ in range(options.joins)]


def _report(label, times):
    firsts = sorted(first * 1e3 for first, _ in times if first is not None)
    lasts = sorted(last * 1e3 for _, last in times if last is not None)

    def shown(values):
        if not values:
            return "never"
        return f"median {values[len(values) // 2]:.0f} ms, {values[0]:.0f} to {values[-1]:.0f}"

    stalled = len(times) - len(lasts)
    print(f"{label}: {len(times)} joins, first message {shown(firsts)}; all {shown(lasts)}; stood still: {stalled}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sender", action="append", help="path of an aeronmd; empty: the installed one")
    parser.add_argument("--receiver", action="append", help="kind of the receiving driver: c, ours or java")
    parser.add_argument("--rate", action="append", type=float, help="MB each second")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--joins", type=int, default=2, help="joins of each run, one after the other")
    parser.add_argument("--length", type=int, default=1_000_000, help="bytes that each join reads")
    parser.add_argument("--term-length", default="1m")
    parser.add_argument("--parameters", default="", help="parameters of the publication's channel, such as `|fc=min`")
    options = parser.parse_args()
    cases = list(
        itertools.product(options.rate or [1, 5, 20], options.receiver or ["c", "ours"], options.sender or [""])
    )
    times = {case: [] for case in cases}
    for run in range(options.runs):
        for case in cases[:: 1 if run % 2 else -1]:
            rate, kind, program = case
            directory = Path(tempfile.mkdtemp(prefix="aeron-joining-", dir="/dev/shm"))
            try:
                times[case] += _measure(options, program, kind, rate * 1e6, directory)
            finally:
                shutil.rmtree(directory, ignore_errors=True)
    for case, measured in times.items():
        rate, kind, program = case
        _report(f"{rate:g} MB/s to {kind} from {program or 'the installed driver'}", measured)


if __name__ == "__main__":
    main()

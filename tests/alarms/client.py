"""A client of a recorded failure: `client.py DIRECTORY NAME ROLE ARGUMENTS...` works until it is killed."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator

import aeron
from aeron.types import SourceLocation

MESSAGE = bytes(992)
"""Message with a frame of 1024 bytes."""
_TURNS_PER_S = 20


def turns() -> Iterator[int]:
    """Yields 20 times a second."""
    begin = time.monotonic()
    number = 0
    while True:
        yield number
        number += 1
        time.sleep(max(0.0, begin + number / _TURNS_PER_S - time.monotonic()))


def publish(client: aeron.Aeron, channel: str, stream_id: str, messages_per_turn: str) -> None:
    """Publishes at a steady rate. Does not publish later what was back-pressured."""
    publication = client.add_publication(channel, int(stream_id))
    for _ in turns():
        for _ in range(int(messages_per_turn)):
            publication.offer(MESSAGE)


def read(client: aeron.Aeron, channel: str, stream_id: str, messages_per_turn: str) -> None:
    """Reads at most this many messages in each turn."""
    subscription = client.add_subscription(channel, int(stream_id))
    limit = int(messages_per_turn)
    for _ in turns():
        if limit:
            subscription.poll_batch(limit)


def record(
    client: aeron.Aeron, channel: str, stream_id: str, stop_after_s: str, source: SourceLocation = "LOCAL"
) -> None:
    """Starts a recording, and stops it after some seconds, if there are any."""
    with aeron.connect_archive(client) as archive:
        recording = archive.start_recording(channel, int(stream_id), source=source)
        if float(stop_after_s):
            time.sleep(float(stop_after_s))
            archive.stop_recording(recording)
        for _ in turns():
            pass


def claim(client: aeron.Aeron, channel: str, stream_id: str, after_s: str) -> None:
    """Claims a frame after some seconds, and neither commits nor aborts it."""
    publication = client.add_publication(channel, int(stream_id))
    time.sleep(float(after_s))
    claims = []
    for _ in turns():
        if not claims:
            claims = [claim for claim in [publication.try_claim(100)] if isinstance(claim, aeron.BufferClaim)]


def counters(client: aeron.Aeron, count: str, after_s: str) -> None:
    """Adds counters after some seconds."""
    time.sleep(float(after_s))
    added = [client.add_counter(1001, "orders") for _ in range(int(count))]
    for _ in turns():
        assert added


def unknown(client: aeron.Aeron, after_s: str) -> None:
    """Publishes to a host that does not exist, once a second."""
    time.sleep(float(after_s))
    for number in turns():
        if number % _TURNS_PER_S == 0:
            with contextlib.suppress(aeron.AeronError):
                client.add_publication("aeron:udp?endpoint=missing.invalid:20121", 1001)


ROLES = {each.__name__: each for each in (publish, read, record, claim, counters, unknown)}

if __name__ == "__main__":
    # SIGTERM ends the program in order: the client closes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    directory, name, role, *arguments = sys.argv[1:]
    with aeron.connect(directory, client_name=name) as client:
        ROLES[role](client, *arguments)

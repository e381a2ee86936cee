"""Publishes a recorded stream, or reads it at its live edge: by a plain `subscription`, by a `persistent` subscription,
or by a `follow`er. Both readers from the archive begin with the live stream."""

import os
import sys
import time

from ours_peer import STREAM, send_rows
from records import Check, ready, record_type, report_sent, run, say

import aeron

CONNECT_TIMEOUT_S = 30


def publish(arguments):
    """Prints the recording's id and waits for a line of input. Then sends, prints the report, and waits for the end of
    the input."""
    with aeron.connect(arguments.directory) as client, aeron.connect_archive(client) as archive:
        publication = archive.add_recorded_exclusive_publication(arguments.channel, STREAM)
        recording = archive.wait_recorded(publication, 0, timeout=CONNECT_TIMEOUT_S)
        say(recording=recording.recording_id)
        sys.stdin.readline()
        report_sent(send_rows(publication, arguments, time.perf_counter() + arguments.seconds))
        sys.stdin.read()


def subscribe(arguments):
    with aeron.connect(arguments.directory) as client, aeron.connect_archive(client) as archive:
        reader = READERS[arguments.how](client, archive, arguments)
        poll_batch, check, dtype = reader.poll_batch, Check(arguments), record_type(arguments.length)
        while not is_live(reader):
            assert not poll_batch(), "a message before the publisher sends"
            time.sleep(0.001)
        ready()
        while not check.ended:
            if batch := poll_batch():
                check.take(batch.as_records(dtype))
            else:
                os.sched_yield()
        assert is_live(reader), "the reader has left the live stream"
        check.report()


def is_live(reader):
    return reader.is_connected if isinstance(reader, aeron.Subscription) else reader.is_live


READERS = {
    "subscription": lambda client, _, arguments: client.add_subscription(arguments.channel, STREAM),
    "persistent": lambda _, archive, arguments: archive.persistent_subscription(
        recording_id=arguments.recording,
        live_channel=arguments.channel,
        live_stream_id=STREAM,
        start_position=aeron.FROM_LIVE,
    ),
    "follow": lambda _, archive, arguments: archive.follow(arguments.recording, position="latest"),
}

run({"pub": publish, "sub": subscribe})

"""A client of a driver and its archive, in a process whose clock a test sets.

Each line of standard input makes the client publish a message of a recorded stream, and read it. The response is a line
of JSON. The line `old` also sets a policy that would delete a stopped recording, whose data are older than a second.
"""

import json
import sys
import time

import aeron

_CHANNEL = "aeron:ipc?term-length=64k"
_SEVEN_DAYS_MS = 7 * 24 * 3600 * 1000
_TIMEOUT_S = 10


def main():
    directory, control, control_stream = sys.argv[1:]
    with (
        aeron.connect(directory) as client,
        aeron.connect_archive(client, control_channel=control, control_stream_id=int(control_stream)) as archive,
    ):
        stopped = _stopped_recording(archive)
        publication = archive.add_recorded_exclusive_publication(_CHANNEL, 1)
        subscription = client.add_subscription(_CHANNEL, 1)
        subscription.wait_connected(timeout=_TIMEOUT_S)
        archive.wait_recorded(publication, publication.position, timeout=_TIMEOUT_S)
        archive.set_retention(recording_id=stopped, max_age_ms=_SEVEN_DAYS_MS)
        for request in sys.stdin:
            position = publication.publish(b"x" * 1000, timeout=_TIMEOUT_S)
            archive.wait_recorded(publication, position, timeout=_TIMEOUT_S)
            received = subscription.poll_batch().to_list()
            while not received:
                received = subscription.poll_batch().to_list()
            if request.strip() == "old":
                archive.set_retention(recording_id=stopped, max_age_ms=1000)
            answer = {
                "time": time.time(),
                "received": len(received),
                "is_listed": archive.list_recording(stopped) is not None,
                "held_by": [outcome.held_by for outcome in archive.apply_retention(dry_run=True)],
                "is_closed": client.is_closed,
            }
            print(json.dumps(answer), flush=True)


def _stopped_recording(archive):
    """Returns the id of a recording with one message."""
    with archive.add_recorded_exclusive_publication(_CHANNEL, 2) as publication:
        position = publication.publish(b"x" * 1000, timeout=_TIMEOUT_S)
        return archive.wait_recorded(publication, position, timeout=_TIMEOUT_S).recording_id


if __name__ == "__main__":
    main()

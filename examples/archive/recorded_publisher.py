"""Publishes messages that an archive records.

The archive is on the same driver, unless --control names an archive on another host. That archive receives the stream
over the network, so --channel must name an address of the archive's host.
"""

from __future__ import annotations

import argparse
import time

import aeron


def main() -> None:
    """Publishes the messages and waits until the archive has recorded the last one."""
    arguments = _arguments()
    remote = {"control_channel": arguments.control, "response_channel": arguments.response} if arguments.control else {}
    with aeron.connect(arguments.dir) as client, aeron.connect_archive(client, **remote) as archive:
        source: aeron.SourceLocation = "REMOTE" if arguments.control else "LOCAL"
        recording_subscription = archive.start_recording(arguments.channel, arguments.stream, source=source)
        with client.add_publication(arguments.channel, arguments.stream) as publication:
            publication.wait_connected(timeout=120)
            position = 0
            for number in range(arguments.messages):
                position = publication.publish(f"Hello World! {number}".encode(), timeout=120)
                print(f"published {number} up to position {position}", flush=True)
                time.sleep(arguments.interval)
            recording_id = archive.find_last_matching_recording(
                arguments.channel, arguments.stream, publication.session_id
            )
            assert recording_id is not None
            _wait_recorded(archive, recording_id, position)
            print(f"recording {recording_id} is at position {position}", flush=True)
        archive.stop_recording(recording_subscription)


def _wait_recorded(archive: aeron.AeronArchive, recording_id: int, position: int) -> None:
    deadline = time.monotonic() + 10
    while archive.get_max_recorded_position(recording_id) < position:
        if time.monotonic() > deadline:
            raise TimeoutError(f"recording {recording_id} has not reached position {position} after 10 s")
        time.sleep(0.01)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True, help="directory of the driver")
    parser.add_argument("--channel", default="aeron:ipc", help="channel of the messages")
    parser.add_argument("--stream", type=int, default=1001, help="stream of the messages")
    parser.add_argument("--control", help="control channel of an archive on another host")
    parser.add_argument("--response", help="channel of the archive's responses: an address of this host with port 0")
    parser.add_argument("-m", "--messages", type=int, default=10, help="number of messages")
    parser.add_argument("--interval", type=float, default=0.0, help="seconds between two messages")
    return parser.parse_args()


if __name__ == "__main__":
    main()

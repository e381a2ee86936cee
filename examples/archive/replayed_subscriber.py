"""Prints the messages of a recording, from the first message on.

The archive is on the same driver, unless --control names an archive on another host. That archive sends the replay over
the network, so --channel must name an address of this host.
"""

from __future__ import annotations

import argparse

import aeron


def main() -> None:
    """Replays the recording that --recording names, or the newest one of the stream, up to its recorded position."""
    arguments = _arguments()
    remote = {"control_channel": arguments.control, "response_channel": arguments.response} if arguments.control else {}
    with aeron.connect(arguments.dir) as client, aeron.connect_archive(client, **remote) as archive:
        recordings = archive.list_recordings(channel="aeron:", stream_id=arguments.stream)
        if not recordings:
            raise SystemExit(f"no recording of stream {arguments.stream}")
        recording_id = recordings[-1].recording_id if arguments.recording is None else arguments.recording
        print(f"replaying recording {recording_id}", flush=True)
        with archive.replay(
            recording_id, arguments.channel, arguments.replay_stream, position=0, length=aeron.REPLAY_ALL_AND_STOP
        ) as replay:
            for batch in replay.batches():
                for message, position in zip(batch.to_list(), batch.positions, strict=True):
                    print(f"{message.decode()} up to position {position}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True, help="directory of the driver")
    parser.add_argument("--channel", default="aeron:ipc", help="channel of the replay")
    parser.add_argument("--stream", type=int, default=1001, help="stream that was recorded")
    parser.add_argument("--replay-stream", type=int, default=1002, help="stream of the replay")
    parser.add_argument("--recording", type=int, help="recording id (default: the newest recording)")
    parser.add_argument("--control", help="control channel of an archive on another host")
    parser.add_argument("--response", help="channel of the archive's responses: an address of this host with port 0")
    return parser.parse_args()


if __name__ == "__main__":
    main()

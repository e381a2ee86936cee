"""Reads a stream from its first recorded message: first a replay, and then the live stream, without a gap."""

from __future__ import annotations

import tempfile

import aeron

STREAM_ID = 1001


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        aeron.MediaDriver() as driver,
        aeron.Archive(directory, driver=driver),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_publication("aeron:ipc", STREAM_ID)
        position = publication.publish(b"published before", timeout=120)
        recording = archive.wait_recorded(publication, position, timeout=120)

        with archive.persistent_subscription(
            recording_id=recording.recording_id,
            live_channel="aeron:ipc",
            live_stream_id=STREAM_ID,
            start_position=aeron.FROM_START,  # or the position of the last message that the program has processed
            on_live_joined=lambda: publication.publish(b"published after", timeout=120),
            on_error=print,
        ) as subscription:
            for batch in subscription.batches(timeout=120):
                print(f"{subscription.state}: {batch.to_list()} up to position {batch.positions[-1]}")
                if b"published after" in batch.to_list():
                    break


if __name__ == "__main__":
    main()

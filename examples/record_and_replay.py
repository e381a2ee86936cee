"""Records a stream in an archive, replays it from the middle, and follows it while it is still recorded."""

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
        positions = [publication.publish(b"trade %d" % number, timeout=120) for number in range(10)]
        recording = archive.wait_recorded(publication, positions[-1], timeout=120)
        print(f"recording {recording.recording_id} of stream {recording.stream_id} is at position {positions[-1]}")

        # A replay must begin at the start of a message, which is the position after the previous message.
        with archive.replay(recording.recording_id, position=positions[6], length=aeron.REPLAY_ALL_AND_STOP) as replay:
            print("replayed:", [message for batch in replay.batches() for message in batch.to_list()])

        # Without a length, a replay sends the recorded messages and then new ones as they are recorded. The batches
        # end when the recording stops.
        with archive.replay(recording.recording_id, position=positions[8]) as following:
            publication.publish(b"trade 10", timeout=120)
            followed: list[bytes] = []
            for batch in following.batches(timeout=120):
                followed += batch.to_list()
                if b"trade 10" in followed:
                    archive.stop_recording(publication)
            print("followed:", followed)

        for each in archive.list_recordings(stream_id=STREAM_ID):
            print(f"recording {each.recording_id}: from {each.start_position} to {each.stop_position}")


if __name__ == "__main__":
    main()

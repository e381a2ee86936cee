"""Publishes messages that an archive records, while the archive ends and starts again: no message is lost."""

from __future__ import annotations

import tempfile

import aeron

STREAM_ID = 1001


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        aeron.MediaDriver() as driver,
        # The alias names the stream. If it was recorded before, the publisher continues at the end of the recording.
        aeron.RecordedPublisher(
            "aeron:ipc", STREAM_ID, driver=driver, alias="trades", on_reconnect=on_reconnect
        ) as publisher,
    ):
        with aeron.Archive(directory, driver=driver):
            for number in range(10):
                publisher.publish(b"trade %d" % number, timeout=120)
            print("all recorded:", publisher.flush(timeout=120))

        # Without an archive, the publisher keeps the messages, up to `buffer_length` bytes.
        for number in range(10, 20):
            publisher.publish(b"trade %d" % number)
        print("all recorded:", publisher.flush(timeout=0.1), "- kept:", publisher.unrecorded_messages)

        with aeron.Archive(directory, driver=driver):
            publisher.publish(b"trade 20", timeout=120)
            print("all recorded:", publisher.flush(timeout=120))
            print_recording(driver, publisher)


def on_reconnect(position: int) -> None:
    print(f"the recording goes on at position {position}")


def print_recording(driver: aeron.MediaDriver, publisher: aeron.RecordedPublisher) -> None:
    assert publisher.recording_id is not None
    assert publisher.position is not None
    with (
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
        archive.replay(publisher.recording_id, position=0, length=publisher.position) as replay,
    ):
        messages = [message for batch in replay.batches() for message in batch.to_list()]
        print(f"{len(messages)} messages: {messages[0]!r} to {messages[-1]!r}")


if __name__ == "__main__":
    main()

"""Sends one message over shared memory, and receives it."""

from __future__ import annotations

import aeron


def main() -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        subscription = client.add_subscription("aeron:ipc", stream_id=1001)
        publication = client.add_publication("aeron:ipc", stream_id=1001)

        position = publication.publish(b"hello", timeout=120)  # waits for a subscriber and for room in the log
        print(f"published up to position {position}")

        def on_message(payload: bytes, header: aeron.Header) -> None:
            print(f"received {payload!r} up to position {header.position} of stream {header.stream_id}")

        idle = aeron.BackoffIdleStrategy()
        while not subscription.poll(on_message):
            idle()


if __name__ == "__main__":
    main()

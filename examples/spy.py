"""A spy reads a publication of its own driver directly from the log, without network traffic."""

from __future__ import annotations

import aeron

STREAM_ID = 1001


def main() -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        receiver = client.add_subscription("aeron:udp?endpoint=localhost:0", STREAM_ID)
        endpoint = receiver.resolved_endpoint
        publication = client.add_publication(f"aeron:udp?endpoint={endpoint}|ssc=true", STREAM_ID)
        # The channel of a spy is the channel of the publication with the prefix `aeron-spy:`.
        spy = client.add_subscription(f"aeron-spy:aeron:udp?endpoint={endpoint}", STREAM_ID)
        receiver.wait_connected(timeout=120)
        spy.wait_connected(timeout=120)

        publication.publish(b"to the receiver, and to the spy", timeout=120)
        for name, subscription in (("receiver", receiver), ("spy", spy)):
            batch = next(subscription.batches(timeout=120))
            print(f"{name}: {batch.to_list()}")

        # A spy alone counts as a subscriber if the channel has `ssc=true` (spies simulate connection).
        receiver.close()
        publication.publish(b"to the spy only", timeout=120)
        print(f"spy: {next(spy.batches(timeout=120)).to_list()}")


if __name__ == "__main__":
    main()

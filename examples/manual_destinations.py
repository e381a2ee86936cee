"""Manual destinations: a publication sends to several addresses, and a subscription receives at several addresses."""

from __future__ import annotations

import aeron

STREAM_ID = 1001
ANY_PORT = "aeron:udp?endpoint=localhost:0"


def read(subscription: aeron.Subscription, count: int) -> list[bytes]:
    """Returns the next `count` messages."""
    messages: list[bytes] = []
    for batch in subscription.batches(timeout=120):
        messages += batch.to_list()
        if len(messages) >= count:
            break
    return messages


def send_to_many(client: aeron.Aeron) -> None:
    """Sends one message to two receivers, removes one of them, and sends the next message to the other."""
    first = client.add_subscription(ANY_PORT, STREAM_ID)
    second = client.add_subscription(ANY_PORT, STREAM_ID)
    publication = client.add_publication("aeron:udp?control-mode=manual|fc=min", STREAM_ID)
    publication.add_destination(f"aeron:udp?endpoint={first.resolved_endpoint}")
    leaving = publication.add_destination(f"aeron:udp?endpoint={second.resolved_endpoint}")
    first.wait_connected(timeout=120)
    second.wait_connected(timeout=120)

    publication.publish(b"to both", timeout=120)
    print(f"first: {read(first, 1)}, second: {read(second, 1)}")
    publication.remove_destination(leaving)
    second.close()
    publication.publish(b"to the first only", timeout=120)
    print(f"first: {read(first, 1)}")


def receive_from_many(client: aeron.Aeron) -> None:
    """Receives two streams in one subscription, as two images."""
    subscription = client.add_subscription("aeron:udp?control-mode=manual", STREAM_ID + 1)
    for name in (b"A", b"B"):
        subscription.add_destination(ANY_PORT)
        address = subscription.local_socket_addresses[-1]
        publication = client.add_exclusive_publication(f"aeron:udp?endpoint={address}", STREAM_ID + 1)
        publication.publish(b"from " + name, timeout=120)
    print(f"{sorted(read(subscription, 2))} from {subscription.image_count} publishers")


def main() -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        send_to_many(client)
        receive_from_many(client)


if __name__ == "__main__":
    main()

"""One publication for receivers that join and leave: multi-destination-cast with dynamic membership.

The receivers name the publisher's control address. The publisher learns their addresses from their status messages.

python examples/fan_out.py [PORT]
"""

from __future__ import annotations

import sys

import aeron

STREAM_ID = 1001


def read(subscription: aeron.Subscription, count: int) -> list[bytes]:
    """Returns the next `count` messages."""
    messages: list[bytes] = []
    for batch in subscription.batches(timeout=120):
        messages += batch.to_list()
        if len(messages) >= count:
            break
    return messages


def main(port: int = 40124) -> None:
    control = f"localhost:{port}"
    # `min_flow_control` makes the publication wait for the slowest receiver. By default, the fastest receiver sets the
    # pace.
    sending = aeron.ChannelUriBuilder("udp", control=control, control_mode="dynamic").min_flow_control()
    receiving = aeron.ChannelUriBuilder("udp", control=control, control_mode="dynamic", endpoint="localhost:0")

    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        publication = client.add_publication(sending, STREAM_ID)
        # Each receiver has its own driver, as if it ran on another host.
        with aeron.MediaDriver() as first_driver, aeron.connect(first_driver) as first_client:
            first = first_client.add_subscription(receiving, STREAM_ID)
            first.wait_connected(timeout=120)
            publication.publish(b"to the first", timeout=120)
            with aeron.MediaDriver() as second_driver, aeron.connect(second_driver) as second_client:
                second = second_client.add_subscription(receiving, STREAM_ID)
                second.wait_connected(timeout=120)
                publication.publish(b"to both", timeout=120)
                print(f"the first receiver:  {read(first, 2)}")
                print(f"the second receiver: {read(second, 1)}, it joined at {second.images[0].join_position}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

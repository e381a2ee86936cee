"""Quotes over UDP multicast: one publisher, and two subscribers on different drivers. Each receives every quote.

python examples/multicast_records.py [PORT]
"""

from __future__ import annotations

import sys

import numpy as np

import aeron

QUOTE = np.dtype([("bid", "<f8"), ("ask", "<f8")])
STREAM_ID = 1001
COUNT = 1_000


def main(port: int = 40123) -> None:
    # The last number of the multicast address must be odd. Receivers send status messages to the next address,
    # 224.10.9.8.
    channel = aeron.ChannelUriBuilder("udp", endpoint=f"224.10.9.7:{port}", interface="localhost")
    quotes = np.zeros(COUNT, QUOTE)
    quotes["bid"] = 100 + np.arange(COUNT) * 0.01
    quotes["ask"] = quotes["bid"] + 0.02

    with (
        aeron.MediaDriver() as driver,
        aeron.MediaDriver() as other_driver,
        aeron.connect(driver) as client,
        aeron.connect(other_driver) as other_client,
    ):
        subscriptions = [each.add_subscription(channel, STREAM_ID) for each in (client, other_client)]
        publication = client.add_exclusive_publication(channel, STREAM_ID)
        # A receiver that joins later does not get earlier messages, so the program waits for both.
        for subscription in subscriptions:
            subscription.wait_connected(timeout=120)
        publication.wait_connected(timeout=120)

        sent = 0
        while sent < COUNT:
            sent += publication.offer_batch(quotes, start=sent)
        for number, subscription in enumerate(subscriptions):
            received = 0
            for batch in subscription.batches(timeout=120):
                received += len(batch)
                if received == COUNT:
                    last = batch.as_records(QUOTE)[-1]
                    print(f"subscriber {number}: {received:,} quotes, the last: {last['bid']:.2f} / {last['ask']:.2f}")
                    break


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

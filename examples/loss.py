"""Loss: a driver drops 5 % of the received data, and the publisher of a reliable stream sends the lost data again."""

from __future__ import annotations

import aeron

STREAM_ID = 1001
COUNT = 2_000


def transfer(client: aeron.Aeron, reliable: bool) -> list[int]:
    """Sends numbers, and returns the numbers that arrive."""
    channel = aeron.ChannelUriBuilder("udp", endpoint="localhost:0", reliable=reliable)
    subscription = client.add_subscription(channel, STREAM_ID)
    publication = client.add_exclusive_publication(f"aeron:udp?endpoint={subscription.resolved_endpoint}", STREAM_ID)
    publication.wait_connected(timeout=120)
    numbers: list[int] = []
    sent = 0
    while sent < COUNT:
        sent += bool(publication.offer(sent.to_bytes(4, "little") + bytes(1_000)))
        numbers += [int.from_bytes(message[:4], "little") for message in subscription.poll_batch()]
    # A reliable stream becomes complete. An unreliable stream counts as finished if nothing arrives for half a second.
    for batch in subscription.batches(timeout=120 if reliable else 0.5):
        numbers += [int.from_bytes(message[:4], "little") for message in batch]
        if len(numbers) == COUNT:
            break
    publication.close()
    subscription.close()
    return numbers


def main() -> None:
    loss = aeron.RandomLoss(rate=0.05, seed=7)
    with aeron.MediaDriver(incoming_loss=loss) as driver, aeron.connect(driver) as client:
        numbers = transfer(client, reliable=True)
        assert numbers == list(range(COUNT))
        print(f"reliable: all {len(numbers):,} messages arrived, in order")

        numbers = transfer(client, reliable=False)
        assert numbers == sorted(numbers)
        assert len(numbers) < COUNT
        print("not reliable: some messages are missing, the others are in order")

        for lost in aeron.read_loss_report(driver.dir):
            print(f"stream {lost.stream_id} on {lost.channel}: lost {lost.total_bytes_lost:,} bytes")


if __name__ == "__main__":
    main()

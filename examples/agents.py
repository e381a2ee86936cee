"""Agents: units of work that a thread calls in a loop, and counters that any tool can read."""

from __future__ import annotations

import aeron

COUNT = 1_000
SENT, RECEIVED, ERRORS = 1001, 1002, 1003
"""Type ids of the counters. Ids below 1000 are Aeron's own."""


class Producer(aeron.Agent):
    """Publishes numbers, one in each duty cycle."""

    def __init__(self, client: aeron.Aeron) -> None:
        self._publication = client.add_exclusive_publication("aeron:ipc", stream_id=1001)
        self._sent = client.add_counter(SENT, "example: numbers sent")

    def do_work(self) -> int:
        """Publishes the next number. Returns the amount of work: after 0 the idle strategy waits."""
        if self._sent.value == COUNT or not self._publication.offer(self._sent.value.to_bytes(8, "little")):
            return 0
        self._sent.increment()
        return 1


class Consumer(aeron.Agent):
    """Counts the numbers that arrive."""

    def __init__(self, client: aeron.Aeron, done: aeron.ShutdownSignalBarrier) -> None:
        self._subscription = client.add_subscription("aeron:ipc", stream_id=1001)
        self._received = client.add_counter(RECEIVED, "example: numbers received")
        self._done = done

    def do_work(self) -> int:
        """Receives up to 100 numbers. Returns the number of messages that it has received."""
        batch = self._subscription.poll_batch(limit=100)
        self._received.get_and_add(len(batch))
        if self._received.value == COUNT:
            self._done.signal()
        return len(batch)


def main() -> None:
    with (
        aeron.MediaDriver() as driver,
        aeron.connect(driver) as client,
        aeron.ShutdownSignalBarrier() as barrier,  # SIGINT and SIGTERM end the wait below
    ):
        errors = client.add_counter(ERRORS, "example: errors")
        # A counter is freed when the last reference to it is dropped. These variables keep the agents alive, and
        # the agents keep their counters alive.
        consumer, producer = Consumer(client, barrier), Producer(client)
        with (
            aeron.AgentRunner(consumer, aeron.BackoffIdleStrategy(), error_counter=errors),
            aeron.AgentRunner(producer, aeron.BackoffIdleStrategy(), error_counter=errors),
        ):
            barrier.wait(timeout=120)
        # `aeron stat --dir DIRECTORY` prints the same counters from another process.
        for counter in client.counters_reader:
            if counter.type_id in (SENT, RECEIVED, ERRORS):
                print(f"{counter.label} = {counter.value}")


if __name__ == "__main__":
    main()

"""Runs a driver in this process, and clients in other processes. The clients attach to the driver's directory."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

import aeron

STREAM_ID = 1001
COUNT = 10_000


def publish(directory: str, name: int) -> None:
    """Publishes numbers. Runs in a separate process."""
    with (
        aeron.connect(directory, client_name=f"publisher {name}") as client,
        client.add_exclusive_publication("aeron:ipc", STREAM_ID) as publication,
    ):
        publication.wait_connected(timeout=120)
        for number in range(COUNT):
            publication.publish(number.to_bytes(8, "little"), timeout=120)
        # Over IPC, `flush` waits until the subscriber has consumed all messages.
        assert publication.flush(timeout=120)


def count(directory: str, expected: int, answer: Connection) -> None:
    """Counts the messages of each publisher. Runs in a separate process."""
    counts: dict[int, int] = {}
    with aeron.connect(directory, client_name="counter") as client:
        subscription = client.add_subscription("aeron:ipc", STREAM_ID)
        for batch in subscription.batches(timeout=120):
            for session_id in batch.session_ids:
                counts[session_id] = counts.get(session_id, 0) + 1
            if sum(counts.values()) == expected:
                break
    answer.send(sorted(counts.values()))


def main() -> None:
    # Processes are spawned, because objects of a client do not work in a forked process.
    context = multiprocessing.get_context("spawn")
    with aeron.MediaDriver() as driver:
        receiving, sending = context.Pipe(duplex=False)
        processes = [context.Process(target=count, args=(driver.dir, 2 * COUNT, sending))]
        processes += [context.Process(target=publish, args=(driver.dir, name)) for name in range(2)]
        for process in processes:
            process.start()
        print(f"messages from each publisher: {receiving.recv()}")
        for process in processes:
            process.join()
            assert process.exitcode == 0


if __name__ == "__main__":
    main()

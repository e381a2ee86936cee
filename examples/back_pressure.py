"""Back pressure: the results of offers to a slow subscriber, and three reactions of the publisher."""

from __future__ import annotations

import threading
import time

import aeron

MESSAGE = bytes(1_000)


def main() -> None:
    with aeron.MediaDriver(ipc_term_buffer_length=64 * 1024) as driver, aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", stream_id=1001)
        print(f"no subscriber: {publication.offer(MESSAGE)}")

        subscription = client.add_subscription("aeron:ipc", stream_id=1001)
        publication.wait_connected(timeout=120)
        sent = 0
        while publication.offer(MESSAGE):  # a position is true; if nothing was sent, the result is false
            sent += 1
        result = publication.offer(MESSAGE)
        assert result is aeron.BACK_PRESSURED
        print(f"a subscriber that does not poll: {result} after {sent} messages")

        # First reaction: wait for a limited time.
        try:
            publication.publish(MESSAGE, timeout=0.1)
        except aeron.BackPressureTimeoutError as error:
            print(f"{type(error).__name__}: {error}")

        # Second reaction: drop messages that are soon out of date, such as prices.
        dropped = sum(not publication.offer(MESSAGE) for _ in range(1_000))
        print(f"{dropped} messages dropped")

        # Third reaction: retry, with an idle strategy between the attempts, until the subscriber has caught up.
        polled = 0

        def poll() -> None:
            nonlocal polled
            time.sleep(0.1)
            for batch in subscription.batches(timeout=120):
                polled += len(batch)
                if polled == sent + 1_000:
                    break

        thread = threading.Thread(target=poll)
        thread.start()
        idle, attempts = aeron.BackoffIdleStrategy(), 0
        for _ in range(1_000):
            while not publication.offer(MESSAGE):
                attempts += 1
                idle()
            idle.reset()
        thread.join()
        assert attempts > 0
        print(f"{polled} messages received, none lost")


if __name__ == "__main__":
    main()

"""Writes messages directly into the log of the publication, and reads them from the log without a copy."""

from __future__ import annotations

import struct
import time

import aeron

ORDER = struct.Struct("<qdd")  # time in nanoseconds, price, size
COUNT = 1_000


def main() -> None:
    total = received = 0

    def on_order(view: memoryview, header: aeron.Header) -> None:
        nonlocal total, received
        _time_ns, price, size = ORDER.unpack_from(view)
        total += price * size
        received += 1

    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        subscription = client.add_subscription("aeron:ipc", stream_id=1001)
        publication = client.add_exclusive_publication("aeron:ipc", stream_id=1001)
        publication.wait_connected(timeout=120)

        for number in range(COUNT):
            # With `direct=True` the view is memory of the log itself. By default the view is private memory, which the
            # commit copies into the log.
            with publication.claim(ORDER.size, timeout=120, direct=True) as view:
                ORDER.pack_into(view, 0, time.time_ns(), 100.0, float(number))
            # The end of the block sends the message. An exception in the block aborts the message.

        try:
            with publication.claim(ORDER.size, timeout=120) as view:
                raise ValueError("the order is refused")
        except ValueError as error:
            print(f"not sent: {error}")

        while received < COUNT:
            subscription.poll(on_order, fragment_limit=100, copy=False)  # `view` is memory of the log
        print(f"{received:,} orders of {total:,.0f} in total")


if __name__ == "__main__":
    main()

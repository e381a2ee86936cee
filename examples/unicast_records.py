"""Market data over UDP unicast: each row of a numpy array is a message, and the messages arrive as an array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import aeron

TRADE = np.dtype([("time_ns", "<i8"), ("price", "<f8"), ("size", "<f8"), ("symbol", "S16")])
STREAM_ID = 1001
COUNT = 10_000


def make_trades(count: int) -> np.ndarray:
    """Returns trades at intervals of one microsecond. Their price is a random walk."""
    random = np.random.default_rng(seed=1)
    trades = np.zeros(count, TRADE)
    trades["time_ns"] = np.arange(count) * 1_000
    trades["price"] = 100 + np.cumsum(random.normal(0, 0.01, count))
    trades["size"] = random.integers(1, 100, count)
    trades["symbol"] = b"EURUSD"
    return trades


def main() -> None:
    trades = make_trades(COUNT)
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        # With port 0 the system chooses a free port. A service that other programs must find needs a fixed port.
        subscription = client.add_subscription("aeron:udp?endpoint=localhost:0", STREAM_ID)
        channel = f"aeron:udp?endpoint={subscription.resolved_endpoint}"
        publication = client.add_exclusive_publication(channel, STREAM_ID)
        publication.wait_connected(timeout=120)

        sent = 0
        received: list[npt.NDArray[np.void]] = []
        while sum(map(len, received)) < COUNT:
            sent += publication.offer_batch(trades, start=sent)  # sends as many rows as there is room for
            batch = subscription.poll_batch(limit=4096)
            if batch:
                received.append(batch.as_records(TRADE))  # no copy: the array uses the memory of the batch

        result = np.concatenate(received)
        assert (result == trades).all()
        volume = result["size"].sum()
        vwap = (result["price"] * result["size"]).sum() / volume
        print(f"{len(result):,} trades over {channel}: volume {volume:,.0f}, VWAP {vwap:.4f}")


if __name__ == "__main__":
    main()

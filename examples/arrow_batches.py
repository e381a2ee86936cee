"""Sends the columns of an Arrow record batch, and receives messages as an Arrow table. Needs `aeron-py[arrow]`."""

from __future__ import annotations

import pyarrow as pa

import aeron


def main() -> None:
    texts = [b"order %d" % number for number in range(1_000)]
    # The column `value` has the payloads. The column `reserved_value` is optional, and is sent in the frame headers.
    orders = pa.record_batch({"value": texts, "reserved_value": pa.array(range(1_000), pa.int64())})

    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        subscription = client.add_subscription("aeron:ipc", stream_id=1001)
        publication = client.add_exclusive_publication("aeron:ipc", stream_id=1001)
        publication.wait_connected(timeout=120)

        sent = 0
        while sent < orders.num_rows:
            sent += publication.offer_arrow(orders, start=sent, timeout=120)

        tables = []
        for batch in subscription.batches(timeout=120):
            tables.append(pa.table(batch))  # no copy: the columns use the memory of the batch
            if sum(table.num_rows for table in tables) == orders.num_rows:
                break
        received = pa.concat_tables(tables)
        assert received["payload"].to_pylist() == texts
        print(received.schema.to_string())
        print(f"{received.num_rows:,} messages; the last position is {received['position'][-1]}")


if __name__ == "__main__":
    main()

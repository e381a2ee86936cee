"""SBE: trades in an exchange's encoding, sent as messages and received as typed columns."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

import aeron
import aeron.sbe

CHANNEL, STREAM_ID = "aeron:ipc", 1001
COUNT = 1_000
SCHEMA = Path(__file__).parent / "data" / "trades.xml"


def trades() -> list[dict[str, object]]:
    """Returns trades: enums by name, decimals, and times as integers in the unit of the field."""
    start = datetime(2026, 1, 30, 9, 30, tzinfo=UTC)
    begin_ns = int(start.timestamp()) * 1_000_000_000
    return [
        {
            "time": begin_ns + number * 1_000_000,
            "price": Decimal(5_000 + number % 7) / 4,
            "quantity": number % 5 + 1,
            "side": "Buy" if number % 2 else "Sell",
            "symbol": "ESZ6",
        }
        for number in range(COUNT)
    ]


def main() -> None:
    schema = aeron.sbe.Schema(SCHEMA)
    template = schema["Trade"]
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        subscription = client.add_subscription(CHANNEL, STREAM_ID)
        publication = client.add_exclusive_publication(CHANNEL, STREAM_ID)
        publication.wait_connected(timeout=120)
        publication.offer_arrow(template.encode(trades()), timeout=120)

        received: list[pa.Table] = []
        for batch in subscription.batches(timeout=120):
            received.append(template.to_arrow(batch))
            if sum(table.num_rows for table in received) == COUNT:
                break
    # The metadata of each table has the counts of its batch.
    table = pa.concat_tables(each.replace_schema_metadata() for each in received)
    print(table.schema)
    sides = table.group_by("side", use_threads=False).aggregate([("quantity", "sum")])
    print(sides.to_pylist())
    one = template.encode_one(trades()[0])
    print(f"{len(one)} bytes:", schema.decode(one))


if __name__ == "__main__":
    main()

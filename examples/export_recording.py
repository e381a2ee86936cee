"""Records trades, exports the recording to Parquet while it is active, and continues the export later.

Needs `aeron-py[arrow]`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.dataset

import aeron

TRADE = np.dtype([("ts", "<M8[ns]"), ("price", "<f8"), ("size", "<i8"), ("symbol", "S8")])


def trades(first: int, count: int) -> np.ndarray:
    numbers = np.arange(first, first + count)
    made = np.zeros(count, TRADE)
    made["ts"] = np.datetime64("2026-01-05T09:00", "ns") + numbers * np.timedelta64(1, "ms")
    made["price"] = 100 + numbers % 50 / 100
    made["size"] = 10
    made["symbol"] = b"EURUSD"
    return made


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        aeron.MediaDriver() as driver,
        aeron.Archive(Path(place, "archive"), driver=driver) as server,
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication("aeron:ipc", 1001)
        exported = Path(place, "exported")
        exported.mkdir()

        # Each message is a trade. An export of an active recording ends at the position that is recorded when the
        # export starts.
        position = 0
        for part in range(2):
            sent = 0
            batch = trades(part * 5_000, 5_000)
            while sent < len(batch):
                sent += publication.offer_batch(batch[sent:])
            recording = archive.wait_recorded(publication, publication.position, timeout=120)
            batches = aeron.read_recording(
                server.directory, recording.recording_id, from_position=position, layout=TRADE
            )
            result = batches.export(exported / f"part-{part}.parquet")
            print(f"exported {result.rows:,} trades, up to position {result.to_position}")
            position = result.to_position

        # Any reader of Parquet can read the files, for example pyarrow, pandas, DuckDB and Spark.
        table = pyarrow.dataset.dataset(exported).to_table(columns=["ts", "price", "size"])
        print(f"{table.num_rows:,} trades from {table['ts'][0]} to {table['ts'][-1]}")


if __name__ == "__main__":
    main()

"""SBE messages with `aeron.sbe`: `ROLE - name=value...`, one role for each cell.

A role repeats its work until the time is over, and prints one line of JSON with the rate. A rate is in rows: messages,
or entries of a group.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from records import Arguments

import aeron
from aeron.sbe import Schema

SCHEMA = Path(__file__).with_name("sbe.xml")
LAYOUT = "ts ts_ns, px f64, qty i64, sym i32, side i32, seq i64, flags i64"
COUNT, ENTRIES = 40_960, 10
NS = 1_700_000_000_000_000_000
TRADE_FIELDS = ["ts", "px", "qty", "sym", "side", "seq", "flags"]
QUOTE_FIELDS = ("ts", "bid", "bidQty", "ask", "askQty", "instrument", "venue", "flags", "seq", "width")


def trade(number):
    return {"ts": NS + number, "px": 1.5, "qty": number, "sym": 7, "side": number % 2, "seq": number, "flags": 0}


def book(number):
    entry = {"px": number, "qty": 5, "side": 1, "orders": 3}
    return {"ts": NS + number, "entries": [{**entry, "level": level} for level in range(ENTRIES)]}


def quote(number):
    return dict.fromkeys(QUOTE_FIELDS[:-1], number % 1000) | {"width": 0.25}


def encoded(template, make, count):
    return template.encode([make(number) for number in range(count)])


def batch_of(messages):
    """Sends the messages over IPC. Returns them as the batch that a subscription delivers."""
    with aeron.MediaDriver(ipc_term_buffer_length=64 << 20) as driver, aeron.connect(driver) as client:
        subscription = client.add_subscription("aeron:ipc", 1)
        publication = client.add_exclusive_publication("aeron:ipc", 1)
        publication.wait_connected(timeout=10)
        assert publication.offer_arrow(messages, timeout=10) == len(messages)
        batch = subscription.poll_batch(limit=len(messages))
        assert batch is not None
        assert len(batch) == len(messages)
        return batch


def decode(template, make, count):
    batch = batch_of(encoded(template, make, count))

    def work():
        assert template.to_arrow(batch).num_rows == count
        return COUNT

    return work


def encode(template, make, count):
    table = template.to_arrow(encoded(template, make, count))

    def work():
        assert len(template.encode(table)) == count
        return COUNT

    return work


def recorded(template, **how):
    """Reads the columns of a recording. `how` is the layout or the template."""
    messages = encoded(template, trade, COUNT)
    if "layout" in how:
        # The records have the same bytes as the messages, without the header.
        messages = pa.array([message[8:] for message in messages.to_pylist()], pa.binary())
    home = tempfile.TemporaryDirectory()
    with (
        aeron.MediaDriver() as driver,
        aeron.Archive(home.name, driver=driver),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication("aeron:ipc", 1)
        assert publication.offer_arrow(messages, timeout=30) == len(messages)
        archive.wait_recorded(publication, publication.position, timeout=30)

    def work():
        # The function keeps `home`, so the directory exists as long as the function.
        rows = aeron.read_recording(home.name, 0, columns=TRADE_FIELDS, **how)
        assert pa.table(rows).num_rows == COUNT
        return COUNT

    return work


def attributes(template):
    message = template.encode_one(quote(1))

    def work():
        for _ in range(1000):
            each = template.decode(message)
            total = (
                each.ts
                + each.bid
                + each.bidQty
                + each.ask
                + each.askQty
                + each.instrument
                + each.venue
                + each.flags
                + each.seq
                + each.width
            )
            assert total == 9.25
        return 1000

    return work


def write(template, make, count, file):
    Path(file).write_bytes(b"".join(encoded(template, make, count).to_pylist()))


def main():
    arguments = Arguments(sys.argv)
    schema = Schema(SCHEMA)
    trades, books = (schema["Trade"], trade, COUNT), (schema["Book"], book, COUNT // ENTRIES)
    roles = {
        "fixed": lambda: decode(*trades),
        "groups": lambda: decode(*books),
        "encode-fixed": lambda: encode(*trades),
        "encode-groups": lambda: encode(*books),
        "recorded-records": lambda: recorded(schema["Trade"], layout=LAYOUT),
        "recorded-fixed": lambda: recorded(schema["Trade"], sbe=schema["Trade"]),
        "attributes": lambda: attributes(schema["Quote"]),
        "write-fixed": lambda: write(*trades, arguments.files),
        "write-groups": lambda: write(*books, arguments.files),
    }
    if work := roles[arguments.role]():
        print(json.dumps({"rate": repeated(work, arguments)}), flush=True)


def repeated(work, arguments):
    """Repeats `work` after a warm-up. Returns the sum of its results per second."""
    for seconds in (arguments.warmup, arguments.seconds - arguments.warmup):
        begin, rows = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            rows += work()
        elapsed = time.perf_counter() - begin
    return rows / elapsed


if __name__ == "__main__":
    main()

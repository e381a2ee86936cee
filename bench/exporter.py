"""The cost of an exporter of metrics: the time of a reading and of a scrape, and round trips in the same process.

usage: python -m bench.exporter [STREAMS]

The first line has STREAMS (1,000) UDP streams with four subscribers each. The goals are 10 ms for a reading and 20 ms
for a scrape. The second line has round trips over IPC in a process whose exporter is scraped once a second, and the
same without scrapes, in alternating runs. The goal is no change of the 99.9th percentile.
"""

import statistics
import subprocess
import sys
import time
import urllib.request

import numpy as np

import aeron
from aeron import metrics

SCRAPES = 30
PAIRS = 7
SECONDS = 4.0
STREAM_ID, BACK_STREAM_ID = 1000, 1001
SCRAPER = """
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1]).read()
    time.sleep(1)
"""


def main():
    print(scrapes(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
    print(round_trips())


def scrapes(streams):
    """Returns a line with the times of readings and scrapes in milliseconds."""
    channel = "aeron:udp?endpoint=127.0.0.1:45000"
    settings = {"term_buffer_length": 64 * 1024, "counters_values_buffer_length": 16 * 1024 * 1024}
    with aeron.MediaDriver(**settings) as driver:
        publisher, *readers = [
            aeron.connect(driver.dir, client_name=f"client {number}", driver_timeout_ms=60_000) for number in range(5)
        ]
        kept = [reader.add_subscription(channel, stream) for stream in range(streams) for reader in readers]
        publications = [publisher.add_exclusive_publication(channel, stream) for stream in range(streams)]
        for publication in publications:
            publication.wait_connected(timeout=60)
        with metrics.Exporter(driver.dir, port=0, max_series=1_000_000) as exporter:
            exporter.render()
            reading = _milliseconds(exporter.render)
            scrape = _milliseconds(lambda: urllib.request.urlopen(exporter.url + "/metrics").read())
        counters = len(driver.metrics().counters)
        del kept
    return f"{streams} streams, {counters} counters: reading {_shown(reading)} ms, scrape {_shown(scrape)} ms"


def _milliseconds(call):
    times = []
    for _ in range(SCRAPES):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def _shown(times):
    return f"{statistics.median(times):.1f} (at most {max(times):.1f})"


def round_trips():
    """Returns a line with percentiles of round trips in microseconds, without and with scrapes."""
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        # Streams that the exporter has to read.
        kept = [
            (client.add_subscription("aeron:ipc", stream), client.add_exclusive_publication("aeron:ipc", stream))
            for stream in range(200)
        ]
        with metrics.Exporter(driver.dir, port=0) as exporter:
            found = {False: [], True: []}
            for pair in range(PAIRS):
                for is_scraped in (bool(pair % 2), not pair % 2):
                    found[is_scraped].append(_run(client, exporter.url if is_scraped else None))
        del kept
    alone, scraped = (np.median(found[is_scraped], axis=0).round(2) for is_scraped in (False, True))
    return f"round trip p50, p99, p99.9 in us: alone {alone}, scraped {scraped}"


def _run(client, url):
    scraper = None if url is None else subprocess.Popen([sys.executable, "-c", SCRAPER, url + "/metrics"])
    try:
        there, here = (_Hop(client, stream) for stream in (STREAM_ID, BACK_STREAM_ID))
        times, end = [], time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            begin = time.perf_counter_ns()
            there.send()
            here.send()
            times.append(time.perf_counter_ns() - begin)
        return np.percentile(times, [50, 99, 99.9]) / 1e3
    finally:
        if scraper is not None:
            scraper.kill()
            scraper.wait()


class _Hop:
    """A stream on which one message is under way at a time."""

    def __init__(self, client, stream):
        self._subscription = client.add_subscription("aeron:ipc", stream)
        self._publication = client.add_exclusive_publication("aeron:ipc", stream)
        self._publication.wait_connected(timeout=5)

    def send(self):
        while not self._publication.offer(b"x" * 32):
            pass
        while not self._subscription.poll(_ignore, 1):
            pass


def _ignore(payload, header):
    pass


if __name__ == "__main__":
    main()

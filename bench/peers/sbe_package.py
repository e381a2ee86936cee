"""SBE messages with the package `sbe`: `fixed FILE LENGTH name=value...`.

The file has messages of one length, one after the other. The role decodes each message to a dict, and prints one line
of JSON with the rate in messages.
"""

import json
import sys
import time
from pathlib import Path

import sbe

SCHEMA = Path(__file__).with_name("sbe.xml")


def main():
    _, _, file, length, *words = sys.argv
    settings = dict(word.split("=") for word in words)
    seconds, warmup = float(settings["seconds"]), float(settings["warmup"])
    with SCHEMA.open() as text:
        schema = sbe.Schema.parse(text)
    everything, length = Path(file).read_bytes(), int(length)
    messages = [everything[begin : begin + length] for begin in range(0, len(everything), length)]
    for limit in (warmup, seconds - warmup):
        begin, rows = time.perf_counter(), 0
        while time.perf_counter() - begin < limit:
            for message in messages[:1000]:
                assert schema.decode(message).value["sym"] == 7
            rows += 1000
        elapsed = time.perf_counter() - begin
    print(json.dumps({"rate": rows / elapsed}), flush=True)


if __name__ == "__main__":
    main()

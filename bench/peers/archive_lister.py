"""Lists all recordings of an archive as an Arrow table with our client, several times."""

import json
import sys
import time

import aeron


def main():
    directory, runs = sys.argv[1], int(sys.argv[2])
    with aeron.connect(directory) as client, aeron.connect_archive(client) as archive:
        for _ in range(runs):
            start = time.perf_counter()
            table = archive.list_recordings().to_arrow()
            print(json.dumps({"ms": (time.perf_counter() - start) * 1e3, "count": table.num_rows}), flush=True)


main()

"""Publishes numbered messages of many lengths at a fixed rate until a line arrives on standard input. Then prints the
number of messages, and stays connected until the end of the input.

usage: publisher.py DIRECTORY CHANNEL STREAM_ID RATE FILE

FILE gets the position after each accepted message, in 8 bytes. The n-th position is that of message n.
"""

import struct
import sys
import threading
import time

import aeron


def length_of(number):
    """Returns the length of a message: mostly some hundred bytes, sometimes several frames."""
    return 8 + (5000 if number % 97 == 0 else number * 37 % 300)


def message(number):
    return struct.pack("<q", number).ljust(length_of(number), bytes([number % 251]))


def main(directory, channel, stream_id, rate, file):
    enough, ended = threading.Event(), threading.Event()

    def obey():
        sys.stdin.readline()
        enough.set()
        sys.stdin.read()
        ended.set()

    threading.Thread(target=obey, daemon=True).start()
    with aeron.connect(directory) as client, open(file, "wb", buffering=0) as accepted:
        publication = client.add_exclusive_publication(channel, int(stream_id))
        print(publication.session_id, flush=True)
        number, began = 0, time.monotonic()
        while not enough.is_set():
            if number > (time.monotonic() - began) * float(rate):
                time.sleep(0.001)
                continue
            position = publication.offer(message(number))
            if position > 0:
                accepted.write(struct.pack("<q", position))
                number += 1
            else:
                began += 0.001
                time.sleep(0.001)
        print(number, flush=True)
        ended.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

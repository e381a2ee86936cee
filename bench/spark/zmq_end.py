"""The process that sends to Spark, or receives from Spark, through pyzmq: `push|pull ADDRESS ROWS LENGTH`.

`push` sends ROWS messages and waits until it is killed. `pull` receives ROWS messages, checks their order, and prints
the number of faults.
"""

import sys

import zmq

from bench.spark.content import RING, byte_ring

_QUEUE_BYTES = 64 * 1024 * 1024


def push(socket, rows, length):
    messages = [message.tobytes() for message in byte_ring(length)]
    for number in range(rows):
        socket.send(messages[number % RING])
    sys.stdin.read()


def pull(socket, rows, _):
    print("ready", flush=True)
    faults = 0
    for number in range(rows):
        faults += int(socket.recv()[:16]) != number
    print(faults, flush=True)


def main(role, address, rows, length):
    socket = zmq.Context.instance().socket(zmq.PUSH if role == "push" else zmq.PULL)
    socket.set_hwm(max(1, _QUEUE_BYTES // int(length)))
    socket.bind(address)
    {"push": push, "pull": pull}[role](socket, int(rows), int(length))


if __name__ == "__main__":
    main(*sys.argv[1:])

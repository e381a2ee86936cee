"""Programs with `pyzmq` over `ipc://`. A message contains one record or a hundred records."""

import sys
import time

import zmq
from records import Check, last, ready, report_sent, ring, ring_of_bytes, run

PACKED = 100
_QUEUE_BYTES = 64 * 1024 * 1024


def socket(arguments, kind):
    """Returns a socket. Its queue holds `queue` messages, or 64 MiB of messages if no `queue` is given."""
    it = zmq.Context.instance().socket(kind)
    packed = PACKED if arguments.how == "packed" else 1
    it.set_hwm(arguments.queue or max(1, _QUEUE_BYTES // (arguments.length * packed)))
    return it


def address(arguments):
    return f"ipc://{arguments.directory}/socket"


def messages(arguments):
    """Returns a ring of messages, and the number of records in each message."""
    if arguments.how != "packed":
        return ring_of_bytes(arguments.length), 1
    records = ring(arguments.length)
    doubled = b"".join([records.tobytes()] * (PACKED // 4))
    size = PACKED * arguments.length
    return [doubled[at : at + size] for at in range(0, len(doubled), size)], PACKED


def publish(arguments):
    it = socket(arguments, zmq.PUSH)
    it.connect(address(arguments))
    send, sent = it.send, 0
    cycle, records = messages(arguments)
    deadline = time.perf_counter() + arguments.seconds
    while time.perf_counter() < deadline:
        for message in cycle:
            send(message)
        sent += len(cycle) * records
    send(last(arguments.length).tobytes())
    report_sent(sent)
    # The process waits until the benchmark ends it. If it closed the connection now, messages that the receiver has not
    # read would be lost.
    sys.stdin.read()


def subscribe(arguments):
    it = socket(arguments, zmq.PULL)
    it.bind(address(arguments))
    ready()
    check, recv = Check(arguments), it.recv
    many = 1 if arguments.how == "packed" else 1024
    while not check.ended:
        payloads = [recv()]
        try:
            while len(payloads) < many:
                payloads.append(recv(zmq.NOBLOCK))
        except zmq.Again:
            pass
        check.take(b"".join(payloads))
    check.report()


if __name__ == "__main__":
    run({"pub": publish, "sub": subscribe})

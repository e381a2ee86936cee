"""The sending process of the benchmarks that compare our source with Kafka's source.

`fill ADDRESS TOPIC KIND ROWS` sends the ring of a kind to a topic until the topic has ROWS messages.
`kafka ADDRESS TOPIC SECONDS` and `aeron DIRECTORY SECONDS` print `ready` and wait for a line of input. Then they send
messages at a steady rate. Each of these messages begins with its send time. At the end, each role prints the number of
sent messages."""

import os
import struct
import sys
import time

from bench.spark import content

RATE = 1000
_LENGTH = content.PLAIN.length
_CONNECT_TIMEOUT_S = 60


def fill(address, topic, kind, rows):
    messages = content.as_bytes(next(each for each in (content.PLAIN, content.JSON) if each.name == kind))
    producer = _producer(address)
    for number in range(int(rows)):
        _produce(producer, topic, messages[number % content.RING])
    producer.flush()
    return rows


def kafka(address, topic, seconds):
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        made.result(_CONNECT_TIMEOUT_S)
    producer = _producer(address)
    _await_go()
    sent = _send_steadily(lambda message: _produce(producer, topic, message), float(seconds))
    producer.flush()
    return sent


def aeron(directory, seconds):
    import aeron
    from bench.spark.source import CHANNEL, STREAM

    with aeron.connect(directory) as client:
        publication = client.add_exclusive_publication(CHANNEL, STREAM)
        _await_go()
        publication.wait_connected(timeout=_CONNECT_TIMEOUT_S)

        def send(message):
            while not publication.offer(message):
                os.sched_yield()

        sent = _send_steadily(send, float(seconds))
        print(sent, flush=True)
        while publication.is_connected:  # until the query is stopped
            time.sleep(0.01)


def _producer(address):
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": address, "enable.idempotence": True})


def _produce(producer, topic, message):
    while True:
        try:
            producer.produce(topic, message)
            return
        except BufferError:  # the queue is full
            producer.poll(0.01)


def _await_go():
    print("ready", flush=True)
    sys.stdin.readline()


def _send_steadily(send, seconds):
    start, count = time.monotonic(), round(RATE * seconds)
    for number in range(count):
        time.sleep(max(0.0, start + number / RATE - time.monotonic()))
        send(struct.pack("<q", time.time_ns()).ljust(_LENGTH, b"\0"))
    return count


if __name__ == "__main__":
    role, *words = sys.argv[1:]
    if (sent := {"fill": fill, "kafka": kafka, "aeron": aeron}[role](*words)) is not None:
        print(sent, flush=True)

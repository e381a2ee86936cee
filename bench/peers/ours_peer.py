"""Programs with our package. `how` selects rows, lists of bytes, one call per message, claims, or long messages."""

import os
import struct
import time

from records import RING, Check, last, ready, record_type, report_sent, report_times, ring, ring_of_bytes, run

import aeron

STREAM, PING_STREAM, PONG_STREAM = 1001, 1002, 1003
HEAD = struct.Struct("<qq")


def publish(arguments):
    with aeron.connect(arguments.directory) as client:
        publication = client.add_exclusive_publication(arguments.channel, STREAM)
        publication.wait_connected(timeout=10)
        deadline = time.perf_counter() + arguments.seconds
        report_sent(SENDERS[arguments.how or "rows"](publication, arguments, deadline))
        while publication.is_connected:
            time.sleep(0.001)


def send_batches(publication, arguments, deadline, messages):
    yield_now, offer_batch, sent = os.sched_yield, publication.offer_batch, 0
    while time.perf_counter() < deadline:
        start = 0
        while (start := start + offer_batch(messages, start=start)) < RING:
            yield_now()
        sent += RING
    end(publication, arguments)
    return sent


def send_rows(publication, arguments, deadline):
    return send_batches(publication, arguments, deadline, ring(arguments.length))


def send_lists(publication, arguments, deadline):
    return send_batches(publication, arguments, deadline, ring_of_bytes(arguments.length))


def send_single(publication, arguments, deadline):
    offer, yield_now, messages, sent = publication.offer, os.sched_yield, ring_of_bytes(arguments.length), 0
    while time.perf_counter() < deadline:
        for message in messages:
            while not offer(message):
                yield_now()
        sent += RING
    end(publication, arguments)
    return sent


def send_claims(publication, arguments, deadline):
    try_claim, length, heads, sent = publication.try_claim, arguments.length, ring_of_bytes(16), 0
    body = bytes(length)
    while time.perf_counter() < deadline:
        for _ in range(64):
            while not (claim := try_claim(length)):
                os.sched_yield()
            with claim as view:
                view[:] = body
                view[:16] = heads[sent % RING]
            sent += 1
    end(publication, arguments)
    return sent


def send_long(publication, arguments, deadline):
    offer, heads, message, sent = publication.offer, ring_of_bytes(16), bytearray(arguments.length), 0
    while time.perf_counter() < deadline:
        for _ in range(64):
            message[:16] = heads[sent % RING]
            while not offer(message):
                os.sched_yield()
            sent += 1
    end(publication, arguments)
    return sent


def end(publication, arguments):
    publication.publish(last(arguments.length).tobytes(), timeout=10)


SENDERS = {"rows": send_rows, "list": send_lists, "single": send_single, "claim": send_claims, "offer": send_long}


def subscribe(arguments):
    with aeron.connect(arguments.directory) as client:
        subscription = client.add_subscription(arguments.channel, STREAM)
        ready()
        check = Check(arguments)
        RECEIVERS[arguments.how or "rows"](subscription, arguments, check)
        check.report()


def receive_batches(subscription, arguments, check):
    poll_batch, dtype = subscription.poll_batch, record_type(arguments.length)
    while not check.ended:
        if batch := poll_batch():
            check.take(batch.as_records(dtype))
        else:
            os.sched_yield()


def receive_single(subscription, arguments, check):
    payloads = []
    keep = payloads.append

    def on_message(payload, header):
        keep(payload)

    while not check.ended:
        if subscription.poll(on_message, arguments.limit) == 0:
            os.sched_yield()
            if payloads:
                check.take(b"".join(payloads))
                payloads.clear()
        elif len(payloads) >= RING:
            check.take(b"".join(payloads))
            payloads.clear()


def receive_views(subscription, arguments, check):
    def on_message(view, header):
        check.take_one(*HEAD.unpack_from(view))

    handler = aeron.FragmentAssembler(on_message) if arguments.how == "offer" else on_message
    while not check.ended:
        if subscription.poll(handler, arguments.limit, copy=False) == 0:
            os.sched_yield()


RECEIVERS = {
    "rows": receive_batches,
    "list": receive_batches,
    "single": receive_single,
    "claim": receive_views,
    "offer": receive_views,
}


def ping(arguments):
    with aeron.connect(arguments.directory) as client:
        subscription = client.add_subscription(arguments.channel, PONG_STREAM)
        publication = client.add_exclusive_publication(arguments.channel, PING_STREAM)
        publication.wait_connected(timeout=10)
        subscription.wait_connected(timeout=10)
        messages, got = ring_of_bytes(arguments.length), []

        def on_message(payload, header):
            got.append(payload)

        clock, offer, poll = time.perf_counter_ns, publication.offer, subscription.poll

        def round_trips(deadline):
            times = []
            while time.perf_counter() < deadline:
                message = messages[len(times) % len(messages)]
                start = clock()
                while not offer(message):
                    pass
                while not poll(on_message, 1):
                    pass
                times.append(clock() - start)
                assert got.pop() == message
            return times

        begin = time.perf_counter()
        round_trips(begin + arguments.warmup)
        times = round_trips(begin + arguments.seconds)
        publication.publish(b"", timeout=10)
        report_times(times)


def pong(arguments):
    with aeron.connect(arguments.directory) as client:
        subscription = client.add_subscription(arguments.channel, PING_STREAM)
        publication = client.add_exclusive_publication(arguments.channel, PONG_STREAM)
        ready()
        going = [True]
        offer, poll = publication.offer, subscription.poll

        def on_message(payload, header):
            if not payload:
                going.clear()
                return
            while not offer(payload):
                pass

        while going:
            poll(on_message, 10)


if __name__ == "__main__":
    run({"pub": publish, "sub": subscribe, "ping": ping, "pong": pong})

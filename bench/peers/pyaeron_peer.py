"""Programs with `pyaeron`, a Python package around Aeron's C client, on the C driver."""

import os
import time

import pyaeron
from records import Check, last, ready, report_sent, report_times, ring_of_bytes, run

STREAM, PING_STREAM, PONG_STREAM = 1001, 1002, 1003


def publish(arguments):
    with pyaeron.Aeron(dir=arguments.directory) as client:
        publication = client.add_exclusive_publication(arguments.channel, STREAM)
        publication.await_connected()
        offer, yield_now, messages = publication.offer, os.sched_yield, ring_of_bytes(arguments.length)
        sent, deadline = 0, time.perf_counter() + arguments.seconds
        while time.perf_counter() < deadline:
            for message in messages:
                while not offer(message):
                    yield_now()
            sent += len(messages)
        final = last(arguments.length).tobytes()
        while not offer(final):
            yield_now()
        report_sent(sent)
        while publication.is_connected:
            time.sleep(0.001)


def subscribe(arguments):
    with pyaeron.Aeron(dir=arguments.directory) as client:
        subscription = client.add_subscription(arguments.channel, STREAM)
        ready()
        check, payloads = Check(arguments), []
        keep = payloads.append

        def on_message(view, header):
            keep(view.tobytes())

        while not check.ended:
            if subscription.poll(on_message, arguments.limit, assemble=False) == 0:
                os.sched_yield()
                if payloads:
                    check.take(b"".join(payloads))
                    payloads.clear()
            elif len(payloads) >= 4096:
                check.take(b"".join(payloads))
                payloads.clear()
        check.report()


def ping(arguments):
    with pyaeron.Aeron(dir=arguments.directory) as client:
        subscription = client.add_subscription(arguments.channel, PONG_STREAM)
        publication = client.add_exclusive_publication(arguments.channel, PING_STREAM)
        publication.await_connected()
        subscription.await_connected()
        messages, got = ring_of_bytes(arguments.length), []

        def on_message(view, header):
            got.append(view.tobytes())

        clock, offer, poll = time.perf_counter_ns, publication.offer, subscription.poll

        def round_trips(deadline):
            times = []
            while time.perf_counter() < deadline:
                message = messages[len(times) % len(messages)]
                start = clock()
                while not offer(message):
                    pass
                while not poll(on_message, 1, assemble=False):
                    pass
                times.append(clock() - start)
                assert got.pop() == message
            return times

        begin = time.perf_counter()
        round_trips(begin + arguments.warmup)
        times = round_trips(begin + arguments.seconds)
        while not offer(b""):
            pass
        report_times(times)


def pong(arguments):
    with pyaeron.Aeron(dir=arguments.directory) as client:
        subscription = client.add_subscription(arguments.channel, PING_STREAM)
        publication = client.add_exclusive_publication(arguments.channel, PONG_STREAM)
        ready()
        going = [True]
        offer, poll = publication.offer, subscription.poll

        def on_message(view, header):
            if len(view) == 0:
                going.clear()
                return
            while not offer(view):
                pass

        while going:
            poll(on_message, 10, assemble=False)


run({"pub": publish, "sub": subscribe, "ping": ping, "pong": pong})

"""Coroutines with our package: one receives a stream, others exchange one request and one response at a time.

`how=uvloop` selects the event loop of uvloop.
"""

import asyncio
import time

from ours_peer import PING_STREAM, PONG_STREAM, STREAM, publish
from records import Check, last, ready, record_type, report_times, ring_of_bytes, run

import aeron


async def subscribe(arguments):
    async with aeron.connect(arguments.directory) as client:
        subscription = await client.async_add_subscription(arguments.channel, STREAM)
        ready()
        check, dtype = Check(arguments), record_type(arguments.length)
        async for batch in subscription:
            check.take(batch.as_records(dtype))
            if check.ended:
                break
        check.report()


async def ping(arguments):
    async with aeron.connect(arguments.directory) as client:
        subscription = await client.async_add_subscription(arguments.channel, PONG_STREAM)
        publication = await client.async_add_exclusive_publication(arguments.channel, PING_STREAM)
        messages, answers = ring_of_bytes(arguments.length), aiter(subscription)

        async def round_trips(deadline):
            times = []
            while time.perf_counter() < deadline:
                message = messages[len(times) % len(messages)]
                start = time.perf_counter_ns()
                await publication.offer_async(message)
                [answer] = await anext(answers)
                times.append(time.perf_counter_ns() - start)
                assert answer == message
            return times

        begin = time.perf_counter()
        await round_trips(begin + arguments.warmup)
        times = await round_trips(begin + arguments.seconds)
        await publication.offer_async(last(arguments.length).tobytes())
        await anext(answers)
        report_times(times)


async def pong(arguments):
    async with aeron.connect(arguments.directory) as client:
        subscription = await client.async_add_subscription(arguments.channel, PING_STREAM)
        publication = await client.async_add_exclusive_publication(arguments.channel, PONG_STREAM)
        ready()
        end = last(arguments.length).tobytes()
        async for batch in subscription:
            for request in batch:
                await publication.offer_async(request)
                if request == end:
                    # If the client closed at once, the last response could be lost.
                    while publication.is_connected:
                        await asyncio.sleep(0.01)
                    return


def on_loop(role):
    """Returns a function that runs the coroutine `role` on the loop of uvloop if `how=uvloop`, or else of asyncio."""

    def start(arguments):
        if arguments.how == "uvloop":
            import uvloop

            uvloop.run(role(arguments))
        else:
            asyncio.run(role(arguments))

    return start


run({"pub": publish, "sub": on_loop(subscribe), "ping": on_loop(ping), "pong": on_loop(pong)})

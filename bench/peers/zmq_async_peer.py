"""Peers with `zmq.asyncio`. `sub` receives a stream. `ping` and `pong` exchange one request and one response at a time.

`how=uvloop` selects the event loop of uvloop.
"""

import asyncio
import time

import zmq
import zmq.asyncio
from records import Check, last, ready, report_times, ring_of_bytes, run
from zmq_peer import address, publish


async def subscribe(arguments):
    it = zmq.asyncio.Context.instance().socket(zmq.PULL)
    it.set_hwm(arguments.queue)
    it.bind(address(arguments))
    ready()
    check = Check(arguments)
    while not check.ended:
        check.take(await it.recv())
    check.report()


async def ping(arguments):
    it = zmq.asyncio.Context.instance().socket(zmq.REQ)
    it.connect(address(arguments))
    messages = ring_of_bytes(arguments.length)

    async def round_trips(deadline):
        times = []
        while time.perf_counter() < deadline:
            message = messages[len(times) % len(messages)]
            start = time.perf_counter_ns()
            await it.send(message)
            answer = await it.recv()
            times.append(time.perf_counter_ns() - start)
            assert answer == message
        return times

    begin = time.perf_counter()
    await round_trips(begin + arguments.warmup)
    times = await round_trips(begin + arguments.seconds)
    await it.send(last(arguments.length).tobytes())
    await it.recv()
    report_times(times)


async def pong(arguments):
    it = zmq.asyncio.Context.instance().socket(zmq.REP)
    it.bind(address(arguments))
    ready()
    end, request = last(arguments.length).tobytes(), None
    while request != end:
        request = await it.recv()
        await it.send(request)


def on_loop(role):
    """Returns a function that runs `role` on the event loop of uvloop if `how=uvloop`, and otherwise of asyncio."""

    def start(arguments):
        if arguments.how == "uvloop":
            import uvloop

            uvloop.run(role(arguments))
        else:
            asyncio.run(role(arguments))

    return start


run({"pub": publish, "sub": on_loop(subscribe), "ping": on_loop(ping), "pong": on_loop(pong)})

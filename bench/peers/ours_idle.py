"""Programs with our package and without work: a subscriber, a subscriber in a coroutine, or an embedded driver with a
publication."""

import asyncio
import os
import threading

from records import ready, run

import aeron

STREAM = 1001


def idle(arguments):
    {"sync": subscriber, "async": lambda at: asyncio.run(async_subscriber(at)), "embedded": embedded}[arguments.how](
        arguments
    )


def subscriber(arguments):
    with aeron.connect(arguments.directory) as client:
        subscription = client.add_subscription(arguments.channel, STREAM)
        ready()
        for _ in subscription.batches():
            pass


async def async_subscriber(arguments):
    async with aeron.connect(arguments.directory) as client:
        subscription = await client.async_add_subscription(arguments.channel, STREAM)
        ready()
        async for _ in subscription:
            pass


def embedded(arguments):
    directory = os.path.join(arguments.directory, "embedded")
    with aeron.MediaDriver(dir=directory) as driver, aeron.connect(driver) as client:
        client.add_publication(arguments.channel, STREAM)
        ready()
        threading.Event().wait()


run({"idle": idle})

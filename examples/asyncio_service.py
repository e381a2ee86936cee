"""A request and response service on asyncio. Before the service ends, it replies to all requests that it has received.

The service ends at SIGINT or SIGTERM. In this program it also ends after its client has received all responses.
"""

from __future__ import annotations

import asyncio
import signal
import struct

import aeron

REQUESTS, RESPONSES = 1001, 1002
HEADER = struct.Struct("<q")  # number of a request; the response repeats it


async def serve(client: aeron.Aeron, stop: asyncio.Event) -> None:
    """Responds to each request with its text in upper case, until `stop` is set."""
    requests = await client.async_add_subscription("aeron:ipc", REQUESTS)
    responses = await client.async_add_exclusive_publication("aeron:ipc", RESPONSES)
    served = 0

    async def respond() -> None:
        nonlocal served
        async for batch in requests:
            for request in batch.to_list():
                await responses.offer_async(request[: HEADER.size] + request[HEADER.size :].upper())
                served += 1

    responding = asyncio.create_task(respond())
    await stop.wait()
    requests.close()  # `async for` ends after the current batch
    await responding
    responses.close()
    print(f"the service ends after {served} requests")


class Requester:
    """Sends requests, and passes each response to the coroutine that waits for it."""

    def __init__(self, requests: aeron.ExclusivePublication, responses: aeron.Subscription) -> None:
        self._requests, self._responses = requests, responses
        self._waiting: dict[int, asyncio.Future[bytes]] = {}

    async def dispatch(self) -> None:
        async for batch in self._responses:
            for response in batch.to_list():
                (number,) = HEADER.unpack_from(response)
                self._waiting.pop(number).set_result(response[HEADER.size :])

    async def request(self, number: int, text: bytes) -> bytes:
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._requests.offer_async(HEADER.pack(number) + text)
        return await asyncio.wait_for(self._waiting[number], timeout=120)


async def main() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with aeron.MediaDriver() as driver:
        async with aeron.async_connect(driver) as client:
            service = asyncio.create_task(serve(client, stop))
            responses = await client.async_add_subscription("aeron:ipc", RESPONSES)
            requester = Requester(await client.async_add_exclusive_publication("aeron:ipc", REQUESTS), responses)
            dispatching = asyncio.create_task(requester.dispatch())
            texts = await asyncio.gather(*(requester.request(number, b"request %d" % number) for number in range(3)))
            print(*texts, sep="\n")
            stop.set()
            await service
            responses.close()
            await dispatching


if __name__ == "__main__":
    asyncio.run(main())

"""Searches for crashes with random calls of the whole package. Several threads make the calls and share all objects.

``python tests/random_calls.py SEED SECONDS [THREADS]`` prints ``survived`` and the number of calls. The seed determines
the random numbers of each thread, except those that choose the objects to drop. The calls also differ between runs
because they depend on the objects that other threads have made. With ``PYTHONMALLOC=debug`` the search is slower, and
finds more errors in the use of memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import inspect
import pickle
import random
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import aeron

LONG = "aeron:ipc?term-length=16m"
"""Channel for messages of up to 2 MiB. Copying more than 1 MiB releases the GIL."""
CHANNELS = ["aeron:ipc", "aeron:ipc", "aeron:ipc", LONG, "aeron:ipc?alias=other"]
EXPECTED = (
    aeron.AeronError,
    ArithmeticError,
    AttributeError,
    BufferError,
    LookupError,
    OSError,
    pa.ArrowException,
    pickle.PicklingError,
    RecursionError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Exceptions that a call may raise if its arguments are wrong or its object is closed."""

NOT_CALLED = {"aeronarchive_main", "aeronmd_main", "do_work"}
"""Methods that would end the program or never return."""
WAITING = {
    name
    for kind in (
        aeron.Publication,
        aeron.ExclusivePublication,
        aeron.Subscription,
        aeron.PendingOperation,
        aeron.AeronArchive,
        aeron.PersistentSubscription,
        aeron.RecordedPublisher,
    )
    for name in dir(kind)
    if "timeout=" in (getattr(getattr(kind, name), "__text_signature__", None) or "")
}
"""Methods with a parameter `timeout`. Without this argument, some of them wait without a limit."""
DEEPEST = 6
"""Maximum nesting depth of calls within handlers."""
MOST_KEPT = 300


class World:
    """The objects that all threads share, the end time of the run, and the number of calls."""

    def __init__(self, seconds: float) -> None:
        self.driver = aeron.MediaDriver(
            ipc_term_buffer_length=65536,
            timer_interval_ns=20_000_000,
            publication_linger_timeout_ns=50_000_000,
            dir_delete_on_shutdown=True,
        )
        self.archive_directory = tempfile.TemporaryDirectory()
        self.server = self.archive()
        self.things: list[Any] = []
        self.deadline = time.monotonic() + seconds
        self.calls = 0
        self.depth = threading.local()
        self.unexpected: list[BaseException] = []

    def archive(self) -> aeron.Archive:
        return aeron.Archive(
            self.archive_directory.name, driver=self.driver, segment_file_length=65536, low_storage_space_threshold=0
        )

    def is_over(self) -> bool:
        return time.monotonic() > self.deadline or bool(self.unexpected)

    def keep(self, *things: Any) -> None:
        self.things.extend(thing for thing in things if thing is not None)
        while len(self.things) > MOST_KEPT:
            with contextlib.suppress(IndexError):
                self.things.pop(random.randrange(len(self.things)))

    def pick(self, dice: random.Random, *kinds: type) -> Any:
        things = [thing for thing in list(self.things) if isinstance(thing, kinds)]
        return dice.choice(things) if things else None


def message(dice: random.Random) -> Any:
    length = dice.choice([0, 1, 31, 32, 100, 1000, 1376, 3000, 8000, 70_000])
    make: list[Callable[[], Any]] = [
        lambda: bytes(length),
        lambda: bytearray(length),
        lambda: memoryview(bytes(length)),
        lambda: np.zeros(length, "u1"),
        lambda: np.zeros(2 * length, "u1")[::2],
        lambda: np.zeros((length // 8, 2), "f4"),
        lambda: np.zeros(3, [("a", "i8"), ("b", "S3")]),
        lambda: np.array([object()]),
        lambda: bytes(2_000_000),
        lambda: "text",
        lambda: None,
    ]
    return dice.choice(make)()


def messages(dice: random.Random) -> Any:
    count = dice.randrange(40)
    make: list[Callable[[], Any]] = [
        lambda: [bytes(dice.randrange(100)) for _ in range(count)],
        lambda: [message(dice) for _ in range(count)],
        lambda: np.zeros((count, 4)),
        lambda: np.zeros((4, count)).T,
        lambda: np.zeros((count, 0)),
        lambda: np.broadcast_to(np.zeros(8, "u1"), (count, 8)),
        lambda: np.zeros(count, [("a", "i8"), ("b", "S3")])[::-1],
        lambda: np.zeros(count, [("a", "i8"), ("b", "M8[ns]")]),
        lambda: pa.array([bytes(dice.randrange(100)) for _ in range(count)], pa.binary()),
        lambda: pa.array(["text"] * count).slice(count // 2),
        lambda: tuple(bytes(8) for _ in range(count)),
        lambda: 5,
    ]
    return dice.choice(make)()


def handlers(world: World, dice: random.Random) -> Callable[..., Any]:
    def handle(*arguments: Any) -> Any:
        roll = dice.random()
        if roll < 0.05:
            raise ValueError("a handler that raises")
        if roll < 0.3:
            world.keep(*arguments)
        if roll < 0.4:
            act(world, dice)
        if roll < 0.5:
            return dice.choice(list(vars(aeron.Action).values()))
        return None

    return handle


def connect(world: World, dice: random.Random) -> None:
    handle = handlers(world, dice)
    hooks = dict.fromkeys(("error_handler", "on_available_image", "on_unavailable_image", "on_close"), handle)
    if dice.random() < 0.5:
        hooks = {"error_handler": lambda _: None}  # type: ignore[dict-item]
    if dice.random() < 0.3:
        world.keep(aeron.async_connect(world.driver, **hooks))
    else:
        world.keep(aeron.connect(world.driver, **hooks))


def add(world: World, dice: random.Random) -> None:
    client = world.pick(dice, aeron.Aeron)
    if client is None:
        return connect(world, dice)
    handle = handlers(world, dice)
    channel, stream_id = dice.choice(CHANNELS), dice.randrange(3)
    adds: list[Callable[[], Any]] = [
        lambda: client.add_publication(channel, stream_id),
        lambda: client.add_exclusive_publication(channel, stream_id),
        lambda: client.add_subscription(channel, stream_id),
        lambda: client.add_subscription(channel, stream_id, on_available_image=handle, on_unavailable_image=handle),
        lambda: client.add_counter(dice.randrange(1000, 1003), "a counter", bytes(dice.randrange(120))),
        lambda: client.async_add_publication(channel, stream_id),
        lambda: client.async_add_exclusive_publication(channel, stream_id),
        lambda: client.async_add_subscription(channel, stream_id, on_available_image=handle),
        lambda: client.async_add_counter(1001, "a counter"),
        lambda: client.async_next_session_id(stream_id),
        lambda: client.async_remove_publication(dice.randrange(100)),
    ]
    world.keep(dice.choice(adds)())


def send(world: World, dice: random.Random) -> None:
    publication = world.pick(dice, aeron.Publication, aeron.ExclusivePublication)
    if publication is None:
        return add(world, dice)
    value: Any = dice.choice([1, lambda fragment: dice.choice([2, None, act(world, dice)])])
    record = pa.record_batch({"value": pa.array([b"row"] * dice.randrange(50), pa.binary())})
    sends: list[Callable[[], Any]] = [
        lambda: publication.offer(message(dice)),
        lambda: publication.offer(message(dice)),
        lambda: publication.offer(message(dice), reserved_value=value),
        lambda: publication.publish(message(dice), 0.001),
        lambda: publication.offer_parts([message(dice) for _ in range(dice.randrange(5))]),
        lambda: publication.offer_batch(messages(dice)),
        lambda: publication.offer_batch(messages(dice), start=dice.randrange(10)),
        lambda: publication.offer_batch(bytes(100), offsets=dice.choice([[0, 10, 100], np.array([0, 50]), [5, 1]])),
        lambda: publication.offer_arrow(record, timeout=0.001),
        lambda: claim(world, dice, publication.try_claim(dice.randrange(1400), direct=dice.random() < 0.5)),
        lambda: claim(world, dice, publication.claim(dice.randrange(1400), 0.001)),
        lambda: publication.append_padding(dice.randrange(1000)),
        lambda: publication.offer_block(message(dice)),
        lambda: publication.flush(0.001),
    ]
    dice.choice(sends)()


def claim(world: World, dice: random.Random, claimed: Any) -> None:
    if not claimed:
        return
    ends: list[Callable[[], Any]] = [claimed.commit, claimed.commit, claimed.abort, lambda: world.keep(claimed)]
    view = claimed.view
    arrays = [view, view[: len(view) // 2], np.frombuffer(view, "u1") if len(view) else b""]
    world.keep(*dice.sample(arrays, dice.randrange(3)))
    dice.choice(ends)()


def receive(world: World, dice: random.Random) -> None:
    subscription = world.pick(dice, aeron.Subscription, aeron.Subscription, aeron.Image)
    if subscription is None:
        return add(world, dice)
    handle = dice.choice([handlers(world, dice), aeron.FragmentAssembler(handlers(world, dice))])
    lent, limit = dice.random() < 0.5, dice.randrange(1, 50)
    polls: list[Callable[[], Any]] = [
        lambda: subscription.poll(handle, limit),
        lambda: subscription.poll(handle, limit, copy=not lent),
        lambda: subscription.controlled_poll(handle, limit, copy=not lent),
        lambda: subscription.bounded_poll(handle, dice.randrange(10**6), limit, copy=not lent),
        lambda: subscription.block_poll(handle, 4096),
        lambda: subscription.raw_poll(handle, 4096),
        lambda: world.keep(subscription.poll_batch(limit)),
        lambda: world.keep(subscription.poll_batch(10_000, max_bytes=32 << 20)),
        lambda: world.keep(*subscription.images),
        lambda: [act(world, dice) for _ in subscription.batches(timeout=0.001)],
    ]
    dice.choice(polls)()


def look_at_a_batch(world: World, dice: random.Random) -> None:
    batch = world.pick(dice, aeron.Batch)
    if batch is None:
        return receive(world, dice)
    place = slice(dice.randrange(-5, 5), dice.randrange(-5, 50), dice.choice([None, 1, 2, -1]))
    looks: list[Callable[[], Any]] = [
        lambda: world.keep(*list(batch)[:3]),
        lambda: world.keep(batch[place]),
        lambda: world.keep(batch.payload, batch.offsets, batch.positions, batch.session_ids, batch.reserved_values),
        lambda: world.keep(np.frombuffer(batch.payload, "u1"), np.asarray(batch.positions)),
        lambda: world.keep(batch.as_records("V8")),
        lambda: world.keep(pa.array(batch)),
        batch.to_list,
        lambda: pickle.loads(pickle.dumps(batch)),
    ]
    dice.choice(looks)()


def use_kept_memory(world: World, dice: random.Random) -> None:
    """Reads and writes views and arrays that were kept after the end of their claim, batch or handler."""
    kept = world.pick(dice, memoryview, np.ndarray, pa.Array, aeron.Header)
    if isinstance(kept, memoryview):
        if kept.readonly or dice.random() < 0.5:
            bytes(kept)
        else:
            kept[:] = bytes(len(kept))
    elif isinstance(kept, np.ndarray):
        if kept.flags.writeable and not (isinstance(kept.base, memoryview) and kept.base.readonly):
            kept[: len(kept) // 2] = 0
        kept.tobytes()
    elif isinstance(kept, pa.Array):
        kept.validate(full=True)
    elif kept is not None:
        repr(kept), kept.position


def read_persistently(world: World, dice: random.Random) -> None:
    """Reads a recording. The recording may not exist, or may be purged meanwhile."""
    subscription = world.pick(dice, aeron.PersistentSubscription)
    handle = handlers(world, dice)
    if subscription is None or dice.random() < 0.1:
        client = world.pick(dice, aeron.Aeron)
        names = ("on_live_joined", "on_live_left", "on_error")
        options: dict[str, Any] = dict.fromkeys(names, handle) if dice.random() < 0.5 else {}
        options |= {"message_timeout": 0.3, "start_position": dice.choice([-2, -1, 0, 64])}
        world.keep(
            aeron.PersistentSubscription(
                client,
                recording_id=dice.randrange(10),
                live_channel=dice.choice(CHANNELS),
                live_stream_id=dice.randrange(3),
                **options,
            )
        )
        return
    uses: list[Callable[[], Any]] = [
        lambda: subscription.poll(handle),
        lambda: subscription.controlled_poll(handle, copy=False),
        lambda: world.keep(subscription.poll_batch()),
        lambda: next(subscription.batches(timeout=0.001), None),
        lambda: subscription.failure_reason,
        lambda: repr(subscription),
    ]
    dice.choice(uses)()
    if dice.random() < 0.02:
        subscription.close()


def publish_for_a_recording(world: World, dice: random.Random) -> None:
    """Publishes to a recording. Meanwhile, another thread may purge, stop or extend the recording."""
    publisher = world.pick(dice, aeron.RecordedPublisher)
    handle = handlers(world, dice)
    if publisher is None or dice.random() < 0.1:
        options: dict[str, Any] = {"on_error": handle, "on_reconnect": handle} if dice.random() < 0.5 else {}
        options |= dice.choice([{}, {"alias": "random"}, {"recording_id": dice.randrange(10)}])
        world.keep(
            aeron.RecordedPublisher(
                dice.choice(CHANNELS),
                dice.randrange(3),
                driver=world.driver,
                message_timeout=0.3,
                takeover_timeout=dice.choice([0, 0.1]),
                buffer_length=dice.choice([65536, 1 << 20]),
                **options,
            )
        )
        return
    timeout = dice.choice([0, 0.001, 0.05])
    uses: list[Callable[[], Any]] = [
        publisher.poll,
        lambda: publisher.offer(message(dice)),
        lambda: publisher.offer_batch(messages(dice)),
        lambda: publisher.publish(message(dice), timeout=timeout),
        lambda: publisher.flush(timeout),
        lambda: world.keep(*publisher.unrecorded()[:3]),
        lambda: publisher.failure_reason,
        lambda: repr(publisher),
    ]
    dice.choice(uses)()
    if dice.random() < 0.02:
        publisher.close(timeout)


def wait_for_an_operation(world: World, dice: random.Random) -> None:
    operation = world.pick(dice, aeron.PendingOperation)
    if operation is None:
        return add(world, dice)
    uses: list[Callable[[], Any]] = [
        operation.done,
        operation.cancel,
        lambda: world.keep(operation.result(dice.choice([0, 0.001, 1]))),
        lambda: operation.correlation_id,
        lambda: repr(operation),
    ]
    dice.choice(uses)()


def use_the_archive(world: World, dice: random.Random) -> None:
    """Records, replays or lists. Sometimes this function also restarts the archive."""
    archive = world.pick(dice, aeron.AeronArchive)
    handle = handlers(world, dice)
    if archive is None or dice.random() < 0.05:
        client = world.pick(dice, aeron.Aeron)
        options: dict[str, Any] = dict.fromkeys(("on_signal", "error_handler"), handle) if dice.random() < 0.5 else {}
        world.keep(aeron.connect_archive(client, message_timeout=0.3, **options))
        return
    channel, stream_id, recording_id = dice.choice(CHANNELS), dice.randrange(3), dice.randrange(10)
    publication = world.pick(dice, aeron.Publication, aeron.ExclusivePublication)
    position = dice.choice([None, 0, 32, 10**6])
    uses: list[Callable[[], Any]] = [
        lambda: archive.add_recorded_publication(channel, stream_id),
        lambda: archive.add_recorded_exclusive_publication(channel, stream_id),
        lambda: archive.async_add_recorded_exclusive_publication(channel, stream_id),
        lambda: archive.start_recording(channel, stream_id),
        lambda: archive.stop_recording(publication),
        lambda: archive.async_try_stop_recording(channel, stream_id),
        lambda: archive.replay(recording_id, position=position, length=dice.choice([-1, -2, 64])),
        lambda: archive.async_replay(recording_id, position=position),
        lambda: archive.async_wait_recorded(publication, dice.randrange(10_000)),
        lambda: archive.wait_recorded(publication, dice.randrange(10_000), timeout=0.01),
        lambda: archive.list_recordings().to_arrow(),
        lambda: archive.async_list_recordings(stream_id=stream_id),
        lambda: archive.purge_recording(recording_id),
        lambda: next(archive.signals(timeout=0.001), None),
        archive.poll_for_error,
        archive.poll,
        lambda: archive.state,
    ]
    world.keep(dice.choice(uses)())
    if dice.random() < 0.002:
        world.server.close()
        world.server = world.archive()


def call_anything(world: World, dice: random.Random) -> None:
    """Calls any public attribute of any object, with random arguments that may be wrong."""
    thing = world.pick(dice, object)
    names = [name for name in dir(type(thing)) if not name.startswith("_") and name not in NOT_CALLED]
    if not names or not type(thing).__module__.startswith("aeron"):
        return
    value = getattr(thing, dice.choice(names))
    if not callable(value):
        return
    pool = [0, 1, -1, 5, 2**40, b"x", "aeron:ipc", None, len, np.zeros(3), thing, 0.001, [], slice(0, 3)]
    arguments = [dice.choice(pool) for _ in range(dice.randrange(3))]
    keywords = {"timeout": 0.001} if value.__name__ in WAITING else {}
    outcome = value(*arguments[: 1 if keywords else None], **keywords)
    if inspect.iscoroutine(outcome):
        outcome.close()
    elif not isinstance(outcome, (int, str, list, aeron.Aeron)):
        world.keep(outcome)


def end_something(world: World, dice: random.Random) -> None:
    thing = world.pick(dice, object)
    if isinstance(thing, aeron.Aeron) and dice.random() < 0.8:
        return
    ends: list[Callable[[], Any]] = [
        thing.close,
        lambda: world.things.remove(thing),
        world.things.pop,
        thing.revoke,
        lambda: world.driver.is_closed,
    ]
    dice.choice(ends)()


def look_around(world: World, dice: random.Random) -> None:
    thing = world.pick(dice, object)
    looks: list[Callable[[], Any]] = [
        lambda: repr(thing),
        weakref.ref(thing),
        lambda: hash(thing),
        lambda: pickle.loads(pickle.dumps(thing)),
        lambda: thing == world.pick(dice, type(thing)),
        gc.collect,
        lambda: world.keep(*world.pick(dice, aeron.Aeron).counters_reader.snapshot()[:3]),
        lambda: aeron.CncFile(world.driver.dir).counters(),
        lambda: aeron.read_loss_report(world.driver.dir),
        lambda: world.keep(aeron.ChannelUriBuilder("udp", endpoint="localhost:0")),
    ]
    dice.choice(looks)()


ACTS = (
    [send] * 5
    + [receive] * 5
    + [look_at_a_batch] * 2
    + [use_kept_memory] * 3
    + [add] * 2
    + [use_the_archive] * 3
    + [read_persistently] * 3
    + [publish_for_a_recording] * 3
    + [wait_for_an_operation, call_anything, call_anything, end_something, look_around, connect]
)


def act(world: World, dice: random.Random) -> None:
    """Makes one random call and ignores expected exceptions."""
    depth = getattr(world.depth, "value", 0)
    if depth >= DEEPEST or world.is_over():
        return
    world.depth.value = depth + 1
    world.calls += 1
    try:
        dice.choice(ACTS)(world, dice)
    except EXPECTED:
        pass
    finally:
        world.depth.value = depth


async def act_async(world: World, dice: random.Random) -> None:
    publication = world.pick(dice, aeron.Publication, aeron.ExclusivePublication)
    subscription = world.pick(dice, aeron.Subscription)
    publisher = world.pick(dice, aeron.RecordedPublisher)
    waits: list[Callable[[], Any]] = [
        lambda: publisher.offer_async(message(dice)),
        lambda: publisher.offer_batch_async(messages(dice)),
        lambda: publisher.flush_async(0.01),
        lambda: publication.offer_async(message(dice)),
        lambda: publication.offer_batch_async(messages(dice)),
        lambda: publication.claim_async(dice.randrange(1400), 0.01),
        lambda: publication.wait_connected_async(0.01),
        lambda: subscription.wait_connected_async(0.01),
        lambda: anext(subscription.batches_async()),
        lambda: world.pick(dice, aeron.PendingOperation),
    ]
    wait = dice.choice(waits)()
    if wait is not None:
        world.keep(await asyncio.wait_for(wait, dice.choice([0, 0.001, 0.01])))


def run_loop(world: World, seed: int) -> None:
    """Runs an event loop with random asynchronous calls. A timeout or a cancellation ends each waiting call."""
    dice = random.Random(seed)

    async def one() -> None:
        with contextlib.suppress(*EXPECTED, TimeoutError, asyncio.CancelledError, StopAsyncIteration):
            await act_async(world, dice)

    async def main() -> None:
        while not world.is_over():
            tasks = [asyncio.ensure_future(one()) for _ in range(5)]
            await asyncio.sleep(0.002)
            dice.choice(tasks).cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def run_thread(world: World, seed: int, body: Callable[[World, random.Random], None]) -> None:
    dice = random.Random(seed)
    try:
        while not world.is_over():
            with contextlib.suppress(EXPECTED):
                body(world, dice)
    except BaseException as error:
        world.unexpected.append(error)
        raise


def main(seed: int, seconds: float, thread_count: int) -> None:
    """Runs the threads. Meanwhile the main thread also makes calls, some of them within a signal handler."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(seconds + 40, exit=True)
    # The first array makes pyarrow look for pandas and hold a lock meanwhile. A signal handler that made the next array
    # during that search would wait for this lock forever.
    pa.array([b""])
    gc.set_threshold(200, 2, 2)
    sys.unraisablehook = lambda _: None
    world = World(seconds)
    dice = random.Random(seed)
    signal.signal(signal.SIGALRM, lambda *_: act(world, dice))
    bodies = [act] * thread_count + [use_kept_memory]
    threads = [
        threading.Thread(target=run_thread, args=(world, seed * 100 + number, body))
        for number, body in enumerate(bodies)
    ]
    threads.append(threading.Thread(target=run_loop, args=(world, seed * 100 + 99)))
    for thread in threads:
        thread.start()
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    while not world.is_over():
        act(world, dice)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for thread in threads:
        thread.join()
    if world.unexpected:
        raise world.unexpected[0]
    world.things.clear()
    gc.collect()
    world.server.close()
    world.archive_directory.cleanup()
    world.driver.close()
    print("survived", file=sys.stdout)
    print(f"{world.calls} calls", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3)

"""Tests of subscribers without memory. A poll raises MemoryError and consumes nothing, so the next poll returns the
same messages."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator

import pytest

import aeron

CHANNEL = "aeron:ipc?term-length=32m"
Publish = Callable[[Iterable[bytes]], None]
LONG = 3 << 20  # length of a message in bytes; the maximum for this term length is 4 MiB
RECORD, RECORDS = 8192, 1200

_PRELUDE = f"""
import resource, sys, time
import aeron

LONG, RECORD, RECORDS = {LONG}, {RECORD}, {RECORDS}

def leave(bytes_left):
    # The limit applies to new mappings. The tested allocations are so long that each of them needs a new mapping.
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + bytes_left, resource.RLIM_INFINITY))

def leave_all():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

client = aeron.connect(sys.argv[1])
subscription = client.add_subscription("{CHANNEL}", int(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
while not subscription.images:
    time.sleep(0.001)
[image] = subscription.images
"""


def run_subscriber(directory: str, stream_id: int, body: str, publish: Callable[[], None]) -> str:
    """Runs `body` in a separate process after `publish` has published the messages. Returns the output of the
    process."""
    program = _PRELUDE + textwrap.dedent(body)
    with subprocess.Popen(
        [sys.executable, "-c", program, directory, str(stream_id)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        publish()
        output, errors = process.communicate("go\n", timeout=60)
        assert process.returncode == 0, errors
        return output


@pytest.fixture
def publish(client: aeron.Aeron, stream_id: int) -> Iterator[Publish]:
    """Yields a function that publishes messages on the stream."""
    with client.add_exclusive_publication(CHANNEL, stream_id) as publication:

        def publish(messages: Iterable[bytes]) -> None:
            publication.wait_connected(timeout=10)
            for message in messages:
                publication.publish(message, timeout=10)

        yield publish


def record(number: int) -> bytes:
    return number.to_bytes(8, "little").ljust(RECORD, b".")


def test_a_poll_of_a_batch_without_memory_consumes_only_the_messages_that_it_returns(
    driver: aeron.MediaDriver, stream_id: int, publish: Publish
) -> None:
    body = """
    numbers = []
    def take(batch):
        numbers.extend(int.from_bytes(message[:8], "little") for message in batch)
        assert all(len(message) == RECORD for message in batch)

    kept, failures = [], 0
    leave(3 << 20)
    while failures < 3:
        before = image.position
        try:
            batch = subscription.poll_batch(4096, max_bytes=1 << 30)
        except MemoryError as error:
            failures += 1
            assert image.position == before
            text = str(error)
        else:
            kept.append(batch)
    leave_all()
    for batch in kept:  # only after `leave_all`, because reading a batch also needs memory
        take(batch)
    assert "could not be allocated" in text, text
    assert len(numbers) < RECORDS, "the limit of memory must stop the polls before the last record"
    while len(numbers) < RECORDS:
        take(subscription.poll_batch(4096, max_bytes=1 << 30))
    assert numbers == list(range(RECORDS))
    print("whole")
    """
    assert run_subscriber(driver.dir, stream_id, body, lambda: publish(map(record, range(RECORDS)))) == "whole\n"


def test_a_batch_has_a_long_message_that_an_earlier_poll_had_no_memory_for(
    driver: aeron.MediaDriver, stream_id: int, publish: Publish
) -> None:
    body = """
    leave(1 << 20)
    for _ in range(3):
        before = image.position
        try:
            while len(subscription.poll_batch()) == 0:
                before = image.position
        except MemoryError:
            assert image.position == before
        else:
            sys.exit("no MemoryError")
    leave_all()
    while not (batch := subscription.poll_batch()):
        pass
    assert bytes(batch[0]) == bytes(range(256)) * (LONG // 256)
    print("whole")
    """
    message = bytes(range(256)) * (LONG // 256)
    assert run_subscriber(driver.dir, stream_id, body, lambda: publish([message])) == "whole\n"


@pytest.mark.parametrize("method", ["poll", "controlled_poll"])
def test_an_assembler_that_had_no_memory_receives_the_same_fragments_again(
    driver: aeron.MediaDriver, stream_id: int, publish: Publish, method: str
) -> None:
    body = f"""
    received = []
    assembler = aeron.FragmentAssembler(lambda message, header: received.append(message))
    poll = subscription.{method}
    """
    body += """
    leave(1 << 20)
    failures = 0
    while failures < 3:
        before = image.position
        try:
            poll(assembler, 1000)
        except MemoryError as error:
            assert image.position == before
            failures += 1
    assert not received
    leave_all()
    while not received:
        poll(assembler, 1000)
    assert received == [bytes(range(256)) * (LONG // 256)]
    print("whole")
    """
    message = bytes(range(256)) * (LONG // 256)
    assert run_subscriber(driver.dir, stream_id, body, lambda: publish([message])) == "whole\n"


def test_a_message_is_delivered_again_if_there_was_no_memory_for_its_bytes_object(
    driver: aeron.MediaDriver, stream_id: int, publish: Publish
) -> None:
    """The `bytes` object for the handler is a second copy of the message. In this test, only the second copy has no
    memory."""
    body = """
    received = []
    assembler = aeron.FragmentAssembler(lambda message, header: received.append(message))
    while image.position < LONG // 2:
        subscription.poll(assembler, 10)
    # The assembler's buffer is now longer than half of the message, and grows by half of its own length. So the buffer
    # never grows by more than the limit.
    leave(LONG - (64 << 10))
    failures = 0
    while failures < 3:
        before = image.position
        try:
            subscription.poll(assembler, 1000)
        except MemoryError:
            assert image.position == before
            failures += 1
    leave_all()
    while not received:
        subscription.poll(assembler, 1000)
    assert received == [bytes(range(256)) * (LONG // 256)]
    print("whole")
    """
    message = bytes(range(256)) * (LONG // 256)
    assert run_subscriber(driver.dir, stream_id, body, lambda: publish([message])) == "whole\n"

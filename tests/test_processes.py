"""Tests of forks, signals, the end of the interpreter, killed peers, finalizers, and calls in any order or thread."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from tests.conftest import Stream

import aeron


def run(code: str, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    """Runs a program with its own default driver directory. Deletes the directory even if the program was killed."""
    shared_memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="aeron-test-", dir=shared_memory) as directory:
        return subprocess.run(
            # These programs fork while threads run. Python 3.12 and later warn about such a fork.
            [
                sys.executable,
                "-X",
                "faulthandler",
                "-W",
                "ignore:This process:DeprecationWarning",
                "-c",
                textwrap.dedent(code),
            ],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**os.environ, "AERON_DIR": f"{directory}/driver"},
        )


def assert_fine(result: subprocess.CompletedProcess[str], stdout: str = "") -> None:
    assert (result.returncode, result.stdout, result.stderr) == (0, stdout, "")


FORK = """
    import aeron, gc, os, sys
    driver = aeron.MediaDriver()
    client = aeron.connect(driver)
    publication = client.add_publication("aeron:ipc", 1)
    exclusive = client.add_exclusive_publication("aeron:ipc", 1)
    subscription = client.add_subscription("aeron:ipc", 1)
    exclusive.wait_connected(5)
    exclusive.publish(b"x", 5)
    subscription.wait_connected(5)
    image = subscription.images[0]
    counter = client.add_counter(1001, "c")
    reader = client.counters_reader
    claim = exclusive.claim(8, 5)
"""


def test_after_a_fork_every_object_of_the_parent_raises_in_the_child() -> None:
    result = run(
        FORK
        + """
    calls = {
        "driver": [lambda: driver.close(), lambda: driver.dir, lambda: driver.is_closed, lambda: driver.do_work()],
        "client": [
            lambda: client.close(), lambda: client.add_publication("aeron:ipc", 1), lambda: client.is_closed,
            lambda: client.do_work(), lambda: client.add_subscription("aeron:ipc", 1), lambda: client.client_id,
        ],
        "publication": [
            lambda: publication.offer(b"x"), lambda: publication.close(), lambda: publication.is_connected,
            lambda: publication.try_claim(1), lambda: publication.publish(b"x", 1), lambda: publication.channel,
        ],
        "exclusive": [lambda: exclusive.offer_batch([b"x"]), lambda: exclusive.position, lambda: exclusive.revoke()],
        "subscription": [
            lambda: subscription.poll(print), lambda: subscription.poll_batch(), lambda: subscription.close(),
            lambda: subscription.images, lambda: subscription.is_connected, lambda: next(subscription.batches()),
        ],
        "image": [lambda: image.poll(print), lambda: image.position, lambda: image.reject("x")],
        "counter": [lambda: counter.value, lambda: counter.increment(), lambda: counter.close()],
        "reader": [lambda: reader.value(0), lambda: list(reader)],
        "claim": [lambda: claim.commit(), lambda: claim.abort(), lambda: claim.view],
    }
    pid = os.fork()
    if pid == 0:
        for name, group in calls.items():
            for i, call in enumerate(group):
                try:
                    call()
                except aeron.ForkedError as error:
                    assert "parent" in str(error)
                else:
                    print(name, i, "did not raise", flush=True)
        repr([driver, client, publication, exclusive, subscription, image, counter])
        del driver, client, publication, exclusive, subscription, image, counter, reader, claim, calls, call, group
        gc.collect()
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    claim.view[:] = b"parent's"
    claim.commit()
    got = []
    while len(got) < 2:
        got.extend(subscription.poll_batch().to_list())
    assert got == [b"x", b"parent's"], got
    assert client.add_counter(1001, "still there").value == 0
    assert not publication.is_closed and os.path.exists(driver.dir)
    """
    )
    assert_fine(result)


def test_a_child_opens_its_own_client_to_the_driver_of_its_parent() -> None:
    result = run(
        FORK
        + """
    directory = driver.dir
    pid = os.fork()
    if pid == 0:
        with aeron.connect(directory) as mine:
            theirs = mine.add_publication("aeron:ipc", 1)
            theirs.publish(b"from the child", 5)
        os._exit(0)
    claim.abort()
    got = []
    while b"from the child" not in got:
        got.extend(subscription.poll_batch().to_list())
    assert os.waitpid(pid, 0)[1] == 0
    """
    )
    assert_fine(result)


IDLE_LOOP = """
    import asyncio
    from aeron import aio
    aio._IDLE_AFTER_NS = 0

    async def wait_in(client, stream_id, *meanwhile):
        subscription = client.add_subscription("aeron:ipc", stream_id)
        waiting = asyncio.ensure_future(anext(subscription.batches_async()))
        await asyncio.sleep(0.1)
        for act in meanwhile:
            act()
        client.add_publication("aeron:ipc", stream_id).publish(b"x", 20)
        assert (await waiting).to_list() == [b"x"]
"""


def test_a_message_wakes_an_idle_event_loop_and_an_idle_loop_of_a_forked_child() -> None:
    result = run(
        FORK
        + IDLE_LOOP
        + """
    def fork():
        pid = os.fork()
        if pid == 0:
            with aeron.connect(directory) as mine:
                asyncio.run(wait_in(mine, 3))
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

    directory = driver.dir
    asyncio.run(wait_in(client, 2, fork))
    claim.abort()
    """
    )
    assert_fine(result)


def test_the_interpreter_can_end_while_an_idle_event_loop_waits() -> None:
    result = run(
        FORK
        + IDLE_LOOP
        + """
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    waiting = loop.create_task(wait_in(client, 2))
    loop.run_until_complete(asyncio.sleep(0.05))
    claim.abort()
    """
    )
    assert_fine(result)


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "raise SystemExit(0)"])
def test_open_objects_are_closed_at_the_end_of_the_interpreter(end: str) -> None:
    result = run(
        f"""
    import aeron, atexit, sys, os
    driver = aeron.MediaDriver()
    client = aeron.connect(driver, on_close=lambda: print("client closed", os.path.exists(driver.dir)))
    publication = client.add_publication("aeron:ipc", 1)
    subscription = client.add_subscription("aeron:ipc", 1)
    batches = subscription.batches()
    claim = None
    {end}
    """
    )
    assert_fine(result, "client closed True\n")


def test_the_end_of_the_interpreter_waits_at_most_two_seconds() -> None:
    result = run(
        """
    import aeron, time
    driver = aeron.MediaDriver()
    client = aeron.connect(driver, on_available_image=lambda _: time.sleep(20))
    both = client.add_subscription("aeron:ipc", 1), client.add_publication("aeron:ipc", 1)
    time.sleep(0.3)
    print(time.monotonic(), flush=True)
    """
    )
    # The program prints the time just before its end. So the measured time does not include the start of the program,
    # which is slow on a busy machine.
    ended = time.monotonic()
    assert result.returncode == 0
    assert ended - float(result.stdout) < 6


def test_no_driver_directory_remains_if_an_exception_ends_the_program(tmp_path: Path) -> None:
    result = run(
        f"""
    import aeron
    driver = aeron.MediaDriver(dir={str(tmp_path / "md")!r})
    client = aeron.connect(driver)
    1 / 0
    """
    )
    assert result.returncode == 1
    assert "ZeroDivisionError" in result.stderr
    assert not (tmp_path / "md").exists()


def test_the_interpreter_can_end_while_threads_send_and_receive() -> None:
    result = run(
        """
    import aeron, threading, time
    driver = aeron.MediaDriver()
    client = aeron.connect(driver)
    publication = client.add_publication("aeron:ipc", 1)
    subscription = client.add_subscription("aeron:ipc", 1)
    def send():
        while True:
            publication.publish(bytes(100))
    def receive():
        for batch in subscription.batches():
            pass
    def poll():
        while True:
            try:
                subscription.poll(lambda *_: None)
            except aeron.ReentrantCallError:
                pass
    for target in (send, send, receive, poll):
        threading.Thread(target=target, daemon=True).start()
    time.sleep(0.5)
    """
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("where", ["poll", "image handler"])
def test_the_interpreter_can_end_while_a_thread_runs_a_handler(where: str) -> None:
    result = run(
        f"""
    import aeron, threading, time
    driver = aeron.MediaDriver()
    def busy(*_):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            pass
    client = aeron.connect(driver, on_available_image=busy if {where!r} == "image handler" else None)
    publication = client.add_publication("aeron:ipc", 1)
    subscription = client.add_subscription("aeron:ipc", 1)
    publication.publish(b"x", 5)
    def poll():
        while True:
            subscription.poll(busy)
    if {where!r} == "poll":
        threading.Thread(target=poll, daemon=True).start()
    time.sleep(0.3)
    """
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("what", ["hook for errors", "finalizer of a result"])
def test_the_interpreter_can_end_while_code_runs_after_a_handler(what: str) -> None:
    result = run(
        f"""
    import aeron, sys, time
    driver = aeron.MediaDriver()
    def busy(*_):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            pass
    class Result:
        __del__ = busy
    def raising(_):
        raise ValueError
    sys.unraisablehook = busy
    on_image = raising if {what!r} == "hook for errors" else lambda _: Result()
    client = aeron.connect(driver, on_available_image=on_image)
    publication = client.add_publication("aeron:ipc", 1)
    subscription = client.add_subscription("aeron:ipc", 1)
    publication.wait_connected(5)
    time.sleep(0.3)
    """
    )
    assert result.returncode == 0, result.stderr


def test_a_child_that_was_forked_in_a_handler_polls_no_more_messages() -> None:
    result = run(
        """
    import aeron, os
    driver = aeron.MediaDriver()
    client = aeron.connect(driver)
    publication = client.add_publication("aeron:ipc", 1)
    subscription = client.add_subscription("aeron:ipc", 1)
    subscription.wait_connected(5)
    sent = [b"%d" % i for i in range(8)]
    for message in sent:
        publication.publish(message, 5)
    got, pid = [], None
    def fork_at_the_second(payload, header):
        global pid
        got.append(payload)
        if len(got) == 2:
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
    try:
        subscription.poll(fork_at_the_second, 5)
    except aeron.ForkedError:
        assert pid == 0
        os._exit(0 if got == sent[:2] else 1)
    assert pid, "poll must raise ForkedError in the child"
    while len(got) < len(sent):
        subscription.poll(lambda payload, header: got.append(payload))
    assert got == sent, got
    """
    )
    assert_fine(result)


@pytest.mark.parametrize("kind", ["publication", "exclusive_publication"])
def test_a_child_that_was_forked_in_a_supplier_of_reserved_values_sends_nothing(kind: str) -> None:
    result = run(
        f"""
    import aeron, os
    driver = aeron.MediaDriver()
    client = aeron.connect(driver)
    publication = client.add_{kind}("aeron:ipc", 1)
    subscription = client.add_subscription("aeron:ipc", 1)
    publication.wait_connected(5)
    pid, seen = None, []
    def poll():
        subscription.poll(lambda payload, header: seen.append((payload, header.reserved_value)))
    def fork(payload):
        global pid
        pid = os.fork()
        if pid:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            poll()
            assert not seen, "the child must not publish the message"
        return 8 if pid else 7
    try:
        while not publication.offer(b"message", reserved_value=fork):
            pass
    except aeron.ForkedError:
        assert pid == 0
        os._exit(0)
    assert pid, "offer must raise ForkedError in the child"
    while not seen:
        poll()
    assert seen == [(b"message", 8)], seen
    """
    )
    assert_fine(result)


def test_sigint_ends_a_wait() -> None:
    import signal

    code = """
    import aeron
    driver = aeron.MediaDriver()
    client = aeron.connect(driver)
    publication = client.add_publication("aeron:ipc", 1)
    print("waiting", flush=True)
    publication.publish(b"nobody listens")
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in stderr


def test_sigint_ends_a_wait_for_a_dead_driver_before_its_death_is_detected(tmp_path: Path) -> None:
    import signal

    code = f"""
    import aeron, os, signal, subprocess, sys, time
    serve = "import aeron, sys, time; driver = aeron.MediaDriver(dir=sys.argv[1]); print(1, flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", serve, {str(tmp_path / "md")!r}], stdout=subprocess.PIPE)
    child.stdout.readline()
    client = aeron.connect({str(tmp_path / "md")!r}, driver_timeout_ms=60_000)
    child.kill()
    child.wait()
    for add in (client.add_publication, client.add_subscription):
        try:
            # Inside the try block, because the signal may arrive as soon as this line is printed.
            print("waiting", flush=True)
            add("aeron:ipc", 1)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(2):
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
    _, stderr = process.communicate(timeout=10)
    assert (process.returncode, stderr) == (0, "")


def test_sigint_ends_the_start_of_a_driver_that_waits_for_an_unfinished_cnc_file(tmp_path: Path) -> None:
    import signal

    (tmp_path / "cnc.dat").write_bytes(bytes(4096))
    code = f"""
    import aeron
    print("starting", flush=True)
    aeron.MediaDriver(dir={str(tmp_path)!r}, driver_timeout_ms=60_000)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "starting\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=10)
    assert "KeyboardInterrupt" in stderr


@pytest.mark.slow
def test_an_unfinished_claim_of_a_killed_publisher_does_not_block_other_publishers(tmp_path: Path) -> None:
    """04-8: the publisher is a Python program that is killed during a claim."""
    import signal

    with (
        aeron.MediaDriver(
            dir=tmp_path / "md",
            timer_interval_ns=50_000_000,
            # The timeout is long enough that the client of this test does not time out on a busy machine.
            client_liveness_timeout_ns=3_000_000_000,
            publication_unblock_timeout_ns=3_500_000_000,
        ) as driver,
        aeron.connect(driver) as client,
    ):
        subscription = client.add_subscription("aeron:ipc", 1)
        mine = client.add_publication("aeron:ipc", 1)
        mine.publish(b"before", 5)
        code = f"""
        import aeron, time
        client = aeron.connect({driver.dir!r})
        publication = client.add_publication("aeron:ipc", 1)
        claim = publication.claim(100, 5)
        print("claimed", flush=True)
        time.sleep(60)
        """
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        mine.publish(b"after", 5)
        got: list[bytes] = []
        deadline = time.monotonic() + 20
        while b"after" not in got:
            assert time.monotonic() < deadline
            got.extend(subscription.poll_batch().to_list())
        assert got == [b"before", b"after"]


@pytest.mark.parametrize("seed", [17, 19, 21])
def test_no_sequence_of_calls_crashes_the_interpreter(seed: int) -> None:
    program = Path(__file__).with_name("random_calls.py")
    result = subprocess.run(
        [sys.executable, str(program), str(seed), "4"], capture_output=True, text=True, timeout=55, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout == "survived\n"
    assert "panicked" not in result.stderr
    assert "Traceback" not in result.stderr, result.stderr[-3000:]


def test_a_handler_that_the_garbage_collector_has_cleared_is_not_called() -> None:
    """The garbage collector clears a handler before it clears the client. Other threads may run in between."""
    result = run(
        """
    import aeron, gc, threading, time
    gc.disable()
    driver = aeron.MediaDriver(ipc_term_buffer_length=65536)
    other = aeron.connect(driver)
    inside, calls = threading.Event(), []

    def slow(image):
        inside.set()
        time.sleep(0.5)

    def make_garbage():
        def handler(image):
            calls.append(threading.get_ident())
        # The collector begins with the oldest object, the handler. The handler loses its globals first, and then its
        # references to the clients.
        handler.cycle = cycle = [handler]
        cycle.append(aeron.connect(driver))
        cycle.append(cycle[1].add_subscription("aeron:ipc", 2, on_available_image=handler))
        # A list drops its last item first. Dropping this client lets other threads run until the handler `slow` ends.
        cycle.append(aeron.connect(driver, on_available_image=slow))
        cycle.append(cycle[3].add_subscription("aeron:ipc", 1))

    make_garbage()
    slow_publication = other.add_publication("aeron:ipc", 1)
    assert inside.wait(10)
    done = threading.Event()
    def publish():
        # Each publication gives the subscription, which is garbage, a new image.
        while not done.is_set():
            other.add_exclusive_publication("aeron:ipc", 2)
    publisher = threading.Thread(target=publish)
    publisher.start()
    while not calls:
        time.sleep(0.001)
    gc.collect()
    done.set()
    publisher.join()
    other.close()
    driver.close()
    print("survived")
    """
    )
    assert_fine(result, "survived\n")


def test_handlers_that_close_each_others_clients_do_not_deadlock() -> None:
    result = run(
        """
    import aeron, threading, time
    driver = aeron.MediaDriver(ipc_term_buffer_length=65536)
    all_inside, closed = threading.Barrier(3), []
    clients = []
    def closer(number):
        def handler(image):
            all_inside.wait(10)
            clients[(number + 1) % 3].close()
            closed.append(number)
        return handler
    clients += [aeron.connect(driver, on_available_image=closer(number)) for number in range(3)]
    subscriptions = [client.add_subscription("aeron:ipc", 1) for client in clients]
    other = aeron.connect(driver)
    publication = other.add_publication("aeron:ipc", 1)
    deadline = time.monotonic() + 15
    while len(closed) < 3:
        assert time.monotonic() < deadline, closed
        time.sleep(0.001)
    assert all(client.is_closed for client in clients)
    other.close()
    driver.close()
    print("closed")
    """
    )
    assert_fine(result, "closed\n")


FINALIZER = """
    import aeron, gc, time
    driver = aeron.MediaDriver(ipc_term_buffer_length=65536)
    client = aeron.connect(driver)
    seen = []

    class Finalizer:
        def __init__(self, *calls):
            self.itself, self.calls = self, calls

        def __del__(self):
            for call in self.calls:
                try:
                    seen.append(call())
                except aeron.AeronError as error:
                    seen.append(type(error).__name__)

        def __call__(self, image):
            pass
"""


def test_a_finalizer_may_use_an_operation_while_the_result_of_the_operation_is_created() -> None:
    result = run(
        FINALIZER
        + """
    operation = client.async_add_publication("aeron:ipc", 1)
    while not operation.done():
        time.sleep(0.001)
    result = operation.result
    gc.collect()
    gc.disable()
    gc.set_threshold(1)
    Finalizer(operation.done, operation.cancel, operation.__repr__, lambda: operation.result(0))
    gc.enable()
    publication = result(0)
    gc.disable()
    assert seen[:2] == [True, False], seen
    assert "PendingOperation add_publication" in seen[2]
    assert seen[3] in ("ReentrantCallError", publication), seen
    assert operation.result(0) is publication
    client.close()
    driver.close()
    """
    )
    assert_fine(result)


def test_a_finalizer_may_use_a_claim_while_an_error_of_the_claim_is_created() -> None:
    result = run(
        FINALIZER
        + """
    publication = client.add_exclusive_publication("aeron:ipc", 1)
    subscription = client.add_subscription("aeron:ipc", 1)
    claim = publication.claim(8, 5)
    claim.commit()
    change = claim.set_reserved_value
    gc.collect()
    gc.disable()
    gc.set_threshold(1)
    Finalizer(lambda: claim.is_finished)
    gc.enable()
    try:
        change(1)
    except aeron.AeronError:
        pass
    gc.disable()
    assert seen == [True], seen
    client.close()
    driver.close()
    """
    )
    assert_fine(result)


def test_the_finalizer_of_a_handler_may_use_the_operation_that_released_the_handler() -> None:
    result = run(
        FINALIZER
        + """
    handler = Finalizer(lambda: operation.done())
    del handler.itself
    operation = client.async_add_subscription("aeron:foo", 1, on_available_image=handler)
    del handler
    while not operation._is_done():
        time.sleep(0.001)
    while not seen:
        # A later call drops the objects that were released without the GIL.
        operation.done()
    assert seen == [True], seen
    client.close()
    driver.close()
    """
    )
    assert_fine(result)


def test_a_forked_child_can_print_a_pending_operation_of_its_parent() -> None:
    result = run(
        """
    import aeron, os, signal, threading
    driver = aeron.MediaDriver(ipc_term_buffer_length=65536)
    client = aeron.connect(driver)
    operations = [client.async_next_session_id(1) for _ in range(4)]
    over = threading.Event()
    def look(operation):
        while not over.is_set():
            operation.done()
    threads = [threading.Thread(target=look, args=(operation,), daemon=True) for operation in operations]
    for thread in threads:
        thread.start()
    for _ in range(100):
        pid = os.fork()
        if pid == 0:
            signal.alarm(10)
            assert all("of the parent process" in repr(operation) for operation in operations)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    over.set()
    for thread in threads:
        thread.join()
    print("printed")
    """
    )
    assert_fine(result, "printed\n")


def test_several_threads_can_publish_on_one_publication(stream: Stream) -> None:
    import threading

    publication = stream.client.add_publication("aeron:ipc", stream.stream_id)
    count, got = 4000, []

    def send() -> None:
        for _ in range(count // 4):
            publication.publish(bytes(50), timeout=20)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while len(got) < count and time.monotonic() < deadline:
        got.extend(stream.subscription.poll_batch().to_list())
    for thread in threads:
        thread.join()
    assert len(got) == count

"""Tests of our commands with the real Java samples as peers, through each kind of driver, over UDP."""

import os
import re
import shutil
import signal
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from commands import Command, run
from interop import toolchain
from interop.processes import LineProcess
from interop.waiting import eventually
from ports import free_port

_DRIVERS = ("ours", "java", "c")
_START_TIMEOUT_S = 60
_TIMEOUT_S = 60
_DRIVER_TIMEOUT_MS = 2000  # for clients of a driver that the test kills

each_driver = pytest.mark.parametrize("kind", _DRIVERS)


def channel(name="endpoint"):
    return f"aeron:udp?{name}=127.0.0.1:{free_port()}"


@pytest.fixture
def sample(tmp_path):
    """`sample(driver, name, *arguments, **settings)` runs a Java sample during a block, and kills it at the end of the
    block."""

    @contextmanager
    def running(driver, name, *arguments, driver_timeout_ms=10_000, **settings):
        properties = {
            "aeron.dir": driver.directory,
            "aeron.driver.timeout": driver_timeout_ms,
            "aeron.sample.idleStrategy": "yield",
        }
        properties |= {f"aeron.sample.{key.replace('_', '.')}": value for key, value in settings.items()}
        command = toolchain.java_command(properties, f"io.aeron.samples.{name}", *arguments)
        process = LineProcess(command, log=tmp_path / f"{name}.txt")
        try:
            yield Sample(process)
        finally:
            process.kill()

    return running


class Sample:
    """A running sample and the lines of its output."""

    def __init__(self, process):
        self.process = process

    def wait_for(self, pattern):
        """Waits for the next line that contains `pattern`. Returns the match."""
        while True:
            if match := re.search(pattern, self.process.read(_START_TIMEOUT_S)):
                return match

    def answer(self, text):
        self.process.write(text)


@each_driver
def test_our_pong_responds_to_a_java_ping(kind, shared_drivers, sample):
    """06-18, 06-23"""
    driver = shared_drivers(kind)
    ping, pong = channel(), channel()
    both = {"ping_channel": ping, "pong_channel": pong}
    with Command("pong", "--dir", driver.directory, "-c", ping, "-C", pong) as ours:
        ours.wait_for("Publication channel status")
        few = {"messages": 500, "warmup_iterations": 1, "warmup_messages": 50, "messageLength": 2000}
        with sample(driver, "Ping", **both, **few) as theirs:
            theirs.wait_for(r"Pinging 500 messages")
            assert theirs.wait_for(r"Total count +=? *(\d+)")[1] == "500"
            theirs.answer("n")
        ours.send(signal.SIGINT)
        assert ours.end() == 0


@each_driver
def test_a_java_pong_responds_to_our_ping(kind, shared_drivers, sample):
    """06-18, 06-23"""
    driver = shared_drivers(kind)
    ping, pong = channel(), channel()
    with sample(driver, "Pong", ping_channel=ping, pong_channel=pong) as theirs:
        theirs.wait_for("Publishing Pong")
        options = ["-c", ping, "-C", pong, "-m", 500, "-w", 50, "-L", 1000]
        result = run("ping", "--dir", driver.directory, *options)
        assert result.exit_code == 0
        assert re.search(r"Total count    = +500\]", result.stdout)


@each_driver
def test_our_rate_subscriber_counts_the_messages_of_a_java_publisher(kind, shared_drivers, sample):
    """06-17, 06-23"""
    driver, count = shared_drivers(kind), 50_000
    where = channel()
    with Command("rate", "--dir", driver.directory, "-c", where, "-m", count) as ours:
        ours.wait_for("Subscription channel status")
        with sample(driver, "StreamingPublisher", channel=where, messages=count, messageLength=64) as theirs:
            theirs.wait_for(r"Done streaming\. Back pressure ratio")
            assert ours.end(_TIMEOUT_S) == 0
            theirs.answer("n")
    assert f"totals {count} messages {count * 64 >> 20} MB payloads" in ours.output()


@each_driver
def test_a_java_rate_subscriber_counts_the_messages_of_our_publisher(kind, shared_drivers, sample):
    """06-17, 06-23"""
    driver, count = shared_drivers(kind), 50_000
    where = channel()
    with sample(driver, "RateSubscriber", channel=where) as theirs:
        theirs.wait_for("Subscribing to")
        options = ["-c", where, "-m", count, "-L", 64, "--linger", 2]
        result = run("rate", "--publish", "--dir", driver.directory, *options)
        assert result.exit_code == 0
        assert f"totals {count} messages" in result.stdout
        theirs.wait_for(rf"totals {count} messages")


@pytest.fixture
def file(tmp_path):
    """Returns a file with a length of several frames and some bytes."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(3_000_001))
    return path


@pytest.fixture
def into(tmp_path):
    """Returns the directory of received files."""
    path = tmp_path / "received"
    path.mkdir()
    return path


@each_driver
def test_our_command_receives_a_complete_file_from_java(kind, shared_drivers, sample, file, into):
    """06-20, 06-23"""
    driver, where = shared_drivers(kind), channel()
    with Command("receive", into, "--dir", driver.directory, "-c", where, "--files", 1) as ours:
        ours.wait_for("Receiving from")
        with sample(driver, "FileSender", file, channel=where):
            assert ours.end(_TIMEOUT_S) == 0
    assert (into / "file").read_bytes() == file.read_bytes()


@each_driver
def test_java_receives_a_complete_file_from_our_command(kind, shared_drivers, sample, file, into):
    """06-20, 06-23: the Java receiver starts its own driver"""
    driver, where = shared_drivers(kind), channel()
    of_the_receiver = SimpleNamespace(directory=f"{driver.directory}-receiver")
    try:
        with sample(of_the_receiver, "FileReceiver", into, "unused", channel=where) as theirs:
            theirs.wait_for("Receiving from")
            result = run("send", file, "--dir", driver.directory, "-c", where)
            assert result.exit_code == 0, result.output
            received = into / "file"
            eventually(lambda: received.exists() and received.stat().st_size == file.stat().st_size, timeout_s=30)
            eventually(lambda: received.read_bytes() == file.read_bytes(), timeout_s=30)
    finally:
        shutil.rmtree(of_the_receiver.directory, ignore_errors=True)


@each_driver
def test_java_samples_and_our_commands_share_a_stream(kind, shared_drivers, sample):
    """06-23, 06-24 (9.4): every subscriber receives all messages, and both publishers share one session"""
    driver = shared_drivers(kind)
    where = f"{channel()}|term-length=64k"
    with (
        Command("sub", "--dir", driver.directory, "-c", where) as ours,
        sample(driver, "BasicSubscriber", channel=where) as theirs,
    ):
        ours.wait_for("Subscription channel status")
        # The Java publisher does not repeat a failed offer. So our publisher connects the stream first, and runs until
        # the Java publisher has sent its messages.
        with Command("pub", "--dir", driver.directory, "-c", where, "--interval", 0.2) as our_publisher:
            ours.wait_for("<<Hello World! ")
            theirs.wait_for(r"<<Hello World! ")
            with sample(driver, "BasicPublisher", channel=where, messages=2) as their_publisher:
                their_publisher.wait_for(r"Offering 1/2 - yay!")
                our_publisher.send(signal.SIGINT)
                assert our_publisher.end() == 0
                sent = [int(number) for number in re.findall(r"offering (\d+)/\d+ - yay!", our_publisher.output())]
                ours.wait_for(f"<<Hello World! {sent[-1]} ")
                theirs.wait_for(rf"<<Hello World! {sent[-1]} ")
                eventually(lambda: _numbers(ours, theirs_sent=True) == [0, 1])
                assert ours.output().count("Available image") == 1
        assert len({session for session, _, _ in _messages(ours)}) == 1
        # If an offer fails, our publisher does not print `yay!`. So `sent` has only the numbers of published messages.
        assert _numbers(ours, theirs_sent=False) == sent


def _messages(subscriber):
    """Returns session, length and number of the messages that our subscriber has printed."""
    printed = r"Message to stream 1001 from session (-?\d+) \((\d+) bytes\) <<Hello World! (\d+) *>>"
    return re.findall(printed, subscriber.output())


def _numbers(subscriber, *, theirs_sent):
    """Returns the numbers of the messages from the Java publisher, or from ours. Only ours sends messages of 32
    bytes."""
    return [int(number) for _, length, number in _messages(subscriber) if (length != "32") == theirs_sent]


def test_backlog_and_stream_views_agree_with_the_java_tools(shared_drivers, start_driver, sample):
    """06-7, 06-23"""
    driver = start_driver("ours")
    where = channel()
    with Command("sub", "--dir", driver.directory, "-c", where) as sub:
        sub.wait_for("Subscription channel status")
        with Command("pub", "--dir", driver.directory, "-c", where, "-m", 3, "--interval", 0.1, "--linger", 200) as pub:
            pub.wait_for("Lingering")
            sub.wait_for("<<Hello World! 2")
            for name, option in (("StreamStat", []), ("BacklogStat", ["--backlog"])):
                theirs, ours = _views(driver, sample, name, option)
                assert ours == theirs
            pub.send(signal.SIGINT)
            assert pub.end() == 0


def _views(driver, sample, name, option):
    """Returns the first lines of the Java tool and of ours. Tries again if a status message moved a limit meanwhile."""
    for _ in range(10):
        before, theirs, ours = _our_view(driver, option), _their_view(driver, sample, name), _our_view(driver, option)
        if before == ours:
            return theirs, ours
    pytest.fail("the counters continue to change")


def _our_view(driver, option):
    return run("streams", "--dir", driver.directory, *option).stdout.splitlines()[:2]


def _their_view(driver, sample, name):
    with sample(driver, name) as tool:
        return [tool.process.read(_START_TIMEOUT_S).rstrip("\n") for _ in range(2)]


@each_driver
def test_java_samples_and_our_commands_end_after_a_kill_of_the_driver(kind, start_driver, sample):
    """06-24, 06-25 (9.6): each client ends by itself, and prints the age of the driver's heartbeat"""
    driver = start_driver(kind)
    where = channel()
    options = ["--dir", driver.directory, "-c", where, "--driver-timeout", _DRIVER_TIMEOUT_MS / 1000]
    with (
        Command("sub", *options) as sub,
        Command("pub", *options, "--interval", 0.1) as pub,
        sample(driver, "BasicSubscriber", channel=where, driver_timeout_ms=_DRIVER_TIMEOUT_MS) as their_sub,
        sample(driver, "BasicPublisher", channel=where, driver_timeout_ms=_DRIVER_TIMEOUT_MS) as their_pub,
    ):
        sub.wait_for("<<Hello World! 3")
        their_sub.wait_for("<<Hello World! ")
        their_pub.wait_for("yay!")
        driver.kill()
        for ours in (sub, pub):
            assert ours.end(_TIMEOUT_S) == 1
            assert re.search(r"^ERROR: MediaDriver keepalive: age=\d+ms > timeout=2000ms", ours.errors())
        for theirs in (their_sub, their_pub):
            assert theirs.process.wait(_TIMEOUT_S) != 0
            assert re.search(r"keepalive: age=\d+ms > timeout=2000ms", theirs.process.output())


@pytest.mark.parametrize("kind", ["ours", "java"])
def test_java_samples_and_our_commands_end_after_a_clean_end_of_the_driver(kind, start_driver, sample):
    """06-24, 06-26 (9.7)"""
    driver = start_driver(kind)
    where = channel()
    with (
        sample(driver, "BasicSubscriber", channel=where) as theirs,
        Command("pub", "--dir", driver.directory, "-c", where, "--interval", 0.1) as ours,
    ):
        theirs.wait_for("<<Hello World! ")
        driver.process.signal(signal.SIGINT)
        assert ours.end(_TIMEOUT_S) == 1
        assert re.search(r"^ERROR: MediaDriver has been shutdown", ours.errors())
        assert theirs.process.wait(_TIMEOUT_S) != 0
        assert "has been shutdown" in theirs.process.output()


@pytest.mark.parametrize("kind", ["ours", "c"])
def test_our_command_and_the_java_tool_print_the_same_loss_report(kind, start_driver, sample):
    """06-5, 06-23 (9.11): the loss report of our driver and that of the C driver"""
    lossy = {
        "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "loss",
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS": "rate=0.05|seed=3|recv-msg-mask=0x3",
    }
    driver = start_driver(kind, lossy)
    where, count = channel(), 20_000
    with Command("rate", "--dir", driver.directory, "-c", where, "-m", count) as rate:
        rate.wait_for("Subscription channel status")
        sent = run("rate", "--publish", "--dir", driver.directory, "-c", where, "-m", count, "-L", 500, "--linger", 2)
        assert sent.exit_code == 0
        assert rate.end(_TIMEOUT_S) == 0
    with sample(driver, "LossStat") as tool:
        tool.wait_for("#OBSERVATION_COUNT,TOTAL_BYTES_LOST")
        theirs = tool.process.read(_START_TIMEOUT_S).rstrip("\n").split(",")
        tool.wait_for("1 loss entries")
    header, ours, total = run("loss", "--dir", driver.directory).stdout.splitlines()
    assert header.startswith("OBSERVATION_COUNT")
    assert total == "1 entries read"
    fields = ours.split(",")
    assert [*fields[:2], *fields[4:]] == [*theirs[:2], *theirs[4:]]
    assert int(fields[0]) > 0
    assert fields[6] == where

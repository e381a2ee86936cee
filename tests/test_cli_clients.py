"""Tests of the defaults, options, output and end of ``aeron pub`` and ``aeron sub``."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.conftest import eventually

import aeron
from aeron.cli.commands import aeron as commands
from commands import Command, driver_directory, run, running_driver

CHANNEL = "aeron:ipc?term-length=64k"
NOT_CONNECTED = "Offer failed because publisher is not connected to a subscriber"


@pytest.fixture(scope="module")
def driver() -> Iterator[aeron.MediaDriver]:
    with (
        driver_directory() as directory,
        aeron.MediaDriver(
            dir=directory,
            timer_interval_ns=50_000_000,
            # The timeout is much longer than half a second, the interval at which clients write their heartbeat.
            client_liveness_timeout_ns=3_000_000_000,
            publication_unblock_timeout_ns=4_000_000_000,
            publication_linger_timeout_ns=10_000_000,
            counter_free_to_reuse_timeout_ns=1_000_000,
        ) as driver,
    ):
        yield driver


@pytest.fixture(autouse=True)
def nothing_is_left_behind(driver: aeron.MediaDriver) -> Iterator[None]:
    """Checks after each test that the driver has freed the counters of ended clients and deleted their logs (06-27)."""
    before = _left(driver.dir)
    yield
    deadline = time.monotonic() + 15
    while _left(driver.dir) != before:
        assert time.monotonic() < deadline, _left(driver.dir)
        time.sleep(0.02)


def _left(directory: str) -> tuple[list[str], list[Path]]:
    with aeron.CncFile(directory) as cnc:
        labels = [counter.label for counter in cnc.counters() if counter.type_id != 0]
    return labels, list((Path(directory) / "publications").iterdir())


def subscriber(driver: aeron.MediaDriver, *arguments: object) -> Command:
    return Command("sub", "--dir", driver.dir, "-c", CHANNEL, *arguments)


# ---- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["pub", "sub"])
def test_the_defaults_are_the_same_as_in_aerons_samples(command: str) -> None:
    """06-13"""
    defaults = _defaults(command)
    assert defaults["channel"] == "aeron:udp?endpoint=localhost:20121"
    assert defaults["stream_id"] == 1001
    assert defaults["linger_s"] == 0
    if command == "pub":
        assert (defaults["messages"], defaults["length"], defaults["interval_s"]) == (10_000_000, "32", 1.0)


@pytest.mark.parametrize(
    "arguments",
    [["pub"], ["rate", "--publish"], ["ping", "--ping-channel", CHANNEL, "--pong-channel", CHANNEL]],
    ids=lambda arguments: arguments[0],
)
def test_a_length_above_the_maximum_message_length_is_an_error_of_one_line(
    driver: aeron.MediaDriver, arguments: list[str]
) -> None:
    channel = [] if arguments[0] == "ping" else ["-c", CHANNEL]
    result = run(*arguments, "--dir", driver.dir, *channel, "-m", "1", "-L", "99999999999")
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: --length=99999999999 is longer than max_message_length 8192 of this stream: "
        "give a shorter --length, or a channel with a larger term-length\n"
    )


@pytest.mark.parametrize("command", ["pub", "sub"])
def test_all_clients_have_the_common_options(command: str) -> None:
    """06-13"""
    spelled = {name for option in _command(command).params for name in option.opts}
    shared = {"--dir", "-c", "--channel", "-s", "--stream", "-m", "--messages", "-L", "--length", "--linger"}
    assert shared | {"--embedded", "--driver-timeout"} <= spelled


@pytest.mark.parametrize(
    "command",
    ["pub", "sub", "ping", "pong", "rate", "top", "stat", "errors", "loss", "streams", "info", "inspect", "demo"],
)
def test_every_command_has_a_help_text(command: str) -> None:
    """06-13"""
    for option in ("-h", "--help"):
        result = run(command, option)
        assert result.exit_code == 0
        assert f"Usage: aeron {command}" in result.stdout
    assert command in run("--help").stdout
    assert all(option.help for option in _command(command).params if isinstance(option, click.Option))


def _command(name: str) -> click.Command:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return command


def _defaults(command: str) -> dict[str, object]:
    return {option.name: option.default for option in _command(command).params}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-s", 2**31], "2147483648 is not in the range"),
        (["-s", "x"], "'x' is not a valid integer"),
        (["-m", "-1"], "-1 is not in the range"),
        (["-L", "32q"], "32q"),
        (["-L", "-5"], "-5"),
        (["--interval", "-1"], "-1.0 is not in the range"),
        (["--driver-timeout", "0"], "0.0 is not in the range"),
    ],
)
def test_a_value_out_of_range_is_refused(arguments: list[object], says: str) -> None:
    """06-13"""
    result = run("pub", *arguments)
    assert result.exit_code == 1
    assert says in result.stderr
    assert result.stdout == ""


# ---- pub -----------------------------------------------------------------------------------------------------------


def test_messages_are_numbered_and_sent_once_a_second(driver: aeron.MediaDriver) -> None:
    """06-14: without a subscriber each offer is reported as failed, but the exit status is 0"""
    start = time.monotonic()
    result = run("pub", "--dir", driver.dir, "-c", "aeron:ipc", "-s", 77, "-m", 2)
    assert 1 <= time.monotonic() - start < 2.5
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "Publishing to channel aeron:ipc on Stream ID 77",
        "Publication channel status 1",
        f"offering 0/2 - {NOT_CONNECTED}",
        "No active subscribers detected",
        f"offering 1/2 - {NOT_CONNECTED}",
        "No active subscribers detected",
        "Done sending.",
    ]


@pytest.mark.parametrize("kind", [[], ["--exclusive"]])
def test_a_subscriber_receives_every_message_with_the_requested_length(
    driver: aeron.MediaDriver, kind: list[str]
) -> None:
    """06-13, 06-14: with options for stream, count, length, interval, linger and driver timeout"""
    with aeron.connect(driver) as client:
        subscription = client.add_subscription(CHANNEL, -5)
        options = ["-s", "-5", "-m", 3, "-L", 100, "--interval", 0.01, "--linger", 0.15, "--driver-timeout", 5]
        start = time.monotonic()
        result = run("pub", "--dir", driver.dir, "-c", CHANNEL, *options, *kind)
        assert time.monotonic() - start > 0.15
        assert result.stdout.splitlines()[2:] == [
            *(f"offering {number}/3 - yay!" for number in range(3)),
            "Done sending.",
            "Lingering for 150000000 nanoseconds",
        ]
        messages: list[bytes] = []
        eventually(lambda: messages.extend(subscription.poll_batch().to_list()) or len(messages) >= 3)
        assert messages == [f"Hello World! {number}".encode().ljust(100) for number in range(3)]


def test_back_pressure_is_reported(driver: aeron.MediaDriver) -> None:
    """06-14: the subscriber does not poll, and the term window is 32 KiB"""
    with aeron.connect(driver) as client:
        subscription = client.add_subscription(CHANNEL, 78)
        result = run("pub", "--dir", driver.dir, "-c", CHANNEL, "-s", 78, "-m", 50, "-L", "1k", "--interval", 0)
        assert "offering 0/50 - yay!" in result.stdout
        assert "offering 49/50 - Offer failed due to back pressure" in result.stdout
        subscription.close()


def test_a_message_fills_the_mtu_on_request_and_may_have_the_maximum_length_but_not_more(
    driver: aeron.MediaDriver,
) -> None:
    """06-16"""
    with aeron.connect(driver) as client:
        subscription = client.add_subscription(CHANNEL, 79)
        once = ["pub", "--dir", driver.dir, "-c", CHANNEL, "-s", 79, "-m", 1]
        assert "Using message of 1376 bytes" in run(*once, "--fill-mtu").stdout
        assert run(*once, "-L", 8192).exit_code == 0
        refused = run(*once, "-L", 8193)
        assert refused.exit_code == 1
        assert "8193" in refused.stderr
        assert "8192" in refused.stderr
        received: list[bytes] = []
        eventually(lambda: received.extend(subscription.poll_batch().to_list()) or len(received) >= 2)
        assert [len(message) for message in received] == [1376, 8192]


def test_the_error_for_a_refused_channel_has_the_text_of_the_driver(driver: aeron.MediaDriver) -> None:
    """06-9: the driver counts an invalid channel at each attempt, as one distinct error (document 06, section 9.10)"""
    for times in (1, 2):
        result = run("pub", "--dir", driver.dir, "-c", "aeron:ipc?mtu=100", "-m", 1)
        assert result.exit_code == 1
        assert "mtuLength" in result.stderr
        shown = run("errors", "--dir", driver.dir).stdout
        assert f"{times} observations from" in shown
        assert shown.endswith("\n1 distinct errors observed.\n")
        errors = run("stat", "--dir", driver.dir, "--once", "type=^0$", "identity=^15$").stdout
        assert re.search(rf" {times} - Errors: ", errors)


def test_a_publisher_ends_cleanly_at_a_signal(driver: aeron.MediaDriver) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with Command("pub", "--dir", driver.dir, "-c", CHANNEL) as publisher:
            publisher.wait_for("offering 0/10000000")
            publisher.send(number)
            assert publisher.end() == 0
            assert publisher.output().endswith("Shutting down...\n")
            assert publisher.errors() == ""


# ---- sub -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_subscriber_prints_images_and_messages_until_a_signal(driver: aeron.MediaDriver, number: int) -> None:
    """06-15"""
    with subscriber(driver, "-s", 90) as sub:
        sub.wait_for("Subscription channel status 1\n")
        published = run("pub", "--dir", driver.dir, "-c", CHANNEL, "-s", 90, "-m", 2, "-L", 1, "--interval", 0.01)
        assert "offering 1/2 - yay!" in published.stdout
        sub.wait_for("Unavailable image")
        sub.send(signal.Signals(number))
        assert sub.end() == 0
        text = sub.output()
        assert sub.errors() == ""
    session = re.search(r"sessionId=(-?\d+)", text)[1]
    assert text.splitlines() == [
        f"Subscribing to channel {CHANNEL} on Stream ID 90",
        "Subscription channel status 1",
        f"Available image on {CHANNEL} streamId=90 sessionId={session} mtu=1408 term-length=65536 from aeron:ipc",
        f"Message to stream 90 from session {session} (14 bytes) <<Hello World! 0>>",
        f"Message to stream 90 from session {session} (14 bytes) <<Hello World! 1>>",
        f"Unavailable image on {CHANNEL} streamId=90 sessionId={session}",
        "Shutting down...",
    ]


def test_fragmented_messages_are_assembled(driver: aeron.MediaDriver) -> None:
    """06-15: bytes that are not text are escaped, and `-L` limits the printed bytes of a message"""
    with subscriber(driver, "-m", 3, "-L", 20) as sub, aeron.connect(driver) as client:
        sub.wait_for("Subscription channel status")
        publication = client.add_publication(CHANNEL, 1001)
        publication.wait_connected(timeout=5)
        publication.publish(b"Hello World! 0".ljust(8000), timeout=5)
        publication.publish(b"\xff\x00caf\xc3\xa9", timeout=5)
        publication.publish(b"", timeout=5)
        assert sub.end() == 0
        first, second, third = re.findall(r"Message .*", sub.output())
    assert first.endswith("(8000 bytes) <<Hello World! 0      >>")
    assert second.endswith("(7 bytes) <<\\xff\\x00café>>")
    assert third.endswith("(0 bytes) <<>>")


def test_a_subscriber_lingers_and_ends_after_the_given_number_of_messages(driver: aeron.MediaDriver) -> None:
    """06-13"""
    with subscriber(driver, "-m", 2, "--linger", 1) as sub, aeron.connect(driver) as client:
        sub.wait_for("Subscription channel status")
        publication = client.add_publication(CHANNEL, 1001)
        publication.wait_connected(timeout=5)
        start = time.monotonic()
        # One call sends all five messages, because the subscriber may end after the second message.
        assert publication.offer_batch([b"%d" % number for number in range(5)]) == 5
        sub.wait_for("<<1>>")
        assert sub.end() == 0
        assert time.monotonic() - start >= 1
        assert sub.output().count("Message to stream") == 2


def test_a_subscriber_ends_without_an_error_if_its_output_pipe_is_closed(driver: aeron.MediaDriver) -> None:
    pipe = f"{sys.executable} -m aeron sub --dir {driver.dir} -c {CHANNEL} | head -n 2"
    with Command("pub", "--dir", driver.dir, "-c", CHANNEL, "--interval", "0.02") as pub:
        shell = ["bash", "-o", "pipefail", "-c", pipe]
        done = subprocess.run(shell, check=False, capture_output=True, text=True, timeout=15)
        pub.send(signal.SIGINT)
        pub.end()
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout.splitlines()[1] == "Subscription channel status 1"


# ---- the driver ----------------------------------------------------------------------------------------------------


def test_the_error_without_a_driver_names_the_command_that_starts_one(tmp_path: Path) -> None:
    """06-9"""
    for command in ("pub", "sub"):
        result = run(command, "--dir", tmp_path / "none", "--driver-timeout", 0.1)
        assert result.exit_code == 1
        assert "CnC file not created" in result.stderr
        assert f"start one with 'aeron driver --dir {tmp_path}/none', or give --embedded" in result.stderr


def test_an_embedded_driver_runs_as_long_as_the_command() -> None:
    with driver_directory() as directory:
        result = run("pub", "--embedded", "--dir", directory, "-c", "aeron:ipc", "-m", 1)
        assert result.exit_code == 0
        assert "Done sending." in result.stdout
        assert run("info", "--dir", directory, "-t", 1, "-T").exit_code == 1


def test_an_embedded_driver_refuses_the_directory_of_a_running_driver(driver: aeron.MediaDriver) -> None:
    result = run("pub", "--embedded", "--dir", driver.dir, "-c", "aeron:ipc", "-m", 1)
    assert result.exit_code == 1
    assert f"Active media driver detected: {driver.dir}" in result.stderr
    assert "Leave out --embedded" in result.stderr


def test_the_environment_configures_clients_and_options_override_it(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    """05-55, 06-10"""
    send = ["pub", "-c", "aeron:ipc", "-m", 1]
    assert run(*send, AERON_DIR=driver.dir).exit_code == 0
    assert run(*send, "--dir", driver.dir, AERON_DIR=str(tmp_path)).exit_code == 0
    refused = run(*send, "--dir", tmp_path, AERON_DIR=driver.dir, AERON_DRIVER_TIMEOUT="50")
    assert str(tmp_path) in refused.stderr
    bad = run(*send, "--dir", driver.dir, AERON_DRIVER_TIMEOUT="soon")
    assert bad.exit_code == 1
    assert "AERON_DRIVER_TIMEOUT=soon" in bad.stderr
    start = time.monotonic()
    assert run(*send, "--dir", tmp_path, "--driver-timeout", 0.1, AERON_DRIVER_TIMEOUT="9000").exit_code == 1
    assert time.monotonic() - start < 3


def test_the_environment_sets_the_name_of_the_client(driver: aeron.MediaDriver) -> None:
    """05-55: the label of the client's heartbeat counter has the name"""
    with Command("sub", "-c", "aeron:ipc", AERON_DIR=driver.dir, AERON_CLIENT_NAME="pricing") as sub:
        sub.wait_for("Subscription channel status")
        deadline = time.monotonic() + 5
        while not re.search(r"client-heartbeat: id=\d+ name=pricing", _heartbeats(driver)):
            assert time.monotonic() < deadline, _heartbeats(driver)
            time.sleep(0.05)
        sub.send(signal.SIGINT)
        sub.end()


def _heartbeats(driver: aeron.MediaDriver) -> str:
    return run("stat", "--dir", driver.dir, "--once", "type=^11$").stdout


def test_the_driver_removes_a_killed_subscriber_after_the_client_liveness_timeout(driver: aeron.MediaDriver) -> None:
    """06-27: the publisher is then not connected, and the driver increments counter 24"""
    timeouts = _counter(driver, 24)
    with subscriber(driver, "-s", 95) as sub, aeron.connect(driver) as client:
        publication = client.add_publication(CHANNEL, 95)
        publication.wait_connected(timeout=15)
        sub.send(signal.SIGKILL)
        assert sub.end() == -signal.SIGKILL
        eventually(lambda: not publication.is_connected)
    assert _counter(driver, 24) == timeouts + 1


def _counter(driver: aeron.MediaDriver, id: int) -> int:
    with aeron.CncFile(driver.dir) as cnc:
        return next(counter.value for counter in cnc.counters() if counter.id == id)


def test_clients_end_after_a_kill_of_the_driver_and_print_the_age_of_its_heartbeat() -> None:
    """06-25, 06-27: publisher and subscriber end by themselves at most one second after the driver timeout"""
    # By default a driver writes its heartbeat once per second. With a driver timeout of 1 s, a client could then regard
    # the live driver as dead.
    with driver_directory() as directory, running_driver(directory, AERON_TIMER_INTERVAL="100ms") as driver:
        options = ["--dir", directory, "-c", CHANNEL, "--driver-timeout", 1]
        with Command("sub", *options) as sub, Command("pub", *options, "--interval", 0.05) as pub:
            sub.wait_for("<<Hello World! 3")
            driver.send(signal.SIGKILL)
            killed = time.monotonic()
            for client in (pub, sub):
                assert client.end(5) == 1
                assert time.monotonic() - killed < 1 + 1 + _SLACK_S
                age, timeout = map(int, re.search(KEEPALIVE, client.errors()).groups())
                assert age > timeout == 1000
                assert "Traceback" not in client.errors()
        shutil.rmtree(directory)


KEEPALIVE = r"^ERROR: .*MediaDriver.* keepalive: age=(\d+)ms > timeout=(\d+)ms"

_SLACK_S = 1.0
"""Seconds that are added to the time limits of processes on a busy machine."""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 2), (signal.SIGTERM, 15)])
def test_clients_end_immediately_after_a_clean_end_of_the_driver(number: signal.Signals, status: int) -> None:
    """06-26, 06-27: the clients end long before their driver timeout"""
    with driver_directory() as directory, running_driver(directory) as driver:
        options = ["--dir", directory, "-c", CHANNEL]
        with Command("sub", *options) as sub, Command("pub", *options, "--interval", 0.05) as pub:
            sub.wait_for("<<Hello World! 3")
            driver.send(number)
            assert driver.end(3) == status
            ended = time.monotonic()
            for client in (pub, sub):
                assert client.end(5) == 1
                assert time.monotonic() - ended < 1 + _SLACK_S
                assert re.search("^ERROR: .*MediaDriver.* has been shutdown", client.errors())
        assert driver.output() == "Shutting down driver...\n"
        assert driver.errors() == ""
        shutil.rmtree(directory)


# ---- aeron driver --------------------------------------------------------------------------------------------------


def test_the_directory_option_overrides_all_other_sources(tmp_path: Path) -> None:
    """05-55"""
    properties = tmp_path / "driver.properties"
    properties.write_text(f"aeron.dir={tmp_path}/file\naeron.threading.mode=SHARED\n")
    with (
        driver_directory() as directory,
        running_driver(
            directory, f"-Daeron.dir={tmp_path}/define", properties, AERON_DIR=f"{tmp_path}/environment"
        ) as driver,
    ):
        assert aeron.is_driver_active(directory)
        driver.send(signal.SIGTERM)
        assert driver.end() == 15
    assert [path.name for path in tmp_path.iterdir()] == ["driver.properties"]


@pytest.mark.parametrize(
    ("arguments", "program"), [(["driver"], "aeronmd"), (["archive", "run"], "aeronarchive")], ids=["driver", "archive"]
)
def test_the_native_programs_import_only_the_native_module(arguments: list[str], program: str) -> None:
    code = f"""
import sys
from aeron.cli import main

sys.argv = ["aeron", *{arguments}, "--help"]
try:
    main()
except SystemExit as end:
    print(end.code, sorted({{"click", "rich", "numpy", "aeron.cli.commands"}} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "0 []"
    assert result.stdout.startswith(f"Usage: {program}")


def test_a_second_driver_on_a_directory_is_refused(driver: aeron.MediaDriver) -> None:
    with Command("driver", "--dir", driver.dir) as second:
        assert second.end() == 1
        assert f"Active media driver detected: {driver.dir}" in second.errors()
    assert aeron.is_driver_active(driver.dir)

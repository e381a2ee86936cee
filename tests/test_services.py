"""Tests of the programs as services: what they tell the service manager, their reload, their end and their crashes."""

from __future__ import annotations

import configparser
import ctypes
import hmac
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.test_aeronarchive import settings
from tests.test_orderly_close import line, receiver

import aeron
import hooks
from commands import run
from ports import free_port

_PROGRAM = "import sys; from aeron import _aeron; raise SystemExit(getattr(_aeron, sys.argv.pop(1) + '_main')())"
_PATIENCE = 20.0
_WATCHDOG_USEC = 400_000
_INTERVAL = _WATCHDOG_USEC / 2e6
"""Time between two signs of life, in seconds."""


class Service:
    """A program whose notifications a socket of the test receives, as systemd would."""

    def __init__(
        self, name: str, *arguments: object, watchdog: int = 0, is_abstract: bool = False, **variables: str
    ) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # The path of a socket has at most 107 bytes. Pytest's directories are too long for it.
        self._place = tempfile.TemporaryDirectory(prefix="aeron-test-")
        address = f"{self._place.name}/notify"
        if is_abstract:
            address = f"@{address}"
        self._socket.bind(address.replace("@", "\0"))
        environment = os.environ | {"NOTIFY_SOCKET": address, "AERON_LOG_LEVEL": "info"} | variables
        if watchdog:
            environment["WATCHDOG_USEC"] = str(watchdog)
        self.received: list[str] = []
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, name, *map(str, arguments)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def notification(self, timeout: float = _PATIENCE) -> str | None:
        """Returns the next notification; `None` if there is none within `timeout` seconds."""
        self._socket.settimeout(timeout)
        try:
            self.received.append(self._socket.recv(4096).decode().rstrip("\n"))
        except (TimeoutError, BlockingIOError):
            return None
        return self.received[-1]

    def wait_for(self, text: str) -> str:
        """Returns the next notification with `text`."""
        while True:
            got = self.notification()
            assert got is not None, f"no {text} within {_PATIENCE} s, but {self.received}"
            if text in got:
                return got

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Sends a signal. Returns the exit status and the standard error output."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=_PATIENCE)
        return self.process.returncode, errors

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._socket.close()
        self._place.cleanup()


Start = Callable[..., Service]


@pytest.fixture
def service() -> Iterator[Start]:
    """Returns a function that starts a program. The fixture kills it after the test."""
    started: list[Service] = []

    def start(*arguments: object, watchdog: int = 0, is_abstract: bool = False, **variables: str) -> Service:
        started.append(Service(*map(str, arguments), watchdog=watchdog, is_abstract=is_abstract, **variables))
        return started[-1]

    yield start
    for each in started:
        each.close()


def has_line(errors: str, *parts: str) -> bool:
    return any(all(part in line for part in parts) for line in errors.splitlines())


# ---- the service manager ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "is_abstract", [False, pytest.param(True, marks=pytest.mark.skipif(sys.platform != "linux", reason="of Linux"))]
)
def test_a_driver_tells_that_it_is_ready_when_it_serves_clients_and_that_it_stops(
    service: Start, tmp_path: Path, is_abstract: bool
) -> None:
    driver = service("aeronmd", "--dir", tmp_path / "md", is_abstract=is_abstract)
    first = driver.wait_for("READY=1")
    assert driver.received == [first]
    assert first.splitlines() == ["READY=1", f"STATUS=serving clients in {tmp_path / 'md'}"]
    aeron.connect(tmp_path / "md").close()
    status, _ = driver.end()
    assert status == signal.SIGTERM
    assert driver.wait_for("STOPPING=1").splitlines() == ["STOPPING=1", "STATUS=stopping"]


def test_an_archive_is_ready_when_it_serves_requests_and_says_on_what_it_waits_before(
    service: Start, tmp_path: Path
) -> None:
    archive = service("aeronarchive", *settings(tmp_path))
    assert archive.notification() == f"STATUS=waiting for the media driver in {tmp_path / 'md'}"
    with aeron.MediaDriver(dir=tmp_path / "md"):
        assert archive.notification() == f"STATUS=opening {tmp_path / 'archive'}"
        assert archive.notification() == f"READY=1\nSTATUS=serving requests for {tmp_path / 'archive'}"
        with aeron.connect(tmp_path / "md") as client, aeron.connect_archive(client):
            pass
        status, _ = archive.end()
        assert status == signal.SIGTERM
        archive.wait_for("STOPPING=1")


def test_without_a_watchdog_of_the_manager_there_are_no_signs_of_life(service: Start, tmp_path: Path) -> None:
    driver = service("aeronmd", "--dir", tmp_path / "md")
    driver.wait_for("READY=1")
    assert driver.notification(timeout=4 * _INTERVAL) is None


def test_a_manager_that_does_not_read_delays_no_driver(service: Start, tmp_path: Path) -> None:
    """The queue of a socket has room for a few messages. The driver sends 500 signs of life a second here."""
    driver = service("aeronmd", "--dir", tmp_path / "md", watchdog=4_000)
    driver.wait_for("READY=1")
    with aeron.connect(tmp_path / "md") as client:
        begin = time.monotonic()
        while time.monotonic() - begin < 1:
            client.add_counter(1001, label="the driver responds").close()
    status, _ = driver.end()
    assert status == signal.SIGTERM


_SEIZE, _INTERRUPT = 0x4206, 0x4207
_WALL = 0x40000000


@contextmanager
def stopped(process: int, thread_name: str) -> Iterator[None]:
    """Stops one thread of a process, as a debugger does. The other threads go on."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    names = {(task / "comm").read_text().rstrip("\n"): int(task.name) for task in tasks}
    thread = process if thread_name == _MAIN_THREAD else names[thread_name[:15]]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(_SEIZE, thread, None, None) != 0:
        pytest.skip(f"this system does not allow ptrace: {os.strerror(ctypes.get_errno())}")
    assert libc.ptrace(_INTERRUPT, thread, None, None) == 0
    os.waitpid(thread, _WALL)
    try:
        yield
    finally:
        assert libc.ptrace(17, thread, None, None) == 0  # PTRACE_DETACH: the thread goes on


_MAIN_THREAD = "main thread"
_NETWORK_AND_RESOURCES = ["aeron-md-nra", "receiver", "sender"]
_ARCHIVE_THREADS = ["archive-recorder", "archive-replayer"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs ptrace")
@pytest.mark.parametrize("thread", [_MAIN_THREAD, *_NETWORK_AND_RESOURCES])
def test_the_signs_of_life_of_a_driver_stop_while_one_agent_is_stuck(
    service: Start, tmp_path: Path, thread: str
) -> None:
    driver = service("aeronmd", "--dir", tmp_path / "md", watchdog=_WATCHDOG_USEC)
    watched(driver, thread)


@pytest.mark.skipif(sys.platform != "linux", reason="needs ptrace")
@pytest.mark.parametrize("thread", [_MAIN_THREAD, *_ARCHIVE_THREADS, "conductor", *_NETWORK_AND_RESOURCES])
def test_the_signs_of_life_of_an_archive_stop_while_one_agent_of_it_or_its_driver_is_stuck(
    service: Start, tmp_path: Path, thread: str
) -> None:
    given = settings(tmp_path, "-Daeron.archive.threading.mode=DEDICATED")
    watched(service("aeronarchive", "--with-driver", *given, watchdog=_WATCHDOG_USEC), thread)


def watched(service: Service, thread: str) -> None:
    service.wait_for("READY=1")
    for _ in range(3):
        service.wait_for("WATCHDOG=1")
    # The program does not send more often than needed.
    signs = [got for got in service.received if got == "WATCHDOG=1"]
    assert len(signs) <= 1 + (time.monotonic() - service.begin) / _INTERVAL
    with stopped(service.process.pid, thread):
        while service.notification(timeout=0) is not None:
            pass
        # One more sign may tell of duty cycles before the stop.
        begin, count = time.monotonic(), 0
        while (rest := begin + 5 * _INTERVAL - time.monotonic()) > 0:
            count += service.notification(timeout=rest) is not None
        assert count <= 1
    service.wait_for("WATCHDOG=1")


# ---- units -----------------------------------------------------------------------------------------------------------

_UNITS = sorted((Path(__file__).parents[1] / "services").glob("*.service"))


def unit(name: str) -> dict[str, str]:
    """Returns the values of the section `Service` of a unit."""
    [path] = [path for path in _UNITS if path.stem == name]
    parser = configparser.ConfigParser(interpolation=None, delimiters="=")
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    parser.read(path)
    return dict(parser["Service"])


def test_systemd_finds_nothing_wrong_in_the_units(tmp_path: Path) -> None:
    """Checks only the text of the units: systemd is not the first process where tests run."""
    if shutil.which("systemd-analyze") is None:
        reason = "tests of units need Debian's package systemd"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    for name in ("aeron", "aeronmd", "aeronarchive"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    for path in _UNITS:
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/aeron/bin", str(tmp_path)))
    command = ["systemd-analyze", "--man=no", "verify", *(str(tmp_path / path.name) for path in _UNITS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_commands_of_the_units_run_and_end_as_the_units_say(service: Start, tmp_path: Path) -> None:
    """Runs the command lines of both units with other directories, as systemd would."""
    channels = [each for each in settings(tmp_path) if each.startswith("-D")]
    (tmp_path / "aeronmd.properties").write_text("aeron.threading.mode=SHARED\n")
    (tmp_path / "aeronarchive.properties").write_text("".join(f"{each[2:]}\n" for each in channels))
    places = {"/dev/shm/aeron": "md", "/var/lib/aeron-archive": "archive", "/etc/aeron": "."}

    def command(text: str) -> list[str]:
        for installed, place in places.items():
            text = text.replace(installed, str(tmp_path / place))
        return text.removeprefix("/opt/aeron/bin/").split()

    running = []
    for name in ("aeronmd", "aeronarchive"):
        assert unit(name)["Type"] == "notify"
        running.append((name, service(*command(unit(name)["ExecStart"]))))
        running[-1][1].wait_for("READY=1")
    for name, program in reversed(running):
        result = run(*command(unit(name)["ExecReload"])[1:])
        assert (result.exit_code, result.stdout) == (0, "reloaded: log level info\n")
        begin = time.monotonic()
        status, _ = program.end()
        assert str(status) in unit(name)["SuccessExitStatus"].split()
        assert time.monotonic() - begin < float(unit(name)["TimeoutStopSec"])


def test_the_units_have_what_the_guide_explains() -> None:
    guide = (Path(__file__).parents[1] / "docs" / "how-to" / "services.md").read_text()
    assert [path.stem for path in _UNITS] == ["aeronarchive", "aeronmd"]
    for path in _UNITS:
        values = unit(path.stem)
        assert values["SuccessExitStatus"].split() == [str(int(signal.SIGINT)), str(int(signal.SIGTERM))]
        assert values["Restart"] == "on-failure"
        for name in (
            "User",
            "SuccessExitStatus",
            "Restart",
            "LimitNOFILE",
            "LimitMEMLOCK",
            "WatchdogSec",
            "TimeoutStopSec",
        ):
            assert name in values
            assert name in guide
        assert "RemoveIPC" in guide
        assert "system user" in path.read_text()
    assert "After=aeronmd.service" in _UNITS[0].read_text().splitlines()
    start = unit("aeronmd")["ExecStart"].split()
    assert float(start[start.index("--drain") + 1]) < float(unit("aeronmd")["TimeoutStopSec"])


# ---- reload ----------------------------------------------------------------------------------------------------------


def test_a_driver_reloads_the_level_of_the_log_at_a_hangup(service: Start, tmp_path: Path) -> None:
    properties = tmp_path / "md.properties"
    properties.write_text("aeron.log.level=off\n")
    driver = service("aeronmd", "--dir", tmp_path / "md", properties)
    driver.wait_for("READY=1")
    properties.write_text("aeron.log.level=info\naeron.mtu.length=4096\n")
    driver.process.send_signal(signal.SIGHUP)
    assert driver.wait_for("RELOADING=1").splitlines()[1].startswith("MONOTONIC_USEC=")
    reloaded = "log level info; only a restart applies the changes of mtu_length"
    assert driver.wait_for("READY=1").endswith(f"serving clients in {tmp_path / 'md'}; reloaded: {reloaded}")
    _, errors = driver.end()
    assert has_line(errors, "INFO aeron.driver reloaded: log level info; only a restart")


def test_a_command_reloads_a_driver_and_a_wrong_file_is_one_error_and_changes_nothing(
    service: Start, tmp_path: Path
) -> None:
    properties = tmp_path / "md.properties"
    properties.write_text("aeron.log.level=info\n")
    driver = service("aeronmd", "--dir", tmp_path / "md", properties)
    driver.wait_for("READY=1")
    result = run("reload", "--dir", tmp_path / "md")
    assert (result.exit_code, result.stdout) == (0, "reloaded: log level info\n")
    properties.write_text("aeron.log.level=loud\n")
    result = run("reload", "--dir", tmp_path / "md")
    reason = "not reloaded, nothing has changed: AERON_LOG_LEVEL=loud is not off, error, warn or info"
    assert (result.exit_code, result.stderr) == (1, f"Error: {reason}\n")
    assert "not reloaded: AERON_LOG_LEVEL=loud" in driver.wait_for("not reloaded")
    assert reason in run("errors", "--dir", tmp_path / "md").stdout
    assert not (tmp_path / "md" / "reload").exists()
    _, errors = driver.end()
    assert [line for line in errors.splitlines() if " ERROR " in line] == [
        line for line in errors.splitlines() if line.endswith(f"ERROR aeron.driver {reason}")
    ]
    assert has_line(errors, "ended: signal 15")


def test_a_reload_needs_a_program_that_responds(tmp_path: Path) -> None:
    with aeron.MediaDriver(dir=tmp_path / "md"):
        result = run("reload", "--dir", tmp_path / "md", "--timeout", 0.1)
        assert result.exit_code == 1
        assert "no response within 0.1 s" in result.stderr
        assert not (tmp_path / "md" / "reload").exists()
    result = run("reload", "--archive", tmp_path)
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path} has no archive\n")


def user(name: str, role: str) -> str:
    return f'[[user]]\nname = "{name}"\nrole = "{role}"\nkey = "{"00" * 16}"\n'


def prove(name: str) -> Callable[[bytes | None], bytes]:
    return lambda challenge: name.encode() if challenge is None else hmac.digest(bytes(16), challenge, "sha256")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Returns a users file and a retention file."""
    users, policies = tmp_path / "users.toml", tmp_path / "retention.toml"
    users.write_text(user("ann", "admin"))
    users.chmod(0o600)
    policies.write_text('[[policy]]\nstream_id = 7\nmax_bytes = "1g"\n')
    return users, policies


def started_archive(service: Start, tmp_path: Path, files: tuple[Path, Path]) -> Service:
    users, policies = files
    given = [f"-Daeron.archive.users.file={users}", f"-Daeron.archive.retention.file={policies}"]
    archive = service("aeronarchive", "--with-driver", *settings(tmp_path, *given))
    archive.wait_for("READY=1")
    return archive


def limits(archive: aeron.AeronArchive) -> list[tuple[int | None, int | None]]:
    return [(policy.stream_id, policy.max_bytes) for policy in archive.list_retention()]


def test_an_archive_reloads_its_users_and_its_retention_policies(
    service: Start, tmp_path: Path, files: tuple[Path, Path]
) -> None:
    users, policies = files
    program = started_archive(service, tmp_path, files)
    with aeron.connect(tmp_path / "md") as client:
        with aeron.connect_archive(client, credentials=prove("ann")) as ann:
            assert limits(ann) == [(7, 2**30)]
            with pytest.raises(aeron.ArchiveError, match=r"retention file .*retention\.toml"):
                ann.set_retention(stream_id=9, max_bytes=1)
            with pytest.raises(aeron.AuthenticationRejectedError):
                aeron.connect_archive(client, credentials=prove("bob"))
            users.write_text(user("bob", "admin") + user("ann", "read"))
            policies.write_text('[[policy]]\nstream_id = 8\nmax_bytes = "2g"\n')
            result = run("reload", "--archive", tmp_path / "archive")
            reloaded = "1 retention policies, 2 changed, 2 users, log level info"
            assert (result.exit_code, result.stdout) == (0, f"reloaded: {reloaded}\n")
            assert limits(ann) == [(8, 2**31)]
            # The session is open, and its requests need the role of its user in the new file.
            with pytest.raises(aeron.ArchiveError, match="unauthorised"):
                ann.purge_recording(0)
        with (
            aeron.connect_archive(client, credentials=prove("bob")) as bob,
            pytest.raises(aeron.ArchiveError, match="unknown recording"),
        ):
            bob.purge_recording(0)
    _, errors = program.end()
    assert has_line(errors, "aeron.archive.audit", "retention-file", "stream_id=8 max_bytes=2147483648")
    assert has_line(errors, f"INFO aeron.archive reloaded: {reloaded}")


@pytest.mark.parametrize("wrong", ["users", "policies", "level"])
def test_a_wrong_file_changes_nothing_in_an_archive_and_is_one_error(
    service: Start, tmp_path: Path, files: tuple[Path, Path], wrong: str
) -> None:
    users, policies = files
    program = started_archive(service, tmp_path, files)
    users.write_text(user("bob", "admin") if wrong != "users" else "user = 1\n")
    policies.write_text("[[policy]]\nmax_bytes = 1\n" if wrong != "policies" else "[[policy]]\nmax_bytes = -1\n")
    if wrong == "level":
        users.chmod(0o644)
    program.process.send_signal(signal.SIGHUP)
    reason = program.wait_for("READY=1").partition("not reloaded: ")[2]
    expected = {"users": "names no user", "policies": "max_bytes=-1", "level": "mode 0644"}[wrong]
    assert expected in reason
    with (
        aeron.connect(tmp_path / "md") as client,
        aeron.connect_archive(client, credentials=prove("ann")) as ann,
    ):
        assert limits(ann) == [(7, 2**30)]
    shown = run("archive", "errors", tmp_path / "archive").stdout
    assert shown.count("not reloaded, nothing has changed") == 1
    _, errors = program.end()
    assert sum(" ERROR " in line for line in errors.splitlines()) == 1


def test_a_wrong_retention_file_is_an_error_of_the_start(service: Start, tmp_path: Path) -> None:
    policies = tmp_path / "retention.toml"
    policies.write_text("[[policy]]\nstream_id = 7\n")
    given = settings(tmp_path, f"-Daeron.archive.retention.file={policies}")
    status, errors = service("aeronarchive", "--with-driver", *given).ended()
    assert status == 1
    problem = "policy 1: it has no limit: set max_bytes or max_age_ms, or remove the section"
    assert f"ERROR: retention file {policies}: {problem}" in errors.splitlines()


# ---- the end of a driver ---------------------------------------------------------------------------------------------


_COUNT = 50
_PATIENT = ["-Daeron.publication.linger.timeout=3600s", "-Daeron.publication.connection.timeout=3600s"]
"""Settings of a driver that does not give up a receiver which the test has stopped."""


@contextmanager
def published(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Publishes messages from the driver of a directory to a receiver that is stopped. Yields the receiver."""
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    ended: list[BaseException] = []
    with receiver(channel, _COUNT) as process, aeron.connect(directory, error_handler=ended.append) as client:
        publication = client.add_exclusive_publication(channel, 1)
        publication.wait_connected(timeout=_PATIENCE)
        process.send_signal(signal.SIGSTOP)
        for _ in range(_COUNT):
            publication.publish(bytes(1000), timeout=5)
        yield process


def test_a_driver_with_drain_ends_when_receivers_have_consumed_all_messages(service: Start, tmp_path: Path) -> None:
    driver = service("aeronmd", "--dir", tmp_path / "md", "--drain", 60, *_PATIENT)
    driver.wait_for("READY=1")
    with published(tmp_path / "md") as process:
        driver.process.terminate()
        driver.wait_for("STOPPING=1")
        with pytest.raises(subprocess.TimeoutExpired):
            driver.process.wait(0.5)
        process.send_signal(signal.SIGCONT)
        assert line(process) == str(_COUNT)
        status, errors = driver.ended()
    assert status == signal.SIGTERM
    assert "consumed" not in errors


def test_a_driver_without_drain_does_not_wait_for_receivers(service: Start, tmp_path: Path) -> None:
    driver = service("aeronmd", "--dir", tmp_path / "md")
    driver.wait_for("READY=1")
    with published(tmp_path / "md"):
        status, errors = driver.end()
    assert status == signal.SIGTERM
    assert "consumed" not in errors


def test_a_drain_ends_at_its_limit_and_names_the_stream_that_was_not_consumed(service: Start, tmp_path: Path) -> None:
    driver = service("aeronmd", "--dir", tmp_path / "md", "--drain", 1, *_PATIENT)
    driver.wait_for("READY=1")
    with published(tmp_path / "md"):
        status, errors = driver.end()
    assert status == signal.SIGTERM
    assert has_line(errors, "WARN aeron.driver the driver closed before receivers", "stream 1 ")


def test_a_second_signal_ends_a_drain(service: Start, tmp_path: Path) -> None:
    driver = service("aeronmd", "--dir", tmp_path / "md", "--drain", 3600, *_PATIENT)
    driver.wait_for("READY=1")
    with published(tmp_path / "md"):
        driver.process.terminate()
        driver.wait_for("STATUS=waiting up to 3600 s until receivers have consumed all messages")
        status, errors = driver.end(signal.SIGINT)
    assert status == signal.SIGINT
    assert has_line(errors, "WARN aeron.driver the driver closed before receivers", "stream 1 ")


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "86401"])
def test_a_wrong_drain_is_refused(service: Start, text: str) -> None:
    status, errors = service("aeronmd", "--drain", text).ended()
    assert status == 1
    assert errors.startswith(f"aeronmd: --drain {text} is not a number of seconds from 0 to 86400\n")


# ---- crashes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["conductor", *_NETWORK_AND_RESOURCES])
def test_a_panic_of_an_agent_of_a_driver_is_on_stderr_and_in_the_error_log_and_ends_the_driver(
    service: Start, tmp_path: Path, agent: str
) -> None:
    assert hooks.has_hooks()
    driver = service("aeronmd", "--dir", tmp_path / "md", AERON_TEST_PANIC=agent)
    status, errors = driver.ended()
    assert status == 1
    check_evidence(errors, agent)
    shown = run("errors", "--dir", tmp_path / "md").stdout
    assert f"{agent} panicked: a test has requested the panic of {agent}" in shown
    assert "stack backtrace:" in shown
    assert has_frames(shown)


@pytest.mark.parametrize("agent", ["archive-conductor", *_ARCHIVE_THREADS, "sender"])
def test_a_panic_of_an_agent_of_an_archive_is_on_stderr_and_in_the_error_log_and_ends_the_archive(
    service: Start, tmp_path: Path, agent: str
) -> None:
    given = settings(tmp_path, "-Daeron.archive.threading.mode=DEDICATED")
    status, errors = service("aeronarchive", "--with-driver", *given, AERON_TEST_PANIC=agent).ended()
    assert status == 1
    check_evidence(errors, agent)
    # The errors of the archive and of its driver.
    shown = run("archive", "errors", tmp_path / "archive").stdout
    assert f"{agent} panicked: a test has requested the panic of {agent}" in shown
    assert "stack backtrace:" in shown


@pytest.mark.parametrize("name", ["aeronmd", "aeronarchive"])
def test_a_panic_of_a_thread_that_is_no_agent_is_in_the_error_log_too(
    service: Start, tmp_path: Path, name: str
) -> None:
    given = ["--dir", tmp_path / "md"] if name == "aeronmd" else ["--with-driver", *settings(tmp_path)]
    program = service(name, *given, AERON_TEST_PANIC="aeron-reload")
    program.wait_for("READY=1")
    status, errors = program.end(signal.SIGHUP)
    assert status == 1
    check_evidence(errors, "aeron-reload")
    place = ("errors", "--dir", tmp_path / "md") if name == "aeronmd" else ("archive", "errors", tmp_path / "archive")
    shown = run(*place).stdout
    assert "thread 'aeron-reload' panicked at rust/agent/src/crash.rs" in shown
    assert "stack backtrace:" in shown


def has_frames(text: str) -> bool:
    """Returns whether a text has the frames of a backtrace. The module is stripped, so they have no names."""
    return re.search(r"^ +\d+: ", text, re.MULTILINE) is not None


def check_evidence(errors: str, agent: str) -> None:
    assert "panicked at rust/agent/src/crash.rs" in errors
    assert f"\na test has requested the panic of {agent}\nstack backtrace:\n" in errors
    assert has_frames(errors)
    assert has_line(errors, "ended: a panic")
    last = "ERROR: a thread of the program panicked: its backtrace is above, and in the error log"
    assert last in errors.splitlines()


def test_faulthandler_prints_python_stacks_when_the_watchdog_aborts_a_program(service: Start, tmp_path: Path) -> None:
    driver = service("aeronmd", "--dir", tmp_path / "md", PYTHONFAULTHANDLER="1")
    driver.wait_for("READY=1")
    status, errors = driver.end(signal.SIGABRT)
    assert status == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in errors

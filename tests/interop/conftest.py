"""Fixtures that start clients, drivers and archives of Aeron and ours, and remove their processes and directories."""

import itertools
import os
import shutil
import subprocess
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

from interop import toolchain
from interop.archive_peers import KIND as ARCHIVE_CLIENT
from interop.archive_peers import ArchiveClient
from interop.archives import Archive
from interop.drivers import PATIENT_SETTINGS, Driver
from interop.peers import Peer

_SHARED_MEMORY = Path("/dev/shm")
_BRICKS_TIMEOUT_S = 30


def pytest_collection_modifyitems(items):
    """Marks the tests of this folder, so that `-m "not interop"` leaves them out.

    The first test of a kind fetches the tools for it, so these tests have a longer time limit. Every wait within a test
    has a shorter limit."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("interop")
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(300))


def _started(start):
    """Returns the result of `start`. If a tool is missing, the test is skipped with this reason. In CI, the test
    fails."""
    try:
        return start()
    except toolchain.Unavailable as reason:
        if os.environ.get("CI"):
            pytest.fail(f"interop tests must not be skipped in CI: {reason}")
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def started():
    """Returns the function that skips a test if a tool is missing."""
    return _started


@pytest.fixture(scope="session")
def run_directory():
    """Returns a directory in shared memory for the Aeron directories of this run."""
    path = _SHARED_MEMORY / f"aeron-interop-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    path.mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_drivers(run_directory, tmp_path_factory):
    """`shared_drivers(kind)` returns a driver for all tests that neither end nor configure their driver."""
    with _driver_pool(run_directory, tmp_path_factory) as get:
        yield lambda kind: get(kind, PATIENT_SETTINGS)


@pytest.fixture(scope="module")
def drivers(run_directory, tmp_path_factory):
    """`drivers(kind, settings)` returns a driver that all tests of one module with these settings share."""
    with _driver_pool(run_directory, tmp_path_factory) as get:
        yield lambda kind, settings=None: get(kind, {**PATIENT_SETTINGS, **(settings or {})})


@contextmanager
def _driver_pool(run_directory, tmp_path_factory):
    running = {}

    def get(kind, settings=None):
        key = (kind, *sorted((settings or {}).items()))
        driver = running.get(key)
        if driver is None or driver.process.exit_code is not None:
            log = tmp_path_factory.mktemp(f"driver-{kind}") / "errors.txt"
            directory = run_directory / f"{kind}-{uuid.uuid4().hex[:8]}"
            running[key] = driver = _started(lambda: Driver(kind, directory, log, settings))
        return driver

    try:
        yield get
    finally:
        for driver in running.values():
            driver.remove()


@pytest.fixture
def start_driver(run_directory, tmp_path):
    """`start_driver(kind, settings)` starts a driver for one test. The test may configure, stop and kill it."""
    started = []

    def start(kind, settings=None, *, directory=None, arguments=()):
        number = len(started)
        directory = directory or run_directory / f"own-{uuid.uuid4().hex[:8]}"
        log = tmp_path / f"driver-{kind}-{number}.txt"
        started.append(_started(lambda: Driver(kind, directory, log, settings, arguments=arguments)))
        return started[-1]

    yield start
    for driver in started:
        driver.remove()


@pytest.fixture(scope="session")
def idle_peers():
    """Yields the peer processes that later tests may use again: the start of a JVM lasts longer than most tests."""
    idle = []
    yield idle
    for peer in idle:
        peer.kill()


@pytest.fixture
def start_peer(idle_peers, tmp_path_factory):
    """`start_peer(kind, driver, **settings)` starts a connected client in a separate process."""
    used = []

    def start(kind, driver, **settings):
        peer = next((peer for peer in idle_peers if peer.kind == kind), None)
        if peer:
            idle_peers.remove(peer)
        else:
            log = tmp_path_factory.mktemp(f"peer-{kind}") / "errors.txt"
            peer = _started(lambda: Peer(kind, log))
        used.append(peer)
        peer.connect(driver, **settings)
        return peer

    yield start
    for peer in used:
        if _is_idle_again(peer):
            idle_peers.append(peer)
        else:
            peer.kill()


@pytest.fixture
def start_archive(run_directory, tmp_path):
    """`start_archive(kind, driver, settings)` starts an archive for one test, on a driver of any kind."""
    started = []

    def start(kind, driver, settings=None):
        number = len(started)
        directory = run_directory / f"archive-{uuid.uuid4().hex[:8]}"
        log = tmp_path / f"archive-{kind}-{number}"
        control_stream = next(_streams)
        started.append(_started(lambda: Archive(kind, driver, directory, log, control_stream, settings)))
        return started[-1]

    yield start
    for archive in started:
        archive.remove()


@pytest.fixture
def archive_client(start_peer):
    """`archive_client(driver, archive, way)` connects the real client to an archive over `ipc` or `udp`."""

    def connect(driver, archive, way="ipc", **settings):
        return ArchiveClient(start_peer(ARCHIVE_CLIENT, driver), archive, way, **settings)

    return connect


@pytest.fixture(scope="session")
def bricks():
    """`bricks(command, ...)` returns the output lines of our example program, which writes, recovers and reads
    archives."""
    _started(toolchain.jar)
    program = _started(lambda: toolchain.rust_example("archive_states"))

    def run(*arguments):
        command = [str(part) for part in (program, *arguments)]
        result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_BRICKS_TIMEOUT_S)
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()

    return run


@pytest.fixture
def written(bricks, tmp_path):
    """`written(state)` returns an archive directory that a recorder left in this state."""

    def write(state):
        directory = tmp_path / "archive"
        directory.mkdir()
        bricks("write", state, directory)
        return directory

    return write


@pytest.fixture
def side(drivers, start_peer):
    """`side(kind, settings)` starts a client on the module's driver of this kind, for one end of a stream between
    drivers."""
    return lambda kind, settings=None: start_peer(kind, drivers(kind, settings))


def _is_idle_again(peer):
    if not peer.is_usable():
        return False
    try:
        peer.call("disconnect", answer_timeout_s=5)
        return True
    except Exception:
        return False


_streams = itertools.count(2001)


@pytest.fixture
def stream():
    """Returns a stream id that no other test uses."""
    return next(_streams)

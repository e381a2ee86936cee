"""Fixtures that start pairs of drivers with the same settings: the real C driver and ours."""

import itertools
import os
import shutil
import uuid
from pathlib import Path

import pytest

from differential import rig
from interop import toolchain
from interop.drivers import Driver
from ports import free_port

_SHARED_MEMORY = Path("/dev/shm")


def pytest_collection_modifyitems(items):
    """Marks these tests as interop tests, because they need the real C driver."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("interop")
            item.add_marker(pytest.mark.timeout(300 * rig.SCALE))


@pytest.fixture(scope="session")
def run_directory():
    path = _SHARED_MEMORY / f"aeron-differential-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    path.mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def pairs(run_directory, tmp_path_factory):
    """`pairs(**settings)` returns the C driver and ours with these settings. The tests of a module share a pair if
    their settings are equal.

    In a setting, `{port}` stands for a free UDP port. Each driver has a different port.
    """
    running = {}

    def get(**settings):
        key = tuple(sorted(settings.items()))
        pair = running.get(key)
        if pair is None or not all(side.is_alive() for side in pair):
            running[key] = pair = _start(run_directory, tmp_path_factory.mktemp("drivers"), settings)
        return pair

    yield get
    for pair in running.values():
        for side in pair:
            side.close()


def _start(run_directory, logs, settings):
    sides = []
    for kind in ("c", "ours"):
        try:
            directory = run_directory / f"{kind}-{uuid.uuid4().hex[:8]}"
            port = free_port()
            own = {name: value.replace("{port}", str(port)) for name, value in settings.items()}
            driver = Driver(kind, directory, logs / f"{kind}.txt", {**rig.SETTINGS, **own})
            sides.append(rig.Side(driver, port))
        except toolchain.Unavailable as reason:
            if os.environ.get("CI"):
                pytest.fail(f"differential tests must not be skipped in CI: {reason}")
            pytest.skip(str(reason))
    return tuple(sides)


_streams = itertools.count(3001)


@pytest.fixture
def stream():
    """Returns a stream id that no other test uses."""
    return next(_streams)

"""A service that reconnects, on drivers that are killed, paused and replaced.

`make soak` sets the variable `SOAK`, which raises the number of kills from 15 to 100, and of pauses and replacements
from 3 to 20.
"""

import os
import signal
import statistics
import time

import pytest

import aeron
from interop.drivers import PATIENT_SETTINGS
from interop.reconnecting_service import Service

_KILLS, _OTHERS = (100, 20) if os.environ.get("SOAK") else (15, 3)
_LIVENESS_TIMEOUT_S = 2
# A client unmaps the log of an ended image after 3 s.
_LINGER_S = 3.5
_SETTINGS = PATIENT_SETTINGS | {
    "AERON_CLIENT_LIVENESS_TIMEOUT": f"{_LIVENESS_TIMEOUT_S}s",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "500ms",
    "AERON_DIR_DELETE_ON_START": "true",
}

pytestmark = pytest.mark.timeout(1200 if os.environ.get("SOAK") else 180)


class _Programs:
    """A driver, and an archive on it, in the same directories for each start."""

    def __init__(self, start_driver, start_archive):
        self._start_driver = start_driver
        self.driver = start_driver("ours", _SETTINGS)
        self.archive = start_archive("ours", self.driver)

    def kill(self):
        self.driver.kill()

    def start(self, kind="ours"):
        """Starts the next driver, and then the archive. The archive of the killed driver has ended, or ends now."""
        self.archive.kill()
        self.driver = self._start_driver(kind, _SETTINGS, directory=self.driver.directory)
        self.archive.start()


@pytest.fixture
def programs(start_driver, start_archive):
    return _Programs(start_driver, start_archive)


@pytest.fixture
def start_service(programs):
    """`start_service(driver_timeout_ms=...)` starts the service on the driver and the archive."""
    services = []

    def start(**settings):
        services.append(Service(programs.driver.directory, programs.archive.control("ipc"), **settings))
        return services[-1]

    yield start
    for service in services:
        service.close()


def _show(name, times):
    print(f"{name}: {statistics.median(times):.3f} s, max {max(times):.3f} s, of {len(times)}")


def _seconds(action):
    begin = time.monotonic()
    action()
    return time.monotonic() - begin


def _idle_resources(service):
    """Returns the resources of the service when it has unmapped the logs of the last driver."""
    service.call("pause")
    time.sleep(_LINGER_S)
    return service.call("resources")


def test_a_service_survives_kills_of_its_driver(programs, start_service):
    """The losses are inside of the reports, and nothing of a dead driver stays."""
    service = start_service()
    service.call("await_messages")
    noticed, again, resources = [], [], None
    for kill in range(1, _KILLS + 1):
        programs.kill()
        noticed.append(_seconds(lambda kill=kill: service.call("await_loss", kill)))
        programs.start()
        again.append(service.call("await_messages"))
        if kill == 3:
            resources = _idle_resources(service)
            service.call("resume")
    assert _idle_resources(service) == resources
    assert service.call("check", _KILLS) >= 5 * _KILLS
    _show("a killed driver was noticed within", noticed)
    _show("ten streams carried messages again after the start of the next driver within", again)
    # Long before the driver timeout of 10 s: the clients watch the process.
    assert max(noticed) < 8


def test_a_service_survives_pauses_beyond_the_liveness_timeout(programs, start_service):
    """The driver times out the clients of a paused process. They continue with the same driver."""
    service = start_service()
    for _ in range(_OTHERS):
        service.call("await_messages")
        os.kill(service.pid, signal.SIGSTOP)
        time.sleep(_LIVENESS_TIMEOUT_S + 1)
        os.kill(service.pid, signal.SIGCONT)
    service.call("await_loss", _OTHERS)
    service.call("await_messages")
    service.call("pause")
    assert service.call("check", _OTHERS, True) >= 5 * _OTHERS


def test_a_service_survives_pauses_of_its_driver_beyond_the_driver_timeout(programs, start_service):
    """The clients look for another driver, and continue with the same driver when it goes on."""
    service = start_service(driver_timeout_ms=1_000)
    for pause in range(1, _OTHERS + 1):
        service.call("await_messages")
        programs.driver.process.pause()
        service.call("await_loss", pause)
        programs.driver.process.resume()
    service.call("await_messages")
    service.call("pause")
    assert service.call("check", _OTHERS, True) >= 5 * _OTHERS


def test_a_service_continues_with_the_c_driver_and_back(programs, start_service):
    """A killed driver of another implementation is noticed within the driver timeout."""
    service = start_service(driver_timeout_ms=1_000)
    noticed = []
    for kill in range(1, _OTHERS + 1):
        service.call("await_messages")
        programs.kill()
        noticed.append(_seconds(lambda kill=kill: service.call("await_loss", kill)))
        programs.start("c" if programs.driver.kind == "ours" else "ours")
    service.call("await_messages")
    service.call("pause")
    assert service.call("check", _OTHERS) >= 5 * _OTHERS
    _show("a killed driver of either kind was noticed within", noticed)


def test_a_watched_driver_starts_undisturbed(programs, start_service):
    """While a service looks for its driver, a thousand drivers start and end in its directory."""
    service = start_service()
    service.call("await_messages")
    programs.kill()
    for _ in range(1_000):
        with aeron.MediaDriver(dir=programs.driver.directory, dir_delete_on_start=True):
            pass
    programs.start()
    service.call("await_messages")

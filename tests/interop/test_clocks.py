"""Test of a step of the wall clock while a driver, an archive, our client and a real client run."""

import json
import sys
import time

import pytest

from interop import toolchain
from interop.clocks import Clock, library
from interop.drivers import PATIENT_SETTINGS, driver_environment
from interop.peers import Peer
from interop.processes import LineProcess
from interop.waiting import eventually

# The archive allows a difference of a minute between its wall clock and its monotonic clock.
_MINUTE, _MONTH = 61, 30 * 24 * 3600
# A driver looks for dead clients each second, and clients look for a dead driver as often.
_OBSERVED_S = 3


class Client:
    """Our client, in a process of its own."""

    def __init__(self, driver, archive, log):
        program = toolchain.HERE / "peer" / "clock_client.py"
        channel, stream, _ = archive.control("ipc")
        command = [sys.executable, program, driver.directory, channel, stream]
        self._process = LineProcess(command, log=log, environment=driver_environment({}))

    def work(self, request=""):
        self._process.write(request)
        return json.loads(self._process.read(20))

    def kill(self):
        self._process.kill()


@pytest.mark.parametrize("step", [_MINUTE, -_MONTH, _MONTH], ids=["a minute", "a month back", "a month"])
def test_a_step_of_the_wall_clock_ends_nothing_of_ours_and_deletes_nothing(
    started, start_driver, start_archive, monkeypatch, tmp_path, step
):
    """A real client compares its clock with the heartbeat of the driver. So it ends if its clock is ahead, for example
    because it looks before the driver writes its next heartbeat."""
    started(library)
    ours, theirs = Clock(tmp_path / "ours"), Clock(tmp_path / "theirs")

    def use(clock):
        for name, value in clock.environment().items():
            monkeypatch.setenv(name, value)

    use(ours)
    driver = start_driver("ours", PATIENT_SETTINGS)
    archive = start_archive("ours", driver)
    client = Client(driver, archive, tmp_path / "client.txt")
    try:
        use(theirs)
        real = started(lambda: Peer("java", tmp_path / "java.txt"))
        try:
            real.connect(driver)
            before = client.work()
            assert abs(before["time"] - time.time()) < 5
            assert not real.is_closed()

            # The clock of the real client is ahead of the driver's clock for a moment.
            for clock in (theirs, ours) if step > 0 else (ours, theirs):
                clock.set(step)
                eventually(real.is_closed)
        finally:
            real.kill()
        begin = time.monotonic()
        while time.monotonic() < begin + _OBSERVED_S:
            after = client.work()
        assert abs(after["time"] - time.time() - step) < 5
        assert (after["received"], after["is_closed"], after["is_listed"]) == (1, False, True)
        assert (driver.process.exit_code, archive.process.exit_code) == (None, None)
        # If the clock is ahead, the policy would delete the recording, and the archive says that it waits.
        last = client.work("old")
        assert (last["is_listed"], last["held_by"]) == (True, ["CLOCK"] if step > 0 else [])
        assert (b"because the wall clock was set forward by" in archive.error_log()) == (step > 0)
    finally:
        client.kill()

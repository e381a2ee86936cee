"""Tests of the real Java tools on the files of our driver."""

import re
import struct
import subprocess

import pytest

from interop import control, toolchain
from interop.control import ControlClient

_TIMEOUT_S = 60
# The timeouts are long, because the test's client writes no heartbeat while a Java virtual machine starts.
PATIENT = {"AERON_CLIENT_LIVENESS_TIMEOUT": "100s", "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "110s"}


@pytest.fixture
def tool(start_driver):
    """`tool(driver, name, *arguments)` returns the output of a Java tool about a driver's files."""

    def run(driver, name, *arguments):
        command = toolchain.java_command({"aeron.dir": driver.directory}, f"io.aeron.samples.{name}", *arguments)
        result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def test_stat_shows_every_counter(tool, start_driver):
    """06-1, 06-3"""
    driver = start_driver("ours", PATIENT)
    client = ControlClient(driver.directory)
    client.perform(control.ADD_PUBLICATION, control.add(client.next_id(), client.next_id(), 1001, "aeron:ipc"))
    shown = tool(driver, "AeronStat", "watch=false")
    assert re.search(rf"Aeron Stat \(CnC v0\.2\.0\), pid {driver.process.pid}, heartbeat age \d+ms", shown)
    lines = {int(id): label for id, label in re.findall(r"^ *(\d+): +[-\d,]+ - (.*)$", shown, re.MULTILINE)}
    assert lines == {counter.id: counter.label for counter in client.counters()}
    assert len(lines) == 46 + 3


def test_error_stat_shows_each_distinct_error_with_its_count(tool, start_driver):
    """03-58, 06-4"""
    driver = start_driver("ours")
    assert "0 distinct errors observed" in tool(driver, "ErrorStat")
    client = ControlClient(driver.directory)
    for _ in range(2):
        client.perform(control.ADD_PUBLICATION, control.add(1, client.next_id(), 1001, "aeron:ipc?mtu=100"))
    shown = tool(driver, "ErrorStat")
    assert "1 distinct errors observed" in shown
    assert "2 observations from" in shown


def test_loss_stat_reads_an_empty_report(tool, start_driver):
    """06-5"""
    assert "0 loss entries" in tool(start_driver("ours"), "LossStat")


def test_driver_tool_shows_version_and_pid(tool, start_driver):
    """06-6"""
    driver = start_driver("ours")
    shown = tool(driver, "DriverTool")
    assert f"Version: 512, PID: {driver.process.pid}" in shown
    assert tool(driver, "DriverTool", "pid").strip() == str(driver.process.pid)


def test_driver_tool_ends_a_driver_that_allows_it(tool, start_driver):
    """03-49, 04-21, 06-6"""
    driver = start_driver("ours", {"AERON_DRIVER_TERMINATION_VALIDATOR": "allow"})
    tool(driver, "DriverTool", "terminate")
    assert driver.process.wait(20) == 0


def test_driver_tool_does_not_end_a_driver_that_denies_it(tool, start_driver):
    """03-49, 04-22, 06-6"""
    driver = start_driver("ours")
    tool(driver, "DriverTool", "terminate")
    client = ControlClient(driver.directory)
    client.perform(control.CLIENT_KEEPALIVE, struct.pack("<qq", 1, client.next_id()))
    assert driver.process.exit_code is None


def test_stream_stat_shows_the_counters_of_a_stream_in_one_line(tool, start_driver):
    """06-7"""
    driver = start_driver("ours", PATIENT)
    client = ControlClient(driver.directory)
    owner = client.next_id()
    added = client.perform(control.ADD_PUBLICATION, control.add(owner, client.next_id(), 1001, "aeron:ipc"))
    client.perform(control.ADD_SUBSCRIPTION, control.add_subscription(owner, client.next_id(), 1001, "aeron:ipc"))
    session = added[-1].session
    shown = tool(driver, "StreamStat")
    assert f"sessionId={session} streamId=1001 channel=aeron:ipc :" in shown
    assert re.search(r"pub-pos \(concurrent\):\d+:0 pub-lmt:\d+:\d+ sub-pos:\d+:0", shown)


def test_log_inspector_reads_a_log(tool, start_driver, start_peer, stream):
    driver = start_driver("ours")
    peer = start_peer("java", driver)
    peer.add_subscription("aeron:ipc", stream)
    publication = peer.add_publication("aeron:ipc?term-length=64k", stream)
    publication.await_connected()
    assert publication.offer(10) == 64
    log = f"{driver.directory}/publications/{publication.registration}.logbuffer"
    shown = tool(driver, "LogInspector", log)
    assert re.search(r"Term length: 65536", shown)
    assert f"frame-length=42 version=0 flags=11000000 type=1 term-offset=0 session-id={publication.session}" in shown

"""Tests of drivers and clients in containers: the guide docs/how-to/containers.md, and the files of `containers/`.

A pod of `tests/pods.py` is made of namespaces, without a container tool.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.conftest import eventually
from tests.pods import MIB, Container, Pod, pod

DIRECTORY = "/dev/shm/aeron"
# A driver needs 46 MiB for 8 MiB of counters, which is the default. This driver has 1 MiB.
DRIVER = ("-m", "aeron", "driver", "--dir", DIRECTORY, "-Daeron.counters.buffer.length=1m")
HEALTH = (*Pod.python, "-m", "aeron", "health", "--dir", DIRECTORY)

# Both services connect again whenever they lose the driver.
PUBLISHER = f"""
import aeron

number = 0
while True:
    try:
        with aeron.connect("{DIRECTORY}") as client:
            publication = client.add_publication("aeron:ipc?term-length=64k", 1001)
            while True:
                publication.publish(b"%d" % number, timeout=60)
                number += 1
    except aeron.AeronError:
        pass
"""
SUBSCRIBER = f"""
import aeron, os

print(os.getpid(), flush=True)
while True:
    try:
        with aeron.connect("{DIRECTORY}") as client:
            subscription = client.add_subscription("aeron:ipc", 1001)
            received = 0
            while True:
                received += subscription.poll(lambda payload, header: None, 100)
                if received >= 1000:
                    print("received", flush=True)
                    received = -1 << 60
    except aeron.AeronError as error:
        print("lost", flush=True)
"""


def probe(container: Container, *options: str) -> tuple[int, str]:
    """Returns the exit status and the output of `aeron health` in a container."""
    done = container.execute(*HEALTH, *options)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_services_of_a_pod_continue_after_their_driver_was_killed() -> None:
    """Process ids say nothing here: each container has a process 1, and none sees the processes of another."""
    with pod(shared_mib=64) as made:
        driver = made.start(*DRIVER, memory_mib=192)
        eventually(lambda: probe(driver, "--live") == (0, "live\n"))
        publisher = made.start("-c", PUBLISHER, memory_mib=192)
        subscriber = made.start("-c", SUBSCRIBER, memory_mib=192)
        assert subscriber.line() == "1"
        assert subscriber.line() == "received"
        ready = ("--stream", "aeron:ipc,1001", "--min-free", "16000000")
        assert probe(subscriber, *ready) == (0, "ready\n")
        status, reasons = probe(subscriber, *ready, "--stream", "aeron:ipc,1002")
        assert (status, reasons) == (
            1,
            "stream 1002 on aeron:ipc: there is no publication, and no subscription has an image\n",
        )

        driver.end(signal.SIGKILL)
        eventually(lambda: probe(subscriber, "--live")[0] == 1, timeout=20)
        assert subscriber.line() == "lost"
        again = made.start(*DRIVER, memory_mib=192)
        while (line := subscriber.line()) == "lost":
            pass
        assert line == "received"
        assert probe(again, *ready) == (0, "ready\n")

        assert again.end(signal.SIGTERM) == signal.SIGTERM
        status, reasons = probe(publisher, "--live")
        assert (status, reasons) == (1, f"the driver on {DIRECTORY} has ended\n")


def test_a_driver_with_default_settings_starts_in_64_mib_of_shared_memory() -> None:
    with pod(shared_mib=64) as made:
        driver = made.start("-m", "aeron", "driver", "--dir", DIRECTORY)
        eventually(lambda: probe(driver, "--live") == (0, "live\n"))
        status, reasons = probe(driver)
        assert status == 1
        assert reasons.endswith("bytes free, less than 167772160\n")


def test_the_files_of_a_driver_count_against_its_limit_of_memory() -> None:
    with pod(shared_mib=64) as made:
        driver = made.start(*DRIVER, memory_mib=192)
        eventually(lambda: probe(driver, "--live") == (0, "live\n"))
        if driver.group is None:
            pytest.skip("control groups of this machine cannot be changed")
        files = driver.execute("du", "-s", "--block-size=1", DIRECTORY).stdout
        assert int(files.split()[0]) > 10 * MIB
        assert driver.group.used() > int(files.split()[0])


def test_a_driver_whose_limit_of_memory_is_less_than_its_files_is_killed() -> None:
    """So the size of the shared memory must be less than the limit: then the driver reports that there is no room."""
    with pod(shared_mib=64) as made:
        driver = made.start("-m", "aeron", "driver", "--dir", DIRECTORY, memory_mib=40)
        if driver.group is None:
            pytest.skip("control groups of this machine cannot be changed")
        driver.wait()
        assert driver.group.kills() == 1
    with pod(shared_mib=32) as made:
        driver = made.start("-m", "aeron", "driver", "--dir", DIRECTORY, memory_mib=192)
        assert driver.wait() == 1
        assert driver.group is not None
        assert driver.group.kills() == 0


def test_doctor_finds_the_limits_of_a_container() -> None:
    with pod(shared_mib=64) as made:
        found = made.start("-m", "aeron", "doctor", "--dir", DIRECTORY, memory_mib=100)
        lines = []
        while line := found.line():
            lines.append(line)
        assert found.wait() == 0
        assert any(line.startswith("warn  space for the driver") and "64 of 64 MiB" in line for line in lines)
        if found.group is not None:
            text = "100 MiB, with a file system of 64 MiB"
            assert any(line.startswith("warn  memory limit") and text in line for line in lines)

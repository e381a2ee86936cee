"""Tests of the section `host` of `aeron doctor`: it finds a value that hurts a driver, and its command mends it."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.small_disk import run_on_small_disk

import aeron
from aeron._host import Clock, Finding, Host, Space, check_host, this_host
from commands import run

GIB = 1 << 30
DRIVER = Path("/dev/shm/aeron-ann")
GOVERNORS = [f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor" for number in range(4)]
HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
CLOCKS = "sys/devices/system/clocksource/clocksource0"
LOGIND = "etc/systemd/logind.conf"
HEALTHY = {
    "proc/sys/net/core/rmem_max": "212992",
    "proc/sys/net/core/wmem_max": "212992",
    "proc/sys/vm/max_map_count": "65530",
    "proc/self/mountinfo": "27 1 254:0 / / rw - ext4 /dev/vda rw\n25 27 0:23 / /dev/shm rw shared:4 - tmpfs tmpfs rw",
    "proc/self/cgroup": "0::/user.slice/ann.scope",
    "proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units\n"
    "Max file size             unlimited            unlimited            bytes\n"
    "Max open files            1024                 524288               files\n"
    "Max address space         unlimited            unlimited            bytes",
    "sys/fs/cgroup/user.slice/ann.scope/memory.max": "max",
    HUGE_PAGES: "always [madvise] never",
    **dict.fromkeys(GOVERNORS, "performance"),
    "sys/devices/system/cpu/online": "0-3",
    "sys/devices/system/cpu/isolated": "",
    f"{CLOCKS}/current_clocksource": "tsc",
    f"{CLOCKS}/available_clocksource": "tsc hpet acpi_pm",
    "etc/default/grub.d/kept.cfg": "",
    "etc/sysctl.d/kept.conf": "",
    LOGIND: "[Login]\n#RemoveIPC=yes\nRemoveIPC=no",
    "run/systemd/system/kept": "",
    "usr/sbin/chronyd": "",
}
SETTINGS: dict[str, Any] = {**aeron.MediaDriver.settings(), "threading_mode": "DEDICATED"}


def host(root: Path, changed: dict[str, str | None] | None = None, **facts: Any) -> Host:
    """Returns a healthy host, except for the changed files and facts. `None` stands for no file."""
    for name, text in {**HEALTHY, **(changed or {})}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            file.write_text(text)
        elif file.exists():
            file.unlink()
    settings = SETTINGS | facts.pop("settings", {})
    usual: dict[str, Any] = {"uid": 1000, "user": "ann", "space": Space(GIB, GIB), "clock": Clock(True, 400)}
    return Host(**{"directory": DRIVER, "settings": settings, "root": root, **usual, **facts})


def warnings(found: Host) -> list[Finding]:
    return [finding for finding in check_host(found) if finding.severity == "warn"]


def warning(found: Host) -> Finding:
    """Returns the only warning about a host."""
    (only,) = warnings(found)
    return only


def test_a_healthy_host_has_no_warning_and_no_command(tmp_path: Path) -> None:
    findings = check_host(host(tmp_path))
    assert [finding.name for finding in findings] == [
        "net.core.rmem_max",
        "net.core.wmem_max",
        "file system of the driver",
        "space for the driver",
        "vm.max_map_count",
        "open files",
        "file size",
        "address space",
        "transparent huge pages",
        "governor",
        "isolated processors",
        "clock source",
        "wall clock",
        "RemoveIPC",
        "directories of dead drivers",
    ]
    assert {(finding.severity, finding.command) for finding in findings} == {("ok", "")}
    assert all(finding.found and finding.wanted for finding in findings)


def test_a_host_without_readable_files_has_no_wrong_warning(tmp_path: Path) -> None:
    empty = Host(directory=DRIVER, settings=SETTINGS, root=tmp_path)
    assert [finding.name for finding in check_host(empty)] == [
        "net.core.rmem_max",
        "net.core.wmem_max",
        "isolated processors",
        "directories of dead drivers",
    ]
    assert warnings(empty) == []


# Programs that do in the made-up tree what the real ones do in the system.
PROGRAMS = {
    "sudo": 'exec "$@"',
    "sysctl": 'while IFS== read -r name value; do echo "$value" >"$ROOT/proc/sys/$(echo "$name" | tr . /)"; done <"$2"',
    "update-grub": '. "$ROOT/etc/default/grub.d/aeron.cfg"; echo "${GRUB_CMDLINE_LINUX#*isolcpus=}" >'
    '"$ROOT/sys/devices/system/cpu/isolated"',
    "grubby": 'echo "${2#*isolcpus=}" >"$ROOT/sys/devices/system/cpu/isolated"',
    "reboot": "",
    "systemctl": '[ "$*" = "restart systemd-logind" ]',
}


def run_command(finding: Finding, root: Path) -> dict[str, str]:
    """Runs the command of a finding in a made-up tree. Returns the environment after the command."""
    programs = root.parent / f"{root.name}-programs"
    programs.mkdir(exist_ok=True)
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\nset -e\n{text}\n")
        (programs / name).chmod(0o700)
    command = re.sub(r"(?<= )/(?=(?:etc|sys)/)", f"{root}/", finding.command)
    done = subprocess.run(
        ["bash", "-c", f"set -e; {command} >/dev/null; env -0"],
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    variables = done.stdout.rpartition("\n")[2].split("\0")
    return dict(line.split("=", 1) for line in variables if "=" in line)


@pytest.mark.parametrize(
    ("changed", "name", "found"),
    [
        ({"proc/sys/net/core/rmem_max": "65536"}, "net.core.rmem_max", "65536"),
        ({"proc/sys/vm/max_map_count": "4096"}, "vm.max_map_count", "4096"),
        ({HUGE_PAGES: "[always] madvise never"}, "transparent huge pages", "always"),
        ({GOVERNORS[2]: "powersave"}, "governor", "performance, powersave"),
        ({f"{CLOCKS}/current_clocksource": "hpet"}, "clock source", "hpet"),
        ({LOGIND: "[Login]\n#RemoveIPC=no"}, "RemoveIPC", "yes"),
        ({LOGIND: None}, "RemoveIPC", "yes"),
        (
            {LOGIND: "RemoveIPC=no", "usr/lib/systemd/logind.conf.d/a.conf": "[Login]\nRemoveIPC=yes\n"},
            "RemoveIPC",
            "yes",
        ),
        (
            {"sys/fs/cgroup/user.slice/memory.max": str(256 << 20)},
            "memory limit",
            "256 MiB, with a file system of 1024 MiB",
        ),
        (
            {
                "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/a/b",
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": str(200 << 20),
                "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": str(2**63 - 4096),
            },
            "memory limit",
            "200 MiB, with a file system of 1024 MiB",
        ),
        ({"sys/fs/cgroup/user.slice/cpu.max": "150000 100000"}, "processor quota", "1.5 processors"),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/a",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "100000",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "50000",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            },
            "processor quota",
            "2 processors",
        ),
    ],
)
def test_the_command_of_a_warning_mends_the_host(
    changed: dict[str, str | None], name: str, found: str, tmp_path: Path
) -> None:
    sick = host(tmp_path, changed)
    finding = warning(sick)
    assert (finding.name, finding.found) == (name, found)
    if name == "memory limit":
        # The limit is too small for a driver. After it is larger, the file system must become smaller.
        run_command(finding, tmp_path)
        finding = warning(sick)
        size = re.fullmatch(r"sudo mount -o remount,size=(\d+)m /dev/shm", finding.command)
        assert size, finding.command
        sick = dataclasses.replace(sick, space=Space(int(size[1]) << 20, int(size[1]) << 20))
    else:
        run_command(finding, tmp_path)
    assert warnings(sick) == []


def test_buffers_are_compared_with_the_configured_ones(tmp_path: Path) -> None:
    large = host(tmp_path, settings={"socket_rcvbuf": 4 << 20, "socket_sndbuf": 2 << 20})
    receive, send = warnings(large)
    assert (receive.name, receive.wanted) == ("net.core.rmem_max", "4194304 or more: socket_rcvbuf")
    assert (send.name, send.wanted) == ("net.core.wmem_max", "2097152 or more: socket_sndbuf")
    for finding in (receive, send):
        run_command(finding, tmp_path)
    assert warnings(large) == []
    written = (tmp_path / "etc/sysctl.d/90-aeron.conf").read_text()
    assert written == "net.core.rmem_max=4194304\nnet.core.wmem_max=2097152\n"


def test_without_the_limit_in_proc_a_socket_shows_the_buffer_that_it_gets(tmp_path: Path) -> None:
    hidden = host(tmp_path, {"proc/sys/net/core/rmem_max": None}, granted_buffer=lambda option, length: 65536)
    finding = warning(hidden)
    assert (finding.name, finding.found) == ("net.core.rmem_max", "a socket gets 65536")
    granted = this_host(str(tmp_path)).granted_buffer
    limit = Path("/proc/sys/net/core/rmem_max")
    if limit.exists():
        assert granted(8, 1 << 30) == int(limit.read_text())  # SO_RCVBUF


def test_a_driver_on_a_disk_is_told_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Files on a disk do not count against the limit of memory.
    limited: dict[str, str | None] = {"sys/fs/cgroup/user.slice/memory.max": str(200 << 20)}
    finding = warning(host(tmp_path, limited, directory=Path("/data/aeron")))
    assert (finding.name, finding.found) == ("file system of the driver", "ext4 at /")
    monkeypatch.setenv("AERON_DIR", run_command(finding, tmp_path)["AERON_DIR"])
    assert aeron.default_directory() == DRIVER
    unlimited: dict[str, str | None] = {"sys/fs/cgroup/user.slice/memory.max": None}
    assert warnings(host(tmp_path, unlimited, directory=aeron.default_directory())) == []


def test_the_last_mount_of_a_place_counts(tmp_path: Path) -> None:
    mounts = HEALTHY["proc/self/mountinfo"] + "\n26 25 0:24 / /dev/shm rw - ext4 /dev/vdb rw"
    finding = warning(host(tmp_path, {"proc/self/mountinfo": mounts}))
    assert (finding.name, finding.found) == ("file system of the driver", "ext4 at /dev/shm")
    spaces = (
        HEALTHY["proc/self/mountinfo"]
        + r"""
26 25 0:24 / /a\040b rw - tmpfs tmpfs rw"""
    )
    assert warnings(host(tmp_path, {"proc/self/mountinfo": spaces}, directory=Path("/a b/aeron"))) == []


def test_the_use_of_a_running_driver_doubles_the_wanted_limits(tmp_path: Path) -> None:
    maps = f"7f00-7f01 rw-s 0 00:17 1 {DRIVER}/cnc.dat\n7f01-7f02 rw-s 0 00:17 2 {DRIVER}/loss-report.dat\n"
    limits = HEALTHY["proc/self/limits"]
    busy = host(
        tmp_path,
        {
            "proc/70/maps": f"7f00-7f01 rw-s 0 00:17 1 {DRIVER}/cnc.dat",  # a client
            "proc/71/maps": maps + "7f02-7f03 rw-s 0 00:17 3 /some/log\n" * 40_000,
            "proc/71/limits": limits,
            "proc/71/fd/kept": "",
            **{f"proc/71/fd/{number}": "" for number in range(600)},
        },
    )
    mappings, files = warnings(busy)
    assert (mappings.found, mappings.wanted) == ("65530, the driver uses 40002", "80004 or more")
    run_command(mappings, tmp_path)
    assert (files.found, files.wanted) == ("1024", "1202 or more")
    assert files.command == "prlimit --pid 71 --nofile=524288:"
    assert warnings(dataclasses.replace(busy)) == [files]


@pytest.mark.parametrize(
    ("name", "option", "found"),
    [
        ("open files", "-S -n 512", "512"),
        # A log of the default term length of IPC is longer.
        ("file size", "-S -f 200000", "204800000 bytes"),
        ("address space", "-S -v 8388608", "8589934592 bytes"),
    ],
)
def test_the_command_for_a_limit_raises_it_in_the_shell(name: str, option: str, found: str, tmp_path: Path) -> None:
    def shell(command: str) -> Host:
        done = subprocess.run(["bash", "-c", f"ulimit {option}; {command}"], capture_output=True, text=True, check=True)
        return host(tmp_path, {"proc/self/limits": done.stdout})

    finding = warning(shell("cat /proc/self/limits"))
    assert (finding.name, finding.found) == (name, found)
    assert warnings(shell(f"{finding.command}; cat /proc/self/limits")) == []


def test_only_root_can_raise_a_hard_limit(tmp_path: Path) -> None:
    limits = re.sub(r"1024 ( +)524288", r"512  \g<1>900   ", HEALTHY["proc/self/limits"])
    finding = warning(host(tmp_path, {"proc/self/limits": limits}))
    assert finding.command == "sudo prlimit --pid $$ --nofile=65536"


@pytest.mark.parametrize("grubby", [None, ""])
def test_agents_that_spin_need_processors_of_their_own(
    grubby: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AERON_SENDER_IDLE_STRATEGY", "noop")
    monkeypatch.setenv("AERON_RECEIVER_IDLE_STRATEGY", "spin")
    monkeypatch.setenv("AERON_THREADING_MODE", "DEDICATED")

    def spinning(changed: dict[str, str | None] | None = None) -> Host:
        return host(tmp_path, changed, settings=aeron.MediaDriver.settings())

    shared = spinning({"usr/sbin/grubby": grubby})
    finding = warning(shared)
    assert finding.name == "isolated processors"
    assert finding.found == "no processor, sender on any, receiver on any"
    assert finding.wanted == "one of their own for sender, receiver"
    run_command(finding, tmp_path)
    isolated: dict[str, str | None] = {
        "sys/devices/system/cpu/isolated": shared.read("sys/devices/system/cpu/isolated")
    }
    unpinned = spinning(isolated)
    finding = warning(unpinned)
    assert finding.found == "processors 2, 3, sender on any, receiver on any"
    for variable, value in run_command(finding, tmp_path).items():
        monkeypatch.setenv(variable, value)
    assert warnings(spinning(isolated)) == []
    monkeypatch.setenv("AERON_RECEIVER_CPU_AFFINITY", os.environ["AERON_SENDER_CPU_AFFINITY"])
    assert warning(spinning(isolated)).name == "isolated processors"


def test_on_two_processors_no_two_agents_spin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AERON_SHAREDNETWORK_IDLE_STRATEGY", "noop")
    monkeypatch.setenv("AERON_CONDUCTOR_IDLE_STRATEGY", "yield")
    monkeypatch.setenv("AERON_THREADING_MODE", "SHARED_NETWORK")
    small: dict[str, str | None] = {"sys/devices/system/cpu/online": "0-1"}
    finding = warning(host(tmp_path, small, settings=aeron.MediaDriver.settings()))
    assert finding.command == "unset AERON_CONDUCTOR_IDLE_STRATEGY AERON_SHAREDNETWORK_IDLE_STRATEGY"
    for variable in finding.command.split()[1:]:
        monkeypatch.delenv(variable)
    assert warnings(host(tmp_path, small, settings=aeron.MediaDriver.settings())) == []


def test_without_a_fast_clock_source_the_command_shows_the_reason(tmp_path: Path) -> None:
    slow: dict[str, str | None] = {
        f"{CLOCKS}/current_clocksource": "hpet",
        f"{CLOCKS}/available_clocksource": "hpet acpi_pm",
    }
    assert warning(host(tmp_path, slow)).command.startswith("sudo dmesg | grep ")


@pytest.mark.parametrize(
    ("changed", "command"),
    [
        ({}, "sudo timedatectl set-ntp true"),
        ({"usr/sbin/chronyd": None}, "sudo apt-get install -y chrony"),
        (
            {"usr/sbin/chronyd": None, "usr/bin/dnf": ""},
            "sudo dnf install -y chrony && sudo systemctl enable --now chronyd",
        ),
    ],
)
def test_a_clock_that_nobody_sets_is_found(changed: dict[str, str | None], command: str, tmp_path: Path) -> None:
    finding = warning(host(tmp_path, changed, clock=Clock(False, 16_000_000)))
    assert (finding.name, finding.found) == ("wall clock", "not synchronised")
    assert finding.command == command


def test_users_whose_files_stay_need_no_change_of_logind(tmp_path: Path) -> None:
    removes: dict[str, str | None] = {LOGIND: "RemoveIPC=yes"}
    assert warning(host(tmp_path, removes)).name == "RemoveIPC"
    assert warnings(host(tmp_path, removes, uid=0, user="root")) == []
    assert warnings(host(tmp_path, removes, uid=998, user="aeron")) == []
    assert warnings(host(tmp_path, {**removes, "var/lib/systemd/linger/ann": ""})) == []
    overridden: dict[str, str | None] = {
        "usr/lib/systemd/logind.conf.d/a.conf": "RemoveIPC=yes",
        "etc/systemd/logind.conf.d/a.conf": "RemoveIPC=no",
    }
    assert warnings(host(tmp_path / "other", removes | overridden)) == []


def test_directories_of_killed_drivers_are_removed_by_the_command(tmp_path: Path) -> None:
    left = tmp_path / "aeron of ann-5"
    left.mkdir()
    (left / "cnc.dat").touch()
    finding = warning(host(tmp_path / "root", left_directories=[(left, 3 << 20, True)]))
    assert finding.found == f"{left}, 3 MiB, which the next embedded driver removes"
    run_command(finding, tmp_path)
    assert not left.exists()


def test_in_a_container_the_commands_are_for_its_host(tmp_path: Path) -> None:
    inside: dict[str, str | None] = {
        ".dockerenv": "",
        "sys/fs/cgroup/user.slice/ann.scope/memory.max": str(100 << 20),
        "sys/fs/cgroup/user.slice/ann.scope/cpu.max": "50000 100000",
    }
    small = host(tmp_path, inside, space=Space(64 << 20, 60 << 20))
    space, memory, quota = warnings(small)
    assert quota.command == "docker run ...   # without --cpus; Kubernetes: no resources.limits.cpu"
    assert space.command == "docker run --shm-size=192m ...   # Kubernetes: sizeLimit: 192Mi of the volume"
    assert memory.command == "docker run --memory=192m ...   # Kubernetes: resources.limits.memory: 192Mi"
    assert small.is_container


SCRIPT = """
import subprocess, sys
from aeron._host import check_host, this_host

def found():
    return next(each for each in check_host(this_host("/dev/shm/aeron")) if each.name == "space for the driver")

before = found()
command = before.command.partition("sudo ")[2] or before.command
assert command.startswith("mount -o remount,size="), command
subprocess.run(command, shell=True, check=True)
after = found()
print(before.severity, before.found, after.severity, after.found)
"""


def test_the_command_for_a_small_file_system_makes_it_larger() -> None:
    if (Path("/.dockerenv")).exists() or Path("/run/.containerenv").exists():
        script = f"from aeron._host import Host\nHost.is_container = False\n{SCRIPT}"
    else:
        script = SCRIPT
    output = run_on_small_disk(script, Path("/dev/shm"), size_mib=64, timeout_s=30)
    assert output == "warn 64 of 64 MiB free ok 192 of 192 MiB free\n"


def test_doctor_finds_the_running_driver_and_exits_with_0(driver: aeron.MediaDriver) -> None:
    found = this_host(driver.dir)
    assert found.driver == Path(f"/proc/{os.getpid()}")
    result = run("doctor", "--dir", driver.dir)
    assert result.exit_code == 0, result.stderr
    header, *lines = result.stdout.splitlines()
    assert header.split() == ["what", "found", "wanted"]
    assert any(line.startswith("ok    vm.max_map_count") and "the driver uses" in line for line in lines)
    assert all(line.startswith(("ok    ", "warn  ", "      run: ", "This is a container")) for line in lines)


def test_doctor_works_without_pyspark(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pyspark'] = sys.modules['pyarrow'] = None; from aeron.cli import main; main()"
    environment = {**os.environ, "AERON_DIR": str(tmp_path / "[/x]")}
    command = [sys.executable, "-c", code, "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "warn  file system of the driver" in done.stdout or "tmpfs" in done.stdout
    assert "Java" not in done.stdout


def test_each_section_is_shown_alone_or_with_the_other(driver: aeron.MediaDriver) -> None:
    spark = run("doctor", "spark", "--dir", driver.dir, COLUMNS="200")
    both = run("doctor", "all", "--dir", driver.dir, COLUMNS="200")
    assert "vm.max_map_count" not in spark.stdout
    assert "media driver" in spark.stdout
    assert "vm.max_map_count" in both.stdout
    assert "media driver" in both.stdout
    assert both.exit_code == spark.exit_code
    assert run("doctor", "cloud").exit_code == 1

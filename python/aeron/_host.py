"""Checks of a Linux host for `aeron doctor`: each finding has the value, the wanted value, and the command to run.

The functions read `/proc`, `/sys`, `/etc`, `/run` and `/usr` below `Host.root`, so a test gives them a made-up tree.
"""

from __future__ import annotations

import ctypes
import math
import os
import pwd
import re
import shlex
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import aeron
from aeron._health import MIN_FREE_BYTES
from aeron._pipeline import _left_directories

__all__ = ["Clock", "Finding", "Host", "Space", "check_host", "this_host"]

_MIB = 1 << 20
_IN_MEMORY = ("hugetlbfs", "ramfs", "tmpfs")
_FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
"""Clock sources that a process reads without a system call."""
_SPINNING = ("noop", "spin", "yield")
"""Idle strategies that never sleep."""
_AGENTS = {
    "DEDICATED": ("conductor", "sender", "receiver"),
    "SHARED_NETWORK": ("conductor", "shared_network"),
    "SHARED": ("shared",),
    "INVOKER": (),
}
_PROCESS_BYTES = 128 * _MIB
"""Memory of a driver and of a probe beside the driver's files."""
_DEFAULT_MAX_MAP_COUNT = 65_530
_DEFAULT_OPEN_FILES = 1024
_LAST_SYSTEM_USER = 999
_TIME_ERROR = 5
"""The state of a clock that is not synchronised (`adjtimex(2)`)."""


class Space(NamedTuple):
    """Bytes of a file system."""

    total: int
    free: int


class Clock(NamedTuple):
    """State of the kernel's clock."""

    is_synchronised: bool
    max_error_us: int


@dataclass(frozen=True)
class Finding:
    """Result of one check. Immutable."""

    name: str
    found: str
    wanted: str
    severity: Literal["ok", "warn"]
    command: str = ""
    """For the shell. After it, the check finds nothing more, at the latest after a restart of the driver."""


@dataclass(frozen=True)
class Host:
    """Facts about a host that the checks do not find in files below `root`."""

    directory: Path
    """Directory of the driver."""
    settings: Mapping[str, Any]
    """Settings that a driver would have here."""
    root: Path = Path("/")
    uid: int = 0
    user: str = "root"
    space: Space | None = None
    clock: Clock | None = None
    left_directories: Sequence[tuple[Path, int, bool]] = ()
    granted_buffer: Callable[[int, int], int] = field(default=lambda option, length: length)
    """Returns the length that a socket gets for a buffer option and a length."""

    def read(self, path: str) -> str | None:
        """Returns the text of a file below `root` without white space at its ends, or `None`."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None

    @property
    def sudo(self) -> str:
        """Prefix of commands that only root may run."""
        return "" if self.uid == 0 else "sudo "

    @property
    def is_container(self) -> bool:
        """Whether the files of this host look like those of a container."""
        places = (".dockerenv", "run/.containerenv", "run/secrets/kubernetes.io")
        return any((self.root / place).exists() for place in places)

    @cached_property
    def driver(self) -> Path | None:
        """The folder in `/proc` of the process that has the directory's CnC file mapped, if this user may read it."""
        cnc = str(self.directory / "cnc.dat")
        for process in (self.root / "proc").glob("[0-9]*"):
            text = self.read(f"proc/{process.name}/maps")
            if text is not None and cnc in text and str(self.directory / "loss-report.dat") in text:
                return process
        return None


def this_host(directory: str) -> Host:
    """Returns the host on which this process runs. Changes nothing."""
    settings = aeron.MediaDriver.settings()
    if "AERON_THREADING_MODE" not in os.environ:
        settings["threading_mode"] = "DEDICATED"  # the default of `aeronmd`, to which this section applies
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    existing = next(path for path in (Path(directory), *Path(directory).absolute().parents) if os.path.exists(path))
    found = os.statvfs(existing)
    return Host(
        directory=existing.resolve() / Path(directory).absolute().relative_to(existing.absolute()),
        settings=settings,
        uid=uid,
        user=user,
        space=Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize),
        clock=_clock(),
        left_directories=_left_directories(),
        granted_buffer=_granted_buffer,
    )


def _clock() -> Clock | None:
    timex = ctypes.create_string_buffer(256)  # `struct timex` has 208 bytes
    state = ctypes.CDLL(None).adjtimex(timex)
    if state < 0:
        return None
    at = 3 * ctypes.sizeof(ctypes.c_long)
    return Clock(state != _TIME_ERROR, ctypes.c_long.from_buffer(timex, at).value)


def _granted_buffer(option: int, length: int) -> int:
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, option, length)
        return probe.getsockopt(socket.SOL_SOCKET, option) // 2  # the kernel returns the double (socket(7))


def check_host(host: Host) -> list[Finding]:
    """Checks a host. Returns the findings in a fixed order; checks that do not apply to the host are left out."""
    checks = (
        _socket_buffers,
        _file_system,
        _space,
        _memory_limit,
        _mappings,
        _limits,
        _huge_pages,
        _governor,
        _quota,
        _isolation,
        _clock_source,
        _synchronisation,
        _remove_ipc,
        _leftovers,
    )
    return [finding for check in checks for finding in check(host)]


def _finding(name: str, found: str, wanted: str, is_ok: bool, command: str) -> Finding:
    return Finding(name, found, wanted, "ok", "") if is_ok else Finding(name, found, wanted, "warn", command)


def _sysctl(host: Host, name: str, value: int) -> str:
    """Returns a command that sets a value of the kernel now, and at each start of the machine."""
    file = "/etc/sysctl.d/90-aeron.conf"
    return f"echo {name}={value} | {host.sudo}tee -a {file} && {host.sudo}sysctl -p {file}"


def _boot_argument(host: Host, argument: str) -> str:
    """Returns a command that adds an argument of the kernel, and restarts the machine."""
    if (host.root / "usr/sbin/grubby").exists():
        return f"{host.sudo}grubby --update-kernel=ALL --args={argument} && {host.sudo}reboot"
    line = shlex.quote(f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {argument}"')
    file = "/etc/default/grub.d/aeron.cfg"
    return f"echo {line} | {host.sudo}tee -a {file} && {host.sudo}update-grub && {host.sudo}reboot"


# ---- sockets and files -----------------------------------------------------------------------------------------------


def _socket_buffers(host: Host) -> Iterator[Finding]:
    """A longer buffer than the limit is cut without an error. Then a burst that fits into the window is lost."""
    for name, option, setting in (
        ("rmem_max", socket.SO_RCVBUF, "socket_rcvbuf"),
        ("wmem_max", socket.SO_SNDBUF, "socket_sndbuf"),
    ):
        wanted = host.settings[setting]
        text = host.read(f"proc/sys/net/core/{name}")
        # Before Linux 6.12, the network of a container does not show the limit.
        limit = host.granted_buffer(option, wanted) if text is None else int(text)
        yield _finding(
            f"net.core.{name}",
            f"{limit}" if text is not None else f"a socket gets {limit}",
            f"{wanted} or more: {setting}" if wanted else f"any: {setting} is the default of the system",
            limit >= wanted,
            _sysctl(host, f"net.core.{name}", wanted),
        )


class _Mount(NamedTuple):
    point: Path
    kind: str


def _mount(host: Host) -> _Mount | None:
    """Returns the file system of the driver's directory."""
    found = None
    for line in (host.read("proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4]))
        # A later line hides an earlier one with the same place.
        if host.directory.is_relative_to(point) and (found is None or point.is_relative_to(found.point)):
            found = _Mount(point, after.split()[0])
    return found


def _file_system(host: Host) -> Iterator[Finding]:
    mount = _mount(host)
    if mount is not None:
        yield _finding(
            "file system of the driver",
            f"{mount.kind} at {mount.point}",
            "in memory: tmpfs",
            mount.kind in _IN_MEMORY,
            f"export AERON_DIR=/dev/shm/aeron-{shlex.quote(host.user)}",
        )


def _space(host: Host) -> Iterator[Finding]:
    if host.space is None:
        return
    mount = _mount(host)
    wanted = _mib(host.space.total - host.space.free + MIN_FREE_BYTES)
    if host.is_container:
        command = f"docker run --shm-size={wanted}m ...   # Kubernetes: sizeLimit: {wanted}Mi of the volume"
    elif mount is not None and mount.kind == "tmpfs":
        command = f"{host.sudo}mount -o remount,size={wanted}m {shlex.quote(str(mount.point))}"
    else:
        command = f"export AERON_DIR=/dev/shm/aeron-{shlex.quote(host.user)}"
    yield _finding(
        "space for the driver",
        f"{host.space.free // _MIB} of {host.space.total // _MIB} MiB free",
        f"{MIN_FREE_BYTES // _MIB} MiB or more",
        host.space.free >= MIN_FREE_BYTES,
        command,
    )


def _mib(length: int) -> int:
    """Returns a length in MiB, rounded up to a multiple of 64 MiB."""
    return math.ceil(length / (64 * _MIB)) * 64


def _memory_limit(host: Host) -> Iterator[Finding]:
    """Files in memory count against the limit of the process that writes them first. Over it, the kernel kills."""
    found = _cgroup_limit(host)
    mount = _mount(host)
    if found is None or mount is None or mount.kind not in _IN_MEMORY or host.space is None:
        return
    limit, file = found
    # The driver must fit in, and so must files with the free space that a driver needs.
    least = host.space.total - host.space.free + MIN_FREE_BYTES + _PROCESS_BYTES
    if host.is_container:
        wanted = _mib(host.space.total + _PROCESS_BYTES)
        command = f"docker run --memory={wanted}m ...   # Kubernetes: resources.limits.memory: {wanted}Mi"
    elif limit < least:
        command = f"echo {_mib(least) * _MIB} | {host.sudo}tee /{file}"
    else:
        size = (limit - _PROCESS_BYTES) // _MIB
        command = f"{host.sudo}mount -o remount,size={size}m {shlex.quote(str(mount.point))}"
    yield _finding(
        "memory limit",
        f"{limit // _MIB} MiB, with a file system of {host.space.total // _MIB} MiB",
        f"the file system and {_PROCESS_BYTES // _MIB} MiB",
        host.space.total + _PROCESS_BYTES <= limit,
        command,
    )


def _cgroup_limit(host: Host) -> tuple[int, str] | None:
    """Returns the smallest memory limit of this process's control groups and its file, or `None` without a limit."""
    files = _cgroup_files(host, "memory", "memory.limit_in_bytes", "memory.max")
    limits = [(int(text), file) for file, text in files if text.isdecimal()]
    # Version 1 of control groups has a number of more than 2^62 instead of no limit.
    return min((limit for limit in limits if limit[0] < 1 << 62), default=None)


def _cgroup_files(host: Host, controller: str, version_1: str, version_2: str) -> Iterator[tuple[str, str]]:
    """Yields path and text of a file in each of this process's control groups, from its own to the root."""
    for line in (host.read("proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            folder, name = "sys/fs/cgroup", version_2
        elif controller in controllers.split(","):
            folder, name = f"sys/fs/cgroup/{controller}", version_1
        else:
            continue
        own = Path(path.lstrip("/"))
        for place in (own, *own.parents):
            file = str(Path(folder) / place / name)
            text = host.read(file)
            if text is not None:
                yield file, text


# ---- limits of processes ---------------------------------------------------------------------------------------------


def _mappings(host: Host) -> Iterator[Finding]:
    """Each log is one mapping, in the driver and in each client that uses the log."""
    text = host.read("proc/sys/vm/max_map_count")
    if text is None:
        return
    driver = host.driver
    used = 0 if driver is None else len((host.read(f"proc/{driver.name}/maps") or "").splitlines())
    wanted = max(_DEFAULT_MAX_MAP_COUNT, 2 * used)
    yield _finding(
        "vm.max_map_count",
        text if driver is None else f"{text}, the driver uses {used}",
        f"{wanted} or more",
        int(text) >= wanted,
        _sysctl(host, "vm.max_map_count", max(4 * _DEFAULT_MAX_MAP_COUNT, 4 * used)),
    )


def _limits(host: Host) -> Iterator[Finding]:
    """The limits of the running driver, or else of this process, which a driver would inherit."""
    driver = host.driver
    of = "self" if driver is None else driver.name
    text = host.read(f"proc/{of}/limits")
    if text is None:
        return
    limits = {line[:26].strip(): line[26:].split()[:2] for line in text.splitlines()[1:]}
    try:
        used = 0 if driver is None else len(list((driver / "fd").iterdir()))
    except OSError:
        used = 0
    files = max(_DEFAULT_OPEN_FILES, 2 * used)
    # A log has three terms, and its metadata.
    longest = 4 * max(host.settings["term_buffer_length"], host.settings["ipc_term_buffer_length"])
    for name, wanted, option, unit in (
        ("Max open files", files, "nofile", ""),
        ("Max file size", longest, "fsize", " bytes"),
        ("Max address space", None, "as", " bytes"),
    ):
        soft, hard = limits.get(name, ("unlimited", "unlimited"))
        yield _finding(
            name.removeprefix("Max "),
            soft if soft == "unlimited" else f"{soft}{unit}",
            "unlimited" if wanted is None else f"{wanted}{unit} or more",
            _allows(soft, wanted),
            _raise_limit(host, option, wanted, hard, "$$" if driver is None else driver.name),
        )


def _allows(limit: str, wanted: int | None) -> bool:
    return limit == "unlimited" or (wanted is not None and int(limit) >= wanted)


def _raise_limit(host: Host, option: str, wanted: int | None, hard: str, process: str) -> str:
    """Returns a command for the soft limit of a process, and for the hard limit too if that is too low."""
    if _allows(hard, wanted):
        return f"prlimit --pid {process} --{option}={hard}:"
    value = "unlimited" if wanted is None else max(65_536, 2 * wanted)
    return f"{host.sudo}prlimit --pid {process} --{option}={value}"


# ---- processors and memory -------------------------------------------------------------------------------------------


def _huge_pages(host: Host) -> Iterator[Finding]:
    """With `always`, the kernel moves pages to make huge ones. A thread that touches them waits for milliseconds."""
    text = host.read("sys/kernel/mm/transparent_hugepage/enabled")
    found = re.search(r"\[(\w+)\]", text or "")
    if found:
        file = "/sys/kernel/mm/transparent_hugepage/enabled"
        command = f"echo madvise | {host.sudo}tee {file}"
        yield _finding("transparent huge pages", found[1], "madvise or never", found[1] != "always", command)


def _governor(host: Host) -> Iterator[Finding]:
    """A processor with a low frequency needs milliseconds until it is fast again."""
    pattern = "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
    found = sorted({file.read_text().strip() for file in host.root.glob(pattern)})
    if found:
        command = f"echo performance | {host.sudo}tee /{pattern}"
        yield _finding("governor", ", ".join(found), "performance", found == ["performance"], command)


def _quota(host: Host) -> Iterator[Finding]:
    """A quota stops all threads of a group until the next period, which is 100 ms later at most."""
    for file, text in _cgroup_files(host, "cpu", "cpu.cfs_quota_us", "cpu.max"):
        quota = text.split()[0]
        if quota in ("max", "-1"):
            continue
        period = text.split()[1] if file.endswith("cpu.max") else host.read(f"{file[: -len('quota_us')]}period_us")
        command = f"echo {'max' if file.endswith('cpu.max') else -1} | {host.sudo}tee /{file}"
        if host.is_container:
            command = "docker run ...   # without --cpus; Kubernetes: no resources.limits.cpu"
        found = f"{int(quota) / int(period or 100_000):g} processors"
        yield Finding("processor quota", found, "no quota", "warn", command)


def _isolation(host: Host) -> Iterator[Finding]:
    """Another process on the processor of an agent that never sleeps stops the agent for milliseconds."""
    isolated = _processors(host.read("sys/devices/system/cpu/isolated"))
    isolated |= _processors(host.read("sys/fs/cgroup/cpuset.cpus.isolated"))
    found = f"processors {', '.join(map(str, sorted(isolated)))}" if isolated else "no processor"
    spinning = _spinning_agents(host)
    if not spinning:
        yield Finding("isolated processors", found, "any: no idle strategy spins", "ok")
        return
    # A thread that several agents share has no setting for its processor.
    pinned = {name: host.settings[key] for name in spinning if (key := f"{name}_cpu_affinity") in host.settings}
    used = list(pinned.values())
    yield _finding(
        "isolated processors",
        ", ".join([found, *(f"{name} on {'any' if number < 0 else number}" for name, number in pinned.items())]),
        f"one of their own for {', '.join(spinning)}",
        len(isolated) >= len(spinning) and len({*used}) == len(used) and isolated.issuperset(used),
        _isolate(host, isolated, spinning, pinned),
    )


def _spinning_agents(host: Host) -> list[str]:
    agents = _AGENTS[host.settings["threading_mode"]]
    return [name for name in agents if host.settings[f"{name}_idle_strategy"] in _SPINNING]


def _isolate(host: Host, isolated: set[int], spinning: list[str], pinned: Mapping[str, int]) -> str:
    """Returns the next command on the way to isolated processors: first the processors, then their agents."""
    present = sorted(_processors(host.read("sys/devices/system/cpu/online")))
    if len(present) <= len(spinning):  # the kernel needs a processor for all other processes
        return f"unset {' '.join(f'AERON_{_variable(name)}_IDLE_STRATEGY' for name in spinning)}"
    if len(isolated) < len(spinning):
        return _boot_argument(host, f"isolcpus={','.join(map(str, present[-len(spinning) :]))}")
    places = zip(pinned, sorted(isolated), strict=False)
    return f"export {' '.join(f'AERON_{_variable(name)}_CPU_AFFINITY={number}' for name, number in places)}"


def _variable(agent: str) -> str:
    return agent.replace("_", "").upper()


def _processors(text: str | None) -> set[int]:
    """Returns the numbers in a list of the kernel, such as `0-2,5`."""
    found: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


# ---- clock -----------------------------------------------------------------------------------------------------------


def _clock_source(host: Host) -> Iterator[Finding]:
    """Reading a slow source is a system call of a microsecond. An agent reads the clock in each turn."""
    folder = "sys/devices/system/clocksource/clocksource0"
    current = host.read(f"{folder}/current_clocksource")
    if current is None:
        return
    available = (host.read(f"{folder}/available_clocksource") or "").split()
    fast = next((name for name in _FAST_CLOCKS if name in available), None)
    command = (
        f"echo {fast} | {host.sudo}tee /{folder}/current_clocksource"
        if fast
        # The kernel has refused the source for a reason, so no command here forces it.
        else f"{host.sudo}dmesg | grep -i -e tsc -e clocksource   # says why the kernel has no fast source"
    )
    yield _finding("clock source", current, " or ".join(_FAST_CLOCKS[:2]), current in _FAST_CLOCKS, command)


def _synchronisation(host: Host) -> Iterator[Finding]:
    """Times of messages and of retention come from the wall clock."""
    if host.clock is None:
        return
    programs = ("usr/sbin/chronyd", "usr/sbin/ntpd", "usr/lib/systemd/systemd-timesyncd")
    if host.is_container or any((host.root / program).exists() for program in programs):
        command = f"{host.sudo}timedatectl set-ntp true"
    elif (host.root / "usr/bin/dnf").exists():
        command = f"{host.sudo}dnf install -y chrony && {host.sudo}systemctl enable --now chronyd"
    else:
        command = f"{host.sudo}apt-get install -y chrony"
    found = f"within {host.clock.max_error_us} us" if host.clock.is_synchronised else "not synchronised"
    yield _finding("wall clock", found, "synchronised, by NTP or PTP", host.clock.is_synchronised, command)


# ---- files that go and files that stay -------------------------------------------------------------------------------


def _remove_ipc(host: Host) -> Iterator[Finding]:
    """With `RemoveIPC`, systemd deletes the files of a user in `/dev/shm` at the end of the user's last session."""
    if not (host.root / "run/systemd/system").exists() or not host.directory.is_relative_to("/dev/shm"):
        return
    is_system_user = host.uid <= _LAST_SYSTEM_USER
    is_lingering = (host.root / "var/lib/systemd/linger" / host.user).exists()
    removes = _logind_removes(host)
    found = "yes" if removes else "no"
    if removes and is_system_user:
        found = f"yes, but {host.user} is a user of the system"
    elif removes and is_lingering:
        found = f"yes, but sessions of {host.user} do not end"
    folder = "/etc/systemd/logind.conf.d"
    yield _finding(
        "RemoveIPC",
        found,
        "no",
        not removes or is_system_user or is_lingering,
        f"{host.sudo}mkdir -p {folder} && printf '[Login]\\nRemoveIPC=no\\n' | {host.sudo}tee {folder}/aeron.conf && "
        f"{host.sudo}systemctl restart systemd-logind",
    )


def _logind_removes(host: Host) -> bool:
    """Returns the value of `RemoveIPC`: of the first main file, or of later files in the order of their names."""
    folders = ("etc", "run", "usr/local/lib", "usr/lib")
    main = next((text for folder in folders if (text := host.read(f"{folder}/systemd/logind.conf"))), "")
    others: dict[str, Path] = {}
    for folder in reversed(folders):
        others |= {file.name: file for file in (host.root / folder / "systemd/logind.conf.d").glob("*.conf")}
    texts = [main, *(others[name].read_text() for name in sorted(others))]
    values = re.findall(r"^\s*RemoveIPC\s*=\s*(\w+)\s*$", "\n".join(texts), re.MULTILINE)
    return not values or values[-1].lower() in ("yes", "true", "on", "1")


def _leftovers(host: Host) -> Iterator[Finding]:
    if not host.left_directories:
        yield Finding("directories of dead drivers", "no directory", "no directory", "ok")
    for path, length, is_removed_next in host.left_directories:
        note = ", which the next embedded driver removes" if is_removed_next else ""
        yield Finding(
            "directory of a dead driver",
            f"{path}, {length // _MIB} MiB{note}",
            "no directory",
            "warn",
            f"rm -r {shlex.quote(str(path))}",
        )

"""State of the machine during a run, and the reasons why a run does not count."""

import os
import resource
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_STEAL = 0.01
"""Highest share of the CPU time that the host may give to other virtual machines."""
MAX_OTHERS = 0.02
"""Highest share of one core that another process may use."""
MAX_PROBE_CHANGE = 1.5
"""Highest factor between the values of the probe before and after a run."""

_KERNEL_THREADS_PARENT = 2
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_counted = Counter()


@dataclass(frozen=True)
class Conditions:
    """State of the machine during a run."""

    probe_ns: tuple | None
    """Time of a round trip of a cache line between the two CPUs, before and after the run."""
    steal: float
    """Share of the CPU time that the host gave to other virtual machines."""
    others: float
    """CPU time of the busiest other process, as a share of one core. Kernel threads do not count."""
    busiest: str
    """Name of that process."""
    load: float
    """Load average of the last minute."""
    voluntary: int
    """Voluntary context switches of all processes that the run started and that have ended."""
    involuntary: int
    migrations: int
    """Moves of threads to another CPU."""
    minor_faults: int
    major_faults: int

    def objection(self):
        """Returns the reason why the run does not count, or `None`."""
        if self.steal > MAX_STEAL:
            return f"steal of {self.steal:.1%}"
        if self.others > MAX_OTHERS:
            return f"another process, {self.busiest}, used {self.others:.1%} of a core"
        if self.probe_ns and max(self.probe_ns) > MAX_PROBE_CHANGE * min(self.probe_ns):
            return "the probe changed from {:.0f} to {:.0f} ns".format(*self.probe_ns)
        return None


class Observation:
    """Observes the machine from its creation until `end`.

    `probe` measures the round trip of a cache line in nanoseconds. If it is `None`, there is no probe.
    """

    def __init__(self, probe: Callable | None):
        self._probe = probe
        self._probe_before = probe() if probe else None
        self._before = _Snapshot()

    def end(self):
        """Returns the conditions since the creation."""
        before, after = self._before, _Snapshot()
        seconds = after.time - before.time
        used = ((ticks - before.others.get(process, 0), process[1]) for process, ticks in after.others.items())
        ticks, busiest = max(used, default=(0, ""))
        return Conditions(
            (self._probe_before, self._probe()) if self._probe else None,
            steal=round((after.steal - before.steal) / max(1, after.total - before.total), 4),
            others=round(ticks * _TICK_S / seconds, 4),
            busiest=busiest,
            load=round(os.getloadavg()[0], 2),
            voluntary=after.children.ru_nvcsw - before.children.ru_nvcsw,
            involuntary=after.children.ru_nivcsw - before.children.ru_nivcsw,
            migrations=after.migrations - before.migrations,
            minor_faults=after.children.ru_minflt - before.children.ru_minflt,
            major_faults=after.children.ru_majflt - before.children.ru_majflt,
        )


class _Snapshot:
    def __init__(self):
        self.time = time.monotonic()
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        self.total, self.steal = sum(ticks), ticks[7]
        self.children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.migrations = _counted["migrations"]
        self.others = _ticks_of_others()


def _ticks_of_others():
    """Returns the CPU ticks of each process that this process has not started, by process id and name.

    The ticks include those of ended children. So a program that starts short processes, such as a compiler, counts.
    """
    parents, ticks = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                start, _, end = (entry / "stat").read_text().rpartition(")")
                pid, name, fields = int(entry.name), start.partition("(")[2], end.split()
                parents[pid], ticks[pid, name] = int(fields[1]), sum(map(int, fields[11:15]))
    return {process: count for process, count in ticks.items() if not _is_ours_or_kernel(process[0], parents)}


def _is_ours_or_kernel(pid, parents):
    while pid in parents:
        if pid in (os.getpid(), _KERNEL_THREADS_PARENT):
            return True
        pid = parents[pid]
    return False


def add_migrations(pid):
    """Adds the migrations of a process of the run. Must be called before the process is awaited."""
    for task in (Path("/proc") / str(pid) / "task").glob("*/sched"):
        with suppress(OSError, StopIteration):
            lines = task.read_text().splitlines()
            _counted["migrations"] += int(next(line for line in lines if "nr_migrations" in line).split()[-1])

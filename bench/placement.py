"""CPUs on which the processes of a cell run."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Placement:
    """The CPU of each process of a cell, as an index into the CPUs that this process may use.

    A process without an index may run on all of them. The publisher of a round trip is the caller.
    """

    name: str
    publisher: int | None = None
    subscriber: int | None = None
    driver: int | None = None

    def prefix(self, role):
        """Returns the prefix of a command that starts the process with this role.

        A driver is placed as a process too. The C driver of the wheel accepts `AERON_CONDUCTOR_CPU_AFFINITY` and the
        settings of the other agents, but its threads may still run on all CPUs.
        """
        index = getattr(self, role)
        return () if index is None else ("taskset", "-c", str(cpus()[min(index, len(cpus()) - 1)]))


SPLIT = Placement("split", publisher=0, subscriber=1)
WITH_PUBLISHER = Placement("publisher+driver", publisher=0, subscriber=1, driver=0)
WITH_SUBSCRIBER = Placement("subscriber+driver", publisher=0, subscriber=1, driver=1)
FREE = Placement("free")
PLACEMENTS = (SPLIT, WITH_PUBLISHER, WITH_SUBSCRIBER, FREE)


def cpus():
    """Returns the CPUs that this process may use, in ascending order."""
    return sorted(os.sched_getaffinity(0))

"""Tests of the states in which a `ReplayMerge` waits for a process that is stopped.

Each state ends at the progress timeout with an error that names the state. When the process continues, another merge of
the same archive client reaches its goal with each message once and in order, and nothing of the failed merge is left. A
number such as 07-130 is line 130 of the checklist in document 07 of the specification (`docs/spec`).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import eventually
from tests.frozen import archive_process, driver_process, frozen

import aeron
from interop.archives import Archive
from interop.drivers import PATIENT_SETTINGS, Driver
from interop.merging import Recorded
from ports import free_port

pytestmark = pytest.mark.slow

PROGRESS_TIMEOUT_S = 0.4
# The progress timeout, and the time that a busy machine may need in addition.
SLOW_S = 5.0
SPECIFICATION = Path(__file__).parent.parent / "docs" / "spec" / "07-archive.md"
COUNT = 1000
HEARTBEAT_TYPE = 11
FINAL = {"MERGED", "FAILED", "CLOSED"}


class Rig:
    """A driver and an archive in processes of their own, and a client of both."""

    def __init__(self, driver: Driver, archive: Archive, client: aeron.Aeron) -> None:
        self.pids = {"driver": driver.process.pid, "archive": archive.process.pid}
        self.client = client
        self.connection = aeron.connect_archive(client)
        self._stream = 6000

    def recorded(self) -> Recorded:
        """Returns a recorded stream.

        Its replay is longer than three windows, so that a stopped archive or driver interrupts the replay.
        """
        self._stream += 1
        recorded = Recorded(self.connection, self._stream)
        recorded.publish(COUNT - len(recorded.sent))
        self.connection.wait_recorded(recorded.publication, recorded.publication.position, timeout=10)
        return recorded

    def counters(self) -> Counter[tuple[int, str]]:
        """Returns type and label of all counters except heartbeats of clients. Each resource has a counter."""
        found = self.client.counters_reader.snapshot()
        return Counter((each.type_id, each.label) for each in found if each.type_id != HEARTBEAT_TYPE)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A driver that does not remove clients that are stopped for a few seconds."""
    with (
        driver_process(**{**PATIENT_SETTINGS, "AERON_IMAGE_LIVENESS_TIMEOUT": "1s"}) as driver,
        archive_process(driver) as archive,
        aeron.connect(driver.directory) as client,
    ):
        yield Rig(driver, archive, client)


class Attempt:
    """A merge on a subscription of its own."""

    def __init__(self, recorded: Recorded, replay_port: int, progress_timeout: float = PROGRESS_TIMEOUT_S) -> None:
        self.subscription = recorded.subscribe()
        self.messages: list[bytes] = []
        self._begin = lambda: recorded.merge(
            self.subscription,
            replay_destination=f"aeron:udp?endpoint=127.0.0.1:{replay_port}",
            progress_timeout=progress_timeout,
        )

    def begin(self) -> None:
        self.merge: aeron.ReplayMerge = self._begin()

    def end(self) -> None:
        self.merge.close()
        self.subscription.close()

    def is_merged(self) -> bool:
        return self.merge.is_merged

    def read(self, limit: int = 4096) -> None:
        self.messages += self.merge.poll_batch(limit).to_list()

    def until(self, holds: Callable[[], object], limit: int = 4096) -> None:
        eventually(lambda: (self.read(limit), holds())[1], timeout=20)

    def failure(self) -> tuple[str, float]:
        """Polls until the merge fails. Returns the state in the text of the error, and the time."""
        begin = time.monotonic()
        with pytest.raises(aeron.ArchiveTimeoutError) as caught:
            self.until(lambda: False)
        seconds = time.monotonic() - begin
        assert self.merge.has_failed
        found = re.fullmatch(r"ReplayMerge no progress: state=([A-Z_]+), activeTransportCount=[012]", str(caught.value))
        assert found, caught.value
        return found[1], seconds


def from_the_start(attempt: Attempt, pid: int) -> tuple[str, float]:
    with frozen(pid):
        attempt.begin()
        return attempt.failure()


def before_the_replay(attempt: Attempt, pid: int) -> tuple[str, float]:
    """Stops the archive between its response to the request for the position, and the request for the replay."""
    with frozen(pid):
        attempt.begin()
        attempt.merge.do_work()
    # The archive responds in this time. The merge does not read the response yet.
    time.sleep(0.1)
    with frozen(pid):
        return attempt.failure()


def in_the_replay(attempt: Attempt, pid: int) -> tuple[str, float]:
    attempt.begin()
    attempt.until(lambda: attempt.messages, limit=1)
    with frozen(pid):
        return attempt.failure()


def at_the_end_of_the_replay(attempt: Attempt, pid: int) -> tuple[str, float]:
    """Stops the archive between the last message of the replay and the second request for the position."""
    attempt.begin()
    eventually(lambda: attempt.merge.do_work() >= 0 and attempt.merge.image is not None)

    def read() -> bool:
        # The merge itself would send the request.
        attempt.messages += attempt.subscription.poll_batch().to_list()
        return len(attempt.messages) == COUNT

    eventually(read)
    with frozen(pid):
        return attempt.failure()


def merged(recorded: Recorded, port: int) -> Attempt:
    """Returns a complete merge. Tries again as long as the replay of the failed merge has not ended.

    On the same port, both replays have the same channel and session id.
    """
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        attempt = Attempt(recorded, port, progress_timeout=20)
        attempt.begin()
        with suppress(aeron.ArchiveRefusedError):
            attempt.until(attempt.is_merged)
            return attempt
        attempt.end()
        time.sleep(0.01)
    raise AssertionError("the replay of the failed merge has not ended within 20 s")


@dataclass(frozen=True)
class Wait:
    """A state that ends at the progress timeout if a process is stopped at a moment."""

    state: str
    # The process for which the state waits: "archive" or "driver".
    peer: str
    stop: Callable[[Attempt, int], tuple[str, float]]
    replay_port: int | None = None


WAITS = [
    Wait("RESOLVE_REPLAY_PORT", "driver", from_the_start, replay_port=0),
    Wait("GET_RECORDING_POSITION", "archive", from_the_start),
    Wait("REPLAY", "archive", before_the_replay),
    Wait("CATCHUP", "archive", in_the_replay),
    Wait("CATCHUP", "driver", in_the_replay),
    Wait("ATTEMPT_LIVE_JOIN", "archive", at_the_end_of_the_replay),
]


@pytest.mark.parametrize("wait", [pytest.param(wait, id=f"{wait.state}-{wait.peer}") for wait in WAITS])
def test_a_state_that_waits_for_a_stopped_process_ends_at_the_progress_timeout_and_the_next_merge_succeeds(
    rig: Rig, wait: Wait
) -> None:
    """07-130"""
    recorded = rig.recorded()
    before = rig.counters()
    port = free_port() if wait.replay_port is None else wait.replay_port
    failed = Attempt(recorded, port)
    state, seconds = wait.stop(failed, rig.pids[wait.peer])
    assert state == wait.state
    assert PROGRESS_TIMEOUT_S <= seconds < SLOW_S
    assert failed.merge.do_work() == 0
    failed.end()
    following = merged(recorded, port)
    recorded.publish(1)
    following.until(lambda: len(following.messages) >= len(recorded.sent))
    assert following.messages == recorded.sent
    following.end()
    try:
        eventually(lambda: not rig.counters() - before, timeout=20)
    finally:
        assert rig.counters() - before == Counter()
    recorded.publication.close()


def test_every_state_that_waits_is_tested() -> None:
    _, _, section = SPECIFICATION.read_text().partition("\n## 14. ReplayMerge\n")
    table, _, _ = section.partition("\n## 15.")
    rows = re.findall(r"^\| ([A-Z_ /]+) \|", table, re.MULTILINE)
    assert {name for row in rows for name in row.split(" / ")} == {wait.state for wait in WAITS} | FINAL

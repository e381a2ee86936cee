"""Tests that snapshots can be pickled and compared by their values, and that live objects cannot be pickled.

Each public class is in one of the lists of this file.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Stream

import aeron
from aeron.exceptions import registration_error

SNAPSHOTS: dict[str, Callable[[], Any]] = {
    "Action": lambda: aeron.Action.BREAK,
    "ChannelStatus": lambda: aeron.ChannelStatus.ACTIVE,
    "CounterSnapshot": lambda: aeron.CounterSnapshot(1, 2, 3, "a label", b"key", 4, 5, 6),
    "ErrorObservation": lambda: aeron.ErrorObservation(1, 2, 3, "a text"),
    "FixedLoss": lambda: aeron.FixedLoss(1, 2, 3),
    "FrameType": lambda: aeron.FrameType.DATA,
    "LogFrame": lambda: aeron.LogFrame(64, 100, "a header"),
    "RefusedAttempts": lambda: aeron.RefusedAttempts(1, 2, 3),
    "LossObservation": lambda: aeron.LossObservation(1, 2, 3, 4, 5, 6, "aeron:ipc", "a source"),
    "AuthenticatingSession": lambda: aeron.AuthenticatingSession(1, "10.0.0.1", b"challenge"),
    "AuthenticationDecision": lambda: aeron.AuthenticationDecision.accept("ada"),
    "MultiGapLoss": lambda: aeron.MultiGapLoss(1, 2, 3, 4),
    "FoundPosition": lambda: aeron.FoundPosition(1, 64, None, True),
    "NamedReader": lambda: aeron.NamedReader(1, "bars", 64, 2, 1000, None),
    "NotSent": lambda: aeron.BACK_PRESSURED,
    "PublicationErrorFrame": lambda: aeron.PublicationErrorFrame(1, 2, 3, 4, 5, 6, 13, "too old", None),
    "RandomLoss": lambda: aeron.RandomLoss(0.5, seed=1),
    "Recording": lambda: aeron.Recording(
        1, 0, None, 2, None, 3, 4, "aeron:ipc", "aeron:ipc?alias=a", "aeron:ipc", 5, 65536, 131072, 1408
    ),
    "Health": lambda: aeron.Health(is_live=True, is_ready=False, reasons=("recording 7 is not active",)),
    "Reconnect": lambda: aeron.Reconnect(min_delay=0.5),
    "StreamReport": lambda: aeron.StreamReport(
        kind="image",
        channel="aeron:ipc",
        stream_id=1,
        session_id=2,
        position=64,
        delivered_bytes=64,
        lost_bytes=None,
        possibly_lost_bytes=None,
    ),
    "RecordingChange": lambda: aeron.RecordingChange(1, 64, 2, 0, None),
    "RecordingExport": lambda: aeron.RecordingExport(1, 0, 64, 1, 0, 0, 0, (Path("trades.parquet"),), 100),
    "CopiedRange": lambda: aeron.CopiedRange(1, 0, 65536, 131072),
    "RecordingInfo": lambda: aeron.RecordingInfo(1, "trades", b"metadata", 0, 64, None),
    "RecordingSignal": lambda: aeron.RecordingSignal("START", 1, 2, 3, 4),
    "RecordingSubscription": lambda: aeron.RecordingSubscription(1, 2, "aeron:ipc"),
    "RetentionOutcome": lambda: aeron.RetentionOutcome(1, 0, 64, 128, False, "READER", "bars"),
    "RetentionPolicy": lambda: aeron.RetentionPolicy(None, 1001, "aeron:ipc", 1, None),
}
"""An object of each snapshot class. Snapshots are immutable values."""
OTHERS = {"Batch", "ChannelUriBuilder", "ReconnectReport", "Recordings"}
"""Classes with tests in other files. `Batch` and `Recordings` need contents; builders are compared by their texts. The
exceptions in a `ReconnectReport` equal only themselves."""


def live(stream: Stream, tmp_path: Path, driver: aeron.MediaDriver) -> dict[str, Any]:
    """Returns an object of each live class by class name. Such objects own threads, mappings or functions."""
    stream.publication.publish(b"x")
    headers: list[aeron.Header] = []
    while not headers:
        stream.subscription.poll(lambda _, header: headers.append(header))
    log = next((Path(driver.dir) / "publications").iterdir())
    server = aeron.Archive(tmp_path / "archive", driver=driver)
    archive = aeron.connect_archive(stream.client)
    persistent = archive.persistent_subscription(recording_id=0, live_channel="aeron:ipc", live_stream_id=1)
    merge = aeron.ReplayMerge(
        stream.client.add_subscription("aeron:udp?control-mode=manual", 1),
        archive,
        replay_channel="aeron:udp?session-id=1",
        replay_destination="aeron:udp?endpoint=127.0.0.1:0",
        live_destination="aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:20121",
        recording_id=0,
    )
    objects = [
        driver,
        server,
        archive,
        archive.signals(),
        persistent,
        persistent.batches(),
        archive.recorded_publisher("aeron:ipc", stream.stream_id),
        merge,
        stream.client,
        stream.publication,
        stream.subscription,
        stream.subscription.images[0],
        stream.subscription.batches(),
        stream.subscription.batches_async(),
        stream.client.add_publication("aeron:ipc", stream.stream_id),
        stream.client.add_counter(1001, "a counter"),
        stream.client.counters_reader,
        stream.client.async_next_session_id(1),
        stream.publication.claim(8),
        headers[0],
        aeron.CncFile(driver.dir),
        aeron.LogFile(log),
        aeron.FragmentAssembler(print),
        aeron.IdleStrategy.parse("noop"),
        aeron.BackoffIdleStrategy(),
        aeron.BusySpinIdleStrategy(),
        aeron.NoOpIdleStrategy(),
        aeron.SleepingIdleStrategy(),
        aeron.SleepingMillisIdleStrategy(),
        aeron.YieldingIdleStrategy(),
    ]
    return {type(thing).__name__: thing for thing in objects}


PLAIN = {
    "Agent",
    "AgentInvoker",
    "AgentRunner",
    "CompositeAgent",
    "DynamicCompositeAgent",
    "Follower",
    "RecordedBatches",
    "ShutdownSignalBarrier",
}
"""Classes written in Python that are not pickled."""
PROTOCOLS = {"AnyPublication", "ArrowArray", "ArrowSchema", "ArrowStream"}
"""Protocols, which are classes without instances."""


def public_classes() -> dict[str, type]:
    names = {name: getattr(aeron, name) for name in aeron.__all__}
    return {name: kind for name, kind in names.items() if inspect.isclass(kind) and name != "connect"}


def again(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_can_be_pickled_copied_and_compared_by_its_values(name: str) -> None:
    snapshot = SNAPSHOTS[name]()
    for other in (again(snapshot), copy.copy(snapshot), copy.deepcopy(snapshot), SNAPSHOTS[name]()):
        assert type(other) is type(snapshot)
        assert other == snapshot
        assert hash(other) == hash(snapshot)
        assert repr(other) == repr(snapshot)
    assert snapshot != object()


def test_snapshots_with_other_values_are_not_equal() -> None:
    assert aeron.LogFrame(64, 100, "a") != aeron.LogFrame(64, 100, "b")
    assert aeron.ErrorObservation(1, 2, 3, "a") != aeron.ErrorObservation(2, 2, 3, "a")


def test_values_that_were_read_from_a_driver_can_be_pickled(stream: Stream, driver: aeron.MediaDriver) -> None:
    counter = stream.client.add_counter(1001, "pickled", b"key")
    snapshot = next(each for each in stream.client.counters_reader if each.id == counter.id)
    assert again(snapshot) == snapshot
    assert snapshot.key == b"key".ljust(112, bytes(1))
    stream.publication.publish(b"hello")
    for path in (Path(driver.dir) / "publications").iterdir():
        with aeron.LogFile(path) as log:
            for frame in log.frames(0)[:2]:
                assert again(frame) == frame
                assert log.payload(0, again(frame), 10) == log.payload(0, frame, 10)
            far = aeron.LogFrame(2**64 - 1, 2**64 - 1, "beyond the term")
            assert log.payload(0, far, 10) == b""


def test_pickling_an_open_object_raises_an_error_that_names_it(
    stream: Stream, tmp_path: Path, driver: aeron.MediaDriver
) -> None:
    objects = live(stream, tmp_path, driver)
    for name, thing in objects.items():
        with pytest.raises(TypeError, match=f"cannot pickle '.*{name}' object"):
            pickle.dumps(thing)
    objects["BufferClaim"].abort()
    ours = {name for name, kind in public_classes().items() if not issubclass(kind, BaseException)}
    assert ours == {*SNAPSHOTS, *OTHERS, *PLAIN, *PROTOCOLS, *objects} & ours, "add a new class to one of the lists"
    assert ours - PLAIN - PROTOCOLS == {*SNAPSHOTS, *OTHERS, *objects} & ours


def test_pickled_errors_keep_their_codes() -> None:
    for kind in public_classes().values():
        if issubclass(kind, aeron.AeronError):
            assert str(again(kind("what happened"))) == "what happened"
    error = again(registration_error(11, "no such host", 7))
    assert (error.code, error.correlation_id, str(error)) == (11, 7, str(registration_error(11, "no such host", 7)))

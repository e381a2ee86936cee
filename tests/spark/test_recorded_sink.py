"""The exactly-once sink without Spark: staged partitions, and commits that are repeated, interrupted or killed."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.ports import free_port
from tests.spark.killed import committing
from tests.spark.killed.servers import Servers

import aeron
from aeron.spark import recorded_sink
from aeron.spark.errors import AeronDataLossError, AeronOptionError, AeronSparkError
from aeron.spark.options import RecordedWriteOptions, recorded_write_options
from aeron.spark.recorded_sink import BatchCommit, StagedPartition, TaskName, stage
from aeron.spark.recorded_state import MAX_STATE_LENGTH, DecidedBatch, SinkState
from live.shared_query import SharedArchive, SharedQuery

CHANNEL = "aeron:ipc?term-length=64k"
STAGING_STREAM_ID = 30

_stream_ids = itertools.count(700_000)
_queries = itertools.count()


class Sink:
    """The sink of a query, and the archive to which it records."""

    def __init__(self, archive: aeron.AeronArchive, driver: Any, directory: Path) -> None:
        self.archive = archive
        self.directory = directory
        self.query = f"query-{next(_queries)}"
        self.stream_id = next(_stream_ids)
        self.texts = {
            "channel": CHANNEL,
            "streamId": str(self.stream_id),
            "aeron.dir": str(driver.dir),
            "archive.controlChannel": "aeron:ipc",
            "archive.messageTimeoutMs": "5000",
        }

    @property
    def options(self) -> RecordedWriteOptions:
        return recorded_write_options(self.texts)

    def stage(self, batch_id: int, *partitions: list[bytes], attempt: int = 0) -> list[StagedPartition]:
        """Stages the messages of a batch by partition."""
        return [
            stage(batches(messages), self.options, "zero", TaskName(self.query, batch_id, number, attempt))
            for number, messages in enumerate(partitions)
        ]

    def commit(self, batch_id: int, staged: list[StagedPartition]) -> None:
        BatchCommit(self.options, batch_id, staged).run()

    def recorded(self) -> list[bytes]:
        """Returns the messages in the only recording of the stream, as a replay delivers them."""
        [recording] = self.archive.list_recordings(stream_id=self.stream_id)
        if recording.stop_position == recording.start_position:
            return []
        with self.archive.replay(recording.recording_id, stream_id=9000) as replay:
            return [message for batch in replay.batches() for message in batch.to_list()]

    def staged(self) -> int:
        """The number of staged recordings in the archive."""
        return len(self.archive.list_recordings(stream_id=STAGING_STREAM_ID))


def batches(messages: list[bytes]) -> Iterator[pa.RecordBatch]:
    for begin in range(0, len(messages), 100):
        yield pa.record_batch({"value": pa.array(messages[begin : begin + 100], pa.binary())})


def numbered(name: str, count: int, length: int = 0) -> list[bytes]:
    return [f"{name} {number}".encode().ljust(length, b".") for number in range(count)]


def joined(partitions: list[list[bytes]]) -> list[bytes]:
    return list(itertools.chain(*partitions))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[aeron.MediaDriver]:
    with (
        aeron.MediaDriver(client_liveness_timeout_ns=2_000_000_000, timer_interval_ns=50_000_000) as driver,
        aeron.Archive(directory, driver=driver, segment_file_length=64 * 1024, low_storage_space_threshold=0),
    ):
        yield driver


@pytest.fixture
def sink(server: aeron.MediaDriver, directory: Path) -> Iterator[Sink]:
    with aeron.connect(server) as client, aeron.connect_archive(client) as archive:
        yield Sink(archive, server, directory)


def test_the_batches_of_a_query_are_one_recording_in_the_order_of_their_partitions(sink: Sink) -> None:
    first = [numbered("a", 250), [], numbered("b", 3, length=5000)]
    second = [numbered("c", 1), numbered("d", 700)]
    sink.commit(0, sink.stage(0, *first))
    sink.commit(1, sink.stage(1, *second))
    assert sink.recorded() == list(itertools.chain(*first, *second))
    assert sink.staged() == 0


def test_a_batch_without_rows_leaves_the_recording_as_it_is(sink: Sink) -> None:
    sink.commit(0, sink.stage(0, [], []))
    sink.commit(1, sink.stage(1, numbered("a", 2)))
    assert sink.recorded() == numbered("a", 2)


def test_a_batch_that_runs_again_after_its_commit_is_not_recorded_again(sink: Sink) -> None:
    staged = sink.stage(0, numbered("first", 10))
    sink.commit(0, staged)
    sink.commit(0, staged)
    sink.commit(0, sink.stage(0, numbered("second", 10), attempt=1))
    assert sink.recorded() == numbered("first", 10)
    assert sink.staged() == 0


def test_a_batch_before_the_last_recorded_one_is_refused(sink: Sink) -> None:
    """The checkpoint was restored from an older copy. Its batch has other rows than the recorded one."""
    for batch_id in range(3):
        sink.commit(batch_id, sink.stage(batch_id, numbered("a", 10)))
    with pytest.raises(AeronSparkError, match="the recording already has batch 2 of this query; the checkpoint is old"):
        sink.commit(1, sink.stage(1, numbered("b", 10)))
    assert sink.recorded() == numbered("a", 10) * 3
    # The refused rows stay staged. Other tests count the staged recordings.
    for recording in sink.archive.list_recordings(stream_id=STAGING_STREAM_ID):
        sink.archive.purge_recording(recording.recording_id)


def test_a_recording_that_ends_before_its_last_batch_is_reported(sink: Sink) -> None:
    sink.commit(0, sink.stage(0, numbered("a", 10)))
    [recording] = sink.archive.list_recordings(stream_id=sink.stream_id)
    sink.commit(1, sink.stage(1, numbered("b", 10)))
    end = sink.archive.get_stop_position(recording.recording_id)
    sink.archive.truncate_recording(recording.recording_id, recording.stop_position or 0)
    staged = sink.stage(2, numbered("c", 10))
    lost = f"ends at position {recording.stop_position}, and batch 1 of this query ended at position {end}"
    with pytest.raises(AeronDataLossError, match=lost):
        sink.commit(2, staged)
    assert sink.recorded() == numbered("a", 10)
    for part in staged:
        sink.archive.purge_recording(part.recording_id or 0)


def test_a_later_batch_whose_recording_was_deleted_is_refused_and_starts_no_recording(sink: Sink) -> None:
    sink.commit(0, sink.stage(0, numbered("a", 10)))
    [recording] = sink.archive.list_recordings(stream_id=sink.stream_id)
    sink.archive.purge_recording(recording.recording_id)
    staged = sink.stage(1, numbered("b", 10))
    alias = f"the alias spark-{sink.query}"
    lost = rf"batch 1 on .*: the archive has no recording of stream {sink.stream_id} with {alias}.* a new checkpoint"
    with pytest.raises(AeronDataLossError, match=lost):
        sink.commit(1, staged)
    assert not sink.archive.list_recordings(stream_id=sink.stream_id)
    # The refused rows stay staged. Other tests count the staged recordings.
    for part in staged:
        sink.archive.purge_recording(part.recording_id or 0)


def test_the_state_of_an_earlier_version_is_continued(sink: Sink) -> None:
    """An earlier version stored the last batch without its end."""
    sink.commit(0, sink.stage(0, numbered("a", 10)))
    [recording] = sink.archive.list_recordings(stream_id=sink.stream_id)
    sink.archive.set_recording_metadata(recording.recording_id, b'{"spark-sink":1,"batch":0}')
    sink.commit(0, sink.stage(0, numbered("a", 10), attempt=1))
    sink.commit(1, sink.stage(1, numbered("b", 10)))
    assert sink.recorded() == numbered("a", 10) + numbered("b", 10)


def test_a_staged_recording_that_is_still_being_read_is_deleted_when_the_replay_has_ended(sink: Sink) -> None:
    staged = sink.stage(0, numbered("a", 500, length=1000))
    with sink.archive.replay(staged[0].recording_id or 0, stream_id=9003) as replay:
        replay.wait_connected(timeout=5)
        stopping = threading.Timer(0.3, replay.close)
        stopping.start()
        sink.commit(0, staged)
        stopping.join()
    assert sink.staged() == 0


def test_a_commit_that_records_more_with_each_attempt_is_repeated_until_it_is_complete(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_sink, "RETRY_TIMEOUT_S", 0.05)
    rows = numbered("a", 6)
    staged = sink.stage(0, rows)
    append, failures = BatchCommit._append, itertools.count()

    def append_one(commit: BatchCommit, publication: aeron.ExclusivePublication, messages: aeron.Batch) -> None:
        append(commit, publication, messages[:1])
        if len(messages) > 1:
            next(failures)
            sink.archive.wait_recorded(publication, publication.position, timeout=5)
            raise aeron.ArchiveTimeoutError("one message in each attempt")

    monkeypatch.setattr(BatchCommit, "_append", append_one)
    sink.commit(0, staged)
    assert next(failures) == 5
    assert sink.recorded() == rows


def test_a_commit_that_records_nothing_more_fails_after_the_timeout(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_sink, "RETRY_TIMEOUT_S", 0.05)
    staged = sink.stage(0, numbered("a", 6))

    def refuse(commit: BatchCommit, publication: aeron.ExclusivePublication, messages: aeron.Batch) -> None:
        raise aeron.ArchiveTimeoutError("no attempt succeeds")

    with monkeypatch.context() as patches:
        patches.setattr(BatchCommit, "_append", refuse)
        with pytest.raises(AeronSparkError, match=r"was not committed for 0.05 s: no attempt succeeds"):
            sink.commit(0, staged)
    sink.commit(0, staged)
    assert sink.recorded() == numbered("a", 6)


def test_the_rows_of_a_task_that_failed_are_not_recorded(sink: Sink) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(numbered("lost", 500))
        raise OSError("the task fails here")

    with pytest.raises(OSError, match="the task fails here"):
        stage(failing(), sink.options, "zero", TaskName(sink.query, 0, 0, 0))
    speculative = sink.stage(0, numbered("a", 5), attempt=1)
    sink.commit(0, sink.stage(0, numbered("a", 5), attempt=2))
    assert sink.recorded() == numbered("a", 5)
    assert sink.staged() == 0
    assert speculative[0].recording_id is not None


def test_reserved_values_are_recorded_with_their_rows(sink: Sink) -> None:
    sink.texts["reservedValue"] = "column"
    rows = pa.record_batch({"value": [b"a", b"b"], "reserved_value": pa.array([7, 8], pa.int64())})
    sink.commit(0, [stage(iter([rows]), sink.options, "column", TaskName(sink.query, 0, 0, 0))])
    [recording] = sink.archive.list_recordings(stream_id=sink.stream_id)
    with sink.archive.replay(recording.recording_id, stream_id=9001) as replay:
        assert [value for batch in replay.batches() for value in batch.reserved_values] == [7, 8]


@pytest.mark.parametrize("step", committing.STEPS)
def test_a_commit_that_was_interrupted_is_continued_with_the_rows_that_it_had_decided(
    sink: Sink, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """08-86"""
    sink.commit(0, sink.stage(0, numbered("earlier", 20)))
    first = [numbered("a", 300), numbered("b", 3, length=5000)]
    again = [numbered("x", 300), numbered("y", 3, length=5000)]

    def interrupt() -> None:
        raise InterruptedError(step)

    with monkeypatch.context() as patches:
        committing.stop_at(step, interrupt, patches.setattr)
        with pytest.raises(InterruptedError, match=step):
            sink.commit(1, sink.stage(1, *first))
    sink.commit(1, sink.stage(1, *again, attempt=1))
    sink.commit(2, sink.stage(2, numbered("later", 20)))
    expected = again if step == "begin" else first
    assert sink.recorded() == numbered("earlier", 20) + joined(expected) + numbered("later", 20)
    assert sink.staged() == 0


@pytest.mark.parametrize("fragments", [1, 3])
def test_a_message_that_was_recorded_partly_is_there_once_for_each_reader(
    sink: Sink, fragments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """08-86"""
    rows = numbered("a", 20, length=5000)

    def interrupt() -> None:
        raise InterruptedError

    with monkeypatch.context() as patches:
        committing.stop_at("appended", interrupt, patches.setattr)
        with pytest.raises(InterruptedError):
            sink.commit(0, sink.stage(0, rows))
    [recording] = sink.archive.list_recordings(stream_id=sink.stream_id)
    with sink.archive.replay(recording.recording_id, stream_id=9002) as replay:
        ends = [position for batch in replay.batches() for position in batch.positions]
    # Of the last message, only the first frames stay. This is the state after a kill while the message was recorded.
    sink.archive.truncate_recording(recording.recording_id, ends[-2] + fragments * 1408)
    sink.commit(0, sink.stage(0, [], attempt=1))
    sink.commit(1, sink.stage(1, numbered("b", 3)))
    expected = rows + numbered("b", 3)
    assert sink.recorded() == expected
    for directory in (None, str(sink.directory)):
        shared = SharedArchive(sink.texts["aeron.dir"], directory)
        tables = [shared.read(piece) for piece in shared.plan(sink.stream_id)]
        assert [value for table in tables for value in table["value"].to_pylist()] == expected
    query = SharedQuery(shared, sink.stream_id, starting_offsets="earliest", max_rows_per_trigger=3)
    while query.run_batch() is not None:
        pass
    assert [value for table in query.finished for value in table["value"].to_pylist()] == expected


@pytest.mark.parametrize("step", committing.STEPS)
def test_a_commit_that_was_killed_is_continued_by_the_next_run(sink: Sink, step: str) -> None:
    """08-86"""
    rows = [numbered("a", 300), numbered("b", 3, length=5000)]
    staged = sink.stage(0, *rows)
    arguments = [step, json.dumps(sink.texts), json.dumps([committing.to_json(part) for part in staged])]
    killed = subprocess.run([sys.executable, committing.__file__, *arguments], check=False)
    assert killed.returncode == -9
    sink.commit(0, staged)
    assert sink.recorded() == joined(rows)
    assert sink.staged() == 0


def test_rows_reach_an_archive_on_another_driver(tmp_path: Path) -> None:
    control = f"aeron:udp?endpoint=localhost:{free_port()}"
    settings = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0, "control_channel": control}
    with (
        aeron.MediaDriver() as driver,
        aeron.MediaDriver() as other,
        aeron.Archive(tmp_path, driver=other, **settings),
        aeron.connect(other) as client,
        aeron.connect_archive(client) as archive,
    ):
        sink = Sink(archive, driver, tmp_path)
        sink.texts["archive.controlChannel"] = control
        sink.texts["channel"] = f"aeron:udp?endpoint=localhost:{free_port()}|term-length=64k"
        first, second = numbered("a", 300), numbered("b", 3, length=5000)
        sink.commit(0, sink.stage(0, first, second))
        sink.commit(1, sink.stage(1, second))
        assert sink.recorded() == first + second + second
        assert sink.staged() == 0


def test_a_network_stream_of_the_drivers_own_archive_needs_no_other_subscriber(sink: Sink) -> None:
    sink.texts["channel"] = f"aeron:udp?endpoint=localhost:{free_port()}|term-length=64k"
    for batch_id in range(2):
        sink.commit(batch_id, sink.stage(batch_id, numbered("a", 300)))
    assert sink.recorded() == 2 * numbered("a", 300)


def test_a_follower_reads_each_row_once_while_the_sink_writes(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [numbered(name, 100, length=3000) for name in "abcd"]
    received: list[bytes] = []
    sink.commit(0, sink.stage(0, rows[0]))
    with sink.archive.follow(channel="aeron:ipc", stream_id=sink.stream_id, position="earliest") as follower:

        def receive(count: int) -> None:
            for batch in follower.batches(timeout=10):
                received.extend(batch.to_list())
                if len(received) >= count:
                    return

        receive(100)
        sink.commit(1, sink.stage(1, rows[1]))
        receive(200)
        with monkeypatch.context() as patches:
            committing.stop_at("appending", lambda: (_ for _ in ()).throw(InterruptedError), patches.setattr)
            with pytest.raises(InterruptedError):
                sink.commit(2, sink.stage(2, rows[2]))
        sink.commit(2, sink.stage(2, rows[3], attempt=1))
        sink.commit(3, sink.stage(3, rows[3]))
        receive(400)
    assert received == joined(rows)


def test_commits_of_one_batch_at_the_same_time_record_it_once(sink: Sink) -> None:
    staged = [sink.stage(0, numbered("a", 200), attempt=attempt) for attempt in range(3)]
    threads = [threading.Thread(target=sink.commit, args=(0, each)) for each in staged]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sink.recorded() == numbered("a", 200)


def test_the_commit_fails_if_the_state_of_the_sink_is_lost(sink: Sink) -> None:
    """08-87"""
    sink.commit(0, sink.stage(0, numbered("a", 2)))
    [recording] = sink.archive.list_recordings(stream_id=sink.stream_id)
    for metadata in (b"", b"{}", b"notes of a user"):
        sink.archive.set_recording_metadata(recording.recording_id, metadata)
        with pytest.raises(
            AeronSparkError, match="unknown which batches the recording has; start the query with a new checkpoint"
        ):
            sink.commit(1, sink.stage(1, numbered("b", 2)))
    assert sink.recorded() == numbered("a", 2)


def test_the_commit_fails_if_staged_rows_were_deleted(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """08-87"""
    staged = sink.stage(0, numbered("a", 2), numbered("b", 2))
    assert staged[1].recording_id is not None
    sink.archive.purge_recording(staged[1].recording_id)
    with pytest.raises(AeronDataLossError, match=rf"staged recording {staged[1].recording_id} was deleted"):
        sink.commit(0, staged)


@pytest.mark.parametrize(
    ("victims", "step"),
    [
        (["archive"], "decided"),
        (["archive"], "appending"),
        (["archive"], "appended"),
        (["driver", "archive"], "appending"),
    ],
)
def test_a_commit_goes_on_after_a_kill_of_the_archive_or_the_driver(
    shared_memory: Path, victims: list[str], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """08-86"""
    servers = Servers(shared_memory)
    try:
        with servers.connected() as archive:
            sink = Sink(archive, servers, servers.archive_directory)
            sink.texts["aeron.driver.timeout"] = "1000"
            rows = [numbered("a", 300), numbered("b", 3, length=5000)]
            staged = sink.stage(0, *rows)
        killed = []

        def kill() -> None:
            if not killed:
                killed.extend(victims)
                for victim in victims:
                    servers.kill(victim)
                for victim in victims:
                    servers.start(victim)

        committing.stop_at(step, kill, monkeypatch.setattr)
        sink.commit(0, staged)
        assert killed == victims
        with servers.connected() as sink.archive:
            assert sink.recorded() == joined(rows)
    finally:
        servers.close()


def test_the_state_is_the_same_after_it_was_stored_and_read() -> None:
    decided = DecidedBatch(8, 4096, 12, (5, 6, 7, 2, 9, 10, 3))
    for state in (SinkState(), SinkState(7), SinkState(7, decided), SinkState(7, DecidedBatch(8, 0, 0, ()))):
        assert SinkState.decode(state.encode()) == state
    assert b'"5-7,2,9-10,3"' in SinkState(7, decided).encode()
    with pytest.raises(AeronSparkError, match=rf"partitions with rows takes \d+ bytes, more than {MAX_STATE_LENGTH}"):
        SinkState(7, DecidedBatch(8, 0, 0, tuple(range(0, 10_000, 2)))).encode()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"archive.stagingStreamId": "1001"}, "archive.stagingStreamId: the same as streamId, got '1001'"),
        ({"channel": "aeron:ipc?alias=a"}, "option channel: the sink sets alias itself for a recorded stream, got 'a'"),
        ({"channel": "aeron:ipc?session-id=7"}, "option channel: the sink sets session-id itself"),
        ({"channel": "aeron-spy:aeron:ipc"}, "option channel: "),
    ],
)
def test_options_that_contradict_each_other_are_refused(changes: dict[str, str], text: str) -> None:
    texts = {"channel": "aeron:ipc", "streamId": "1001", "archive.controlChannel": "aeron:ipc"}
    with pytest.raises(AeronOptionError, match=text):
        recorded_write_options({**texts, **changes})

"""Tests of queries on the recordings of a running archive, without Spark. They read rows from files or by replays."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron
from aeron import _aeron
from live.shared_query import SharedArchive, SharedQuery
from live.streams import numbered, publish

TERM = 64 * 1024
CHANNEL = "aeron:ipc?term-length=64k"


@pytest.fixture
def control_channel() -> str:
    return f"aeron:udp?endpoint=localhost:{free_port()}"


@pytest.fixture
def server(driver: aeron.MediaDriver, home: Path, control_channel: str) -> Iterator[aeron.Archive]:
    with aeron.Archive(
        home / "archive",
        driver=driver,
        segment_file_length=2 * TERM,
        low_storage_space_threshold=0,
        control_channel=control_channel,
    ) as server:
        yield server


@pytest.fixture
def client(driver: aeron.MediaDriver, server: aeron.Archive) -> Iterator[aeron.Aeron]:
    with aeron.connect(driver) as client:
        yield client


@pytest.fixture
def archive(client: aeron.Aeron) -> Iterator[aeron.AeronArchive]:
    with aeron.connect_archive(client) as archive:
        yield archive


@pytest.fixture
def replays(driver: aeron.MediaDriver, server: aeron.Archive) -> SharedArchive:
    """Returns settings for readers that cannot read the archive's directory."""
    return SharedArchive(str(driver.dir))


@pytest.fixture
def files(driver: aeron.MediaDriver, server: aeron.Archive, home: Path) -> SharedArchive:
    """Returns settings for readers that can read the archive's directory."""
    return SharedArchive(str(driver.dir), str(home / "archive"))


class Recorded:
    """A recorded publication and its messages."""

    def __init__(self, archive: aeron.AeronArchive, stream_id: int, channel: str = CHANNEL) -> None:
        self.archive = archive
        self.publication = archive.add_recorded_exclusive_publication(channel, stream_id)
        self.sent: list[bytes] = []

    def send(self, count: int, size: int = 100) -> None:
        """Publishes messages, and waits until they are recorded."""
        self.sent += publish(self.publication, count, first=len(self.sent), size=size)
        self.wait()

    def wait(self) -> None:
        self.recording = self.archive.wait_recorded(self.publication, self.publication.position, timeout=10)
        # A batch with arrival times ends at the last entry of the index. The archive writes the entry in its first duty
        # cycle in which the newest data is older than 1 ms. The responses to two requests come from two duty cycles.
        time.sleep(0.002)
        for _ in range(2):
            self.archive.get_max_recorded_position(self.recording.recording_id)


@pytest.fixture
def recorded(archive: aeron.AeronArchive, stream_id: int) -> Recorded:
    return Recorded(archive, stream_id)


def test_files_and_replays_return_the_same_rows_with_all_published_messages(
    recorded: Recorded, files: SharedArchive, replays: SharedArchive, stream_id: int
) -> None:
    recorded.send(300)
    recorded.send(5, size=5000)
    recorded.send(1500)
    queries = [SharedQuery(archive, stream_id, starting_offsets="earliest") for archive in (files, replays)]
    for query in queries:
        assert query.drain() == recorded.sent
    assert pa.concat_tables(queries[0].finished).equals(pa.concat_tables(queries[1].finished))
    assert [json.loads(end)["recordings"] for end in queries[0].logged] == [
        json.loads(end)["recordings"] for end in queries[1].logged
    ]
    recorded.send(10)
    for query in queries:
        assert query.drain() == recorded.sent
    partition = queries[0].source.partitions(queries[0].logged[-2], queries[0].logged[-1])[0]
    assert not files.reader(partition).is_replay
    assert replays.reader(partition).is_replay


@pytest.mark.parametrize("by", ["files", "replays"])
@pytest.mark.parametrize("limits", [{"max_bytes_per_trigger": 20_000}, {"max_rows_per_trigger": 7}])
def test_a_limited_batch_ends_between_two_messages(
    recorded: Recorded, stream_id: int, by: str, limits: dict[str, int], request: pytest.FixtureRequest
) -> None:
    for _ in range(20):
        recorded.send(3)
        recorded.send(1, size=6000)
    query = SharedQuery(request.getfixturevalue(by), stream_id, starting_offsets="earliest", **limits)
    assert query.drain() == recorded.sent
    sizes = [sum(map(len, table["value"].to_pylist())) for table in query.finished]
    assert max(sizes) <= limits.get("max_bytes_per_trigger", 10**9)
    assert max(table.num_rows for table in query.finished) <= limits.get("max_rows_per_trigger", 10**9)
    assert len(query.finished) > 5


@pytest.mark.parametrize("by", ["files", "replays"])
def test_no_batch_ends_within_a_message_while_a_publisher_sends(
    recorded: Recorded, stream_id: int, by: str, request: pytest.FixtureRequest
) -> None:
    query = SharedQuery(request.getfixturevalue(by), stream_id, starting_offsets="earliest")
    for number in range(150):
        # The archive records the fragments of these messages in several blocks.
        message = numbered(number, 7500)
        recorded.publication.publish(message, timeout=5)
        recorded.sent.append(message)
        if number % 3 == 0:
            query.run_batch()
    recorded.wait()
    assert query.drain() == recorded.sent


def test_the_first_batch_has_all_messages_and_its_end_offset_is_enough_to_read_it_again(
    archive: aeron.AeronArchive, recorded: Recorded, replays: SharedArchive, stream_id: int
) -> None:
    """08-91"""
    recorded.send(10)
    query = SharedQuery(replays, stream_id, starting_offsets="earliest")
    first = query.run_batch()
    assert query.values() == recorded.sent
    recorded.send(5)
    later = Recorded(archive, stream_id)
    later.send(3)
    query.restart()
    assert query.rows_of(0).equals(first), "the batch has other messages, because some were recorded later"
    assert query.run_batch() is not None
    assert query.values() == recorded.sent + later.sent


def test_the_first_batch_has_no_rows_if_the_query_starts_at_the_end(
    recorded: Recorded, replays: SharedArchive, stream_id: int
) -> None:
    """08-91"""
    recorded.send(10)
    query = SharedQuery(replays, stream_id)
    first = query.run_batch()
    assert first is not None
    assert first.num_rows == 0
    recorded.send(5)
    query.restart()
    assert query.rows_of(0).num_rows == 0, "the batch has messages that were recorded later"
    assert query.drain() == recorded.sent[10:]


def test_a_checkpoint_of_an_earlier_release_is_read(recorded: Recorded, replays: SharedArchive, stream_id: int) -> None:
    """08-91: its first offset is the start of the query, and its first batch has no rows."""
    recorded.send(10)
    query = SharedQuery(replays, stream_id, starting_offsets="earliest")
    assert query.log()
    offset = json.loads(query.logged[0])
    query.logged = [json.dumps({"aeron": 1, "archive": offset["archive"], "recordings": offset.pop("starts")})]
    assert query.rows_of(0).num_rows == 0
    query.restart()
    assert query.drain() == recorded.sent
    assert [len(table) for table in query.finished] == [0, 10]


def test_a_recording_id_that_does_not_exist_is_an_error(recorded: Recorded, replays: SharedArchive) -> None:
    """08-92"""
    recorded.send(10)
    id_ = recorded.recording.recording_id
    for wanted, missing in (((55, 55), "recording 55"), ((id_ + 1, 55), f"recording from {id_ + 1} to 55")):
        ids = {"recording_ids": [(id_, id_), wanted]}
        for read in (
            lambda ids=ids: replays.plan(**ids),
            lambda ids=ids: SharedQuery(replays, None, **ids).run_batch(),
        ):
            with pytest.raises(aeron.AeronError, match=f"option recordingId: the archive has no {missing}") as refused:
                read()
            assert refused.value.code == "OPTION"  # type: ignore[attr-defined]
    assert len(replays.plan(recording_ids=[(id_, 55)])) == 1


def test_a_checkpoint_continues_with_more_streams_and_refuses_fewer(
    archive: aeron.AeronArchive, recorded: Recorded, replays: SharedArchive, stream_id: int
) -> None:
    """08-93"""
    other = Recorded(archive, stream_id + 1)
    for each in (recorded, other):
        each.send(5)
    query = SharedQuery(replays, stream_id, starting_offsets="earliest")
    query.drain()
    query._arguments = None, {"channel": "ipc", "starting_offsets": "latest"}
    query.restart()
    assert query.drain() == recorded.sent + other.sent
    query._arguments = stream_id + 1, {}
    query.restart()
    missing = f"option streamId: the checkpoint has a position in recording {recorded.recording.recording_id} of stream"
    with pytest.raises(aeron.AeronError, match=missing):
        query.log()


def test_a_batch_that_runs_again_after_a_restart_has_the_same_rows(
    archive: aeron.AeronArchive, recorded: Recorded, replays: SharedArchive, stream_id: int
) -> None:
    query = SharedQuery(replays, stream_id, starting_offsets="earliest")
    for count in (3, 200, 50):
        recorded.send(count)
        Recorded(archive, stream_id).send(count)
        assert query.log()
        before = query.rows_of(len(query.finished))
        recorded.send(count)
        query.restart()
        after = query.run_batch()
        assert after is not None
        assert after.equals(before)
    query.drain()
    by_recording = pa.concat_tables(query.finished).sort_by([("recording_id", "ascending"), ("position", "ascending")])
    assert by_recording["value"].to_pylist()[: len(recorded.sent)] == recorded.sent


def test_a_recording_that_appears_later_is_read_from_its_start(
    archive: aeron.AeronArchive, recorded: Recorded, files: SharedArchive, stream_id: int
) -> None:
    query = SharedQuery(files, stream_id)
    recorded.send(4)
    query.drain()
    later = Recorded(archive, stream_id)
    later.send(6)
    assert query.drain()[-6:] == later.sent
    # The offset of the batch says where the recording starts, so one more batch is enough.
    assert json.loads(query.logged[-1])["starts"].popitem()[1] == 0
    query.restart()
    assert query.rows_of(len(query.logged) - 1)["value"].to_pylist() == later.sent


def test_two_queries_on_one_recording_read_the_same_rows(
    recorded: Recorded, files: SharedArchive, stream_id: int
) -> None:
    queries = [SharedQuery(files, stream_id, starting_offsets="earliest") for _ in range(2)]
    recorded.send(40)
    queries[0].drain()
    recorded.send(2)
    assert [query.drain() for query in queries] == [recorded.sent] * 2


def test_a_restarted_query_reads_all_messages_that_were_recorded_while_it_was_down(
    recorded: Recorded, files: SharedArchive, stream_id: int
) -> None:
    query = SharedQuery(files, stream_id)
    query.run_batch()
    recorded.send(5)
    query.drain()
    query.source.close()
    recorded.send(3000)
    query.restart()
    assert query.drain() == recorded.sent


@pytest.mark.parametrize("by", ["files", "replays"])
def test_a_purge_of_data_that_the_query_has_not_read_is_an_error_with_the_positions(
    archive: aeron.AeronArchive, recorded: Recorded, stream_id: int, by: str, request: pytest.FixtureRequest
) -> None:
    query = SharedQuery(request.getfixturevalue(by), stream_id, starting_offsets="earliest")
    query.run_batch()
    recorded.send(4000)
    assert query.log()
    id_ = recorded.recording.recording_id
    archive.purge_segments(id_, 2 * TERM)
    session = recorded.publication.session_id
    lost = (
        f"recording {id_} of stream {stream_id} session {session} from 0 to {2 * TERM} of the archive on aeron:ipc "
        f"cannot be read: it was purged to {2 * TERM}"
    )
    with pytest.raises(aeron.AeronError, match=lost) as refused:
        query.run_batch()
    assert refused.value.code == "DATA_LOSS"  # type: ignore[attr-defined]
    lenient = SharedQuery(query.archive, stream_id, starting_offsets="earliest", fail_on_data_loss=False)
    lenient.logged = query.logged
    lenient.finished = query.finished
    values = lenient.drain()
    assert values == recorded.sent[len(recorded.sent) - len(values) :]
    assert lenient.report()["lostBytes"] == 2 * TERM
    assert lost in "".join(lenient.source.take_lines())


def test_a_query_starts_at_positions_or_at_the_offset_of_a_private_archive(
    recorded: Recorded, files: SharedArchive, stream_id: int
) -> None:
    recorded.send(3)
    position = recorded.publication.position
    recorded.send(4)
    id_, session = recorded.recording.recording_id, recorded.publication.session_id
    private = {"aeron": 1, "archive": "private:" + "0" * 32, "recordings": {f"{stream_id}/{session}/0": position}}
    for offsets in ({str(id_): position}, private):
        assert SharedQuery(files, stream_id, starting_offsets=json.dumps(offsets)).drain() == recorded.sent[3:]
    end = recorded.publication.position
    with pytest.raises(aeron.AeronError, match=f"recording {id_} has positions 0 to {end}, not {end + 32}"):
        SharedQuery(files, stream_id, starting_offsets=json.dumps({str(id_): end + 32})).drain()
    private["recordings"] = {f"{stream_id}/{session + 1}/0": position}
    with pytest.raises(aeron.AeronError, match=f"no recording of stream {stream_id} session {session + 1}"):
        SharedQuery(files, stream_id, starting_offsets=json.dumps(private)).drain()


def test_a_query_with_available_now_ends_at_the_positions_of_its_start(
    archive: aeron.AeronArchive, recorded: Recorded, replays: SharedArchive, stream_id: int
) -> None:
    recorded.send(20)
    query = SharedQuery(replays, stream_id, starting_offsets="earliest", max_rows_per_trigger=6)
    query.source.prepare_for_available_now()
    query.run_batch()
    recorded.send(5)
    Recorded(archive, stream_id).send(5)
    assert query.drain() == recorded.sent[:20]
    query.restart()
    query.source.prepare_for_available_now()
    assert len(query.drain()) == 30


def test_the_report_has_the_lag_of_each_recording(recorded: Recorded, files: SharedArchive, stream_id: int) -> None:
    query = SharedQuery(files, stream_id, starting_offsets="earliest", max_rows_per_trigger=10)
    recorded.send(30)
    query.run_batch()
    query.run_batch()
    key = f"{stream_id}/{recorded.publication.session_id}/{recorded.recording.recording_id}"
    end, taken = recorded.publication.position, json.loads(query.logged[-1])["recordings"][key]
    report = query.report()
    assert report["recordings"] == {key: end}
    assert report["lagBytes"] == {key: end - taken}
    assert report["backlogBytes"] == end - taken


@pytest.mark.parametrize("by", ["files", "replays"])
@pytest.mark.parametrize("cutting", [{}, {"min_partitions": 2}, {"min_partitions": 9}, {"max_rows_per_partition": 100}])
def test_a_batch_read_has_each_message_in_one_partition(
    recorded: Recorded, stream_id: int, by: str, cutting: dict[str, int], request: pytest.FixtureRequest
) -> None:
    recorded.send(3000)
    recorded.send(3, size=7000)
    shared: SharedArchive = request.getfixturevalue(by)
    partitions = shared.plan(stream_id, **cutting)
    tables = [shared.read(partition) for partition in partitions]
    assert [value for table in tables for value in table["value"].to_pylist()] == recorded.sent
    segments = -(-recorded.publication.position // (2 * TERM))
    assert len(partitions) >= min(cutting.get("min_partitions", 1), recorded.publication.position // TERM)
    if not cutting:
        assert len(partitions) == segments
    if rows := cutting.get("max_rows_per_partition"):
        assert max(table.num_rows for table in tables) <= rows


def test_a_batch_read_is_bounded_by_positions_and_selects_recordings(
    archive: aeron.AeronArchive, recorded: Recorded, files: SharedArchive, stream_id: int
) -> None:
    ends = []
    for _ in range(3):
        recorded.send(10)
        ends.append(recorded.publication.position)
    other = Recorded(archive, stream_id)
    other.send(2)
    id_ = recorded.recording.recording_id

    def values(stream: int | None = stream_id, **options: object) -> list[bytes]:
        return [value for piece in files.plan(stream, **options) for value in files.read(piece)["value"].to_pylist()]

    bounds = {"starting_offsets": json.dumps({str(id_): ends[0]}), "ending_offsets": json.dumps({str(id_): ends[1]})}
    assert values(**bounds) == recorded.sent[10:20]
    assert values(starting_offsets=bounds["starting_offsets"]) == recorded.sent[10:] + other.sent
    assert values(starting_offsets="latest") == []
    assert values(None, recording_ids=[(other.recording.recording_id, 2**63 - 1)]) == other.sent
    assert values(channel="term-length=64k") == recorded.sent + other.sent
    assert values(channel="localhost:1") == []
    with pytest.raises(aeron.AeronError, match=f"endingOffsets: recording {id_} is not among the selected recordings"):
        values(None, recording_ids=[(id_ + 1, id_ + 1)], ending_offsets=bounds["ending_offsets"])


WITH_TIME = pa.schema([("timestamp", pa.timestamp("us", tz="UTC"))])


def test_rows_have_arrival_times_only_if_the_reader_can_read_the_archives_directory(
    recorded: Recorded, files: SharedArchive, replays: SharedArchive, stream_id: int, home: Path
) -> None:
    recorded.send(10)
    (partition,) = files.plan(stream_id)
    assert files.read(partition, WITH_TIME)["timestamp"].null_count == 0
    assert replays.read(partition, WITH_TIME)["timestamp"].null_count == 10
    elsewhere = SharedArchive(files.aeron_dir, str(home / "elsewhere"))
    with pytest.raises(aeron.AeronError, match="column timestamp needs the archive's directory on each executor"):
        elsewhere.read(partition, WITH_TIME)
    assert elsewhere.reader(partition).is_replay


def test_every_row_has_an_arrival_time_that_is_the_same_in_a_second_read(
    recorded: Recorded, files: SharedArchive, stream_id: int
) -> None:
    query = SharedQuery(files, stream_id, starting_offsets="earliest")
    read: list[tuple[str, pa.Table]] = []
    for number in range(200):
        recorded.publication.publish(numbered(number), timeout=5)
        recorded.publication.publish(numbered(number), timeout=5)
        if query.log():
            batch = len(query.logged) - 1
            partitions = query.source.partitions(query.start(batch), query.logged[batch])
            read += [(partition, files.read(partition, WITH_TIME)) for partition in partitions]
    assert sum(table.num_rows for _, table in read) > 300
    for partition, table in read:
        assert table["timestamp"].null_count == 0
        assert files.read(partition, WITH_TIME).equals(table)


def test_a_read_is_bounded_by_times(
    archive: aeron.AeronArchive,
    recorded: Recorded,
    files: SharedArchive,
    replays: SharedArchive,
    stream_id: int,
) -> None:
    times = []
    for count in (5, 2000, 7):
        times.append(f"@{time.time_ns() // 1000}")
        time.sleep(0.02)
        recorded.send(count)
        time.sleep(0.02)
    times.append(f"@{time.time_ns() // 1000}")

    def values(first: int, last: int) -> list[bytes]:
        found = []
        for shared in (files, replays):
            pieces = shared.plan(stream_id, starting_offsets=times[first], ending_offsets=times[last])
            found.append([value for piece in pieces for value in shared.read(piece)["value"].to_pylist()])
        assert found[0] == found[1]
        return found[0]

    for _ in ("an active recording", "a stopped recording"):
        assert values(0, 3) == recorded.sent
        assert values(0, 1) == recorded.sent[:5]
        assert values(1, 2) == recorded.sent[5:2005]
        assert values(2, 3) == recorded.sent[2005:]
        assert values(3, 3) == []
        archive.try_stop_recording(recorded.publication)


def test_the_directory_of_another_archive_is_not_read(
    recorded: Recorded, files: SharedArchive, driver: aeron.MediaDriver, stream_id: int, home: Path
) -> None:
    recorded.send(10)
    options = {"archive_id": 4711, "control_stream_id": 4711, "local_control_stream_id": 4711}
    with aeron.Archive(home / "other", driver=driver, low_storage_space_threshold=0, **options):
        other = SharedArchive(files.aeron_dir, str(home / "other"))
        query = SharedQuery(other, stream_id, starting_offsets="earliest")
        assert query.drain() == recorded.sent
        assert "is the directory of archive 4711, not of archive" in "".join(query.source.take_lines())
        (partition,) = other.plan(stream_id)
        assert other.reader(partition).is_replay


def test_a_query_connects_to_a_restarted_archive_and_reads_the_same_rows(
    driver: aeron.MediaDriver, home: Path, stream_id: int
) -> None:
    def server() -> aeron.Archive:
        return aeron.Archive(home / "archive", driver=driver, low_storage_space_threshold=0)

    shared = SharedArchive(str(driver.dir), str(home / "archive"))
    query = SharedQuery(shared, stream_id, starting_offsets="earliest")
    with server(), aeron.connect(driver) as client, aeron.connect_archive(client) as archive:
        recorded = Recorded(archive, stream_id)
        recorded.send(100)
        query.run_batch()
        (planned,) = query.source.partitions(query.start(0), query.logged[0])
        before = shared.read(planned)
    with server():
        assert shared.read(planned).equals(before), "a task read other rows after the restart"
        assert not shared.reader(planned).is_replay
        query.restart()
        assert query.drain() == recorded.sent


def test_a_query_without_a_running_archive_fails_after_the_timeout(driver: aeron.MediaDriver, stream_id: int) -> None:
    query = SharedQuery(SharedArchive(str(driver.dir), timeout_ms=300), stream_id)
    with pytest.raises(aeron.AeronError, match=r"no connection to the archive on aeron:ipc\S* within 300ms") as refused:
        query.run_batch()
    assert refused.value.code == "NOT_CONNECTED"  # type: ignore[attr-defined]


def test_a_worker_with_an_embedded_driver_replays_over_response_channels(
    server: aeron.Archive, control_channel: str, recorded: Recorded, replays: SharedArchive, stream_id: int
) -> None:
    recorded.send(500)
    recorded.send(3, size=8000)
    control = control_channel
    responses = f"aeron:udp?control-mode=response|control=localhost:{free_port()}"
    remote = SharedArchive(
        "", None, control, responses, responses, embedded_driver=True, connections=_aeron.ArchiveConnections()
    )
    (partition,) = replays.plan(stream_id)
    assert remote.read(partition).equals(replays.read(partition))
    assert SharedQuery(remote, stream_id, starting_offsets="earliest").drain() == recorded.sent
    assert len(remote.connections) == 1, "the tasks do not share one client and one control session"
    remote.connections.close()


def test_an_unused_connection_is_closed_after_some_time_and_opened_again_for_the_next_read(
    recorded: Recorded, replays: SharedArchive, stream_id: int
) -> None:
    connections = _aeron.ArchiveConnections(200)
    recorded.send(2)
    shared = SharedArchive(replays.aeron_dir, connections=connections)
    (partition,) = shared.plan(stream_id)
    assert len(connections) == 1
    eventually(lambda: len(connections) == 0, 10)
    assert shared.read(partition).num_rows == 2


def test_tasks_wait_while_the_archive_runs_its_maximum_number_of_replays(
    driver: aeron.MediaDriver, home: Path, stream_id: int
) -> None:
    with (
        aeron.Archive(
            home / "archive",
            driver=driver,
            low_storage_space_threshold=0,
            segment_file_length=TERM,
            max_concurrent_replays=1,
        ),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        recorded = Recorded(archive, stream_id)
        recorded.send(3000)
        shared = SharedArchive(str(driver.dir))
        partitions = shared.plan(stream_id)
        with ThreadPoolExecutor(4) as pool:
            tables = list(pool.map(shared.read, partitions))
    assert [value for table in tables for value in table["value"].to_pylist()] == recorded.sent


def test_credentials_are_sent_to_the_archive_and_appear_in_no_error(
    driver: aeron.MediaDriver, home: Path, stream_id: int
) -> None:
    salt = b"a salt for tests"
    hashed = hashlib.scrypt(b"pass-word", salt=salt, n=2**12, r=8, p=1, dklen=32)
    secret = "$".join(
        ["", "scrypt", "ln=12,r=8,p=1", *(b64encode(part).decode().rstrip("=") for part in (salt, hashed))]
    )
    users = home / "users.toml"
    users.touch(mode=0o600)
    users.write_text(f'[[user]]\nname = "ann"\nrole = "read"\nsecret = "{secret}"\n')
    with aeron.Archive(home / "archive", driver=driver, users_file=users, low_storage_space_threshold=0):
        known = SharedArchive(str(driver.dir), credentials=b"ann:pass-word")
        assert known.plan(stream_id) == []
        query = SharedQuery(SharedArchive(str(driver.dir), credentials=b"ann:wrong-word"), stream_id)
        with pytest.raises(aeron.AeronError, match="authentication rejected") as refused:
            query.run_batch()
    assert "wrong-word" not in str(refused.value)
    assert "wrong-word" not in "".join(query.source.take_lines())


def test_the_committed_offset_is_stored_as_the_position_of_a_named_reader(
    recorded: Recorded, files: SharedArchive, stream_id: int, home: Path
) -> None:
    query = SharedQuery(files, stream_id, starting_offsets="earliest", reader="bars", reader_max_age_ms=3_600_000)
    recorded.send(10)
    query.run_batch()
    for committed in (0, recorded.publication.position):
        if committed:
            query.source.commit(query.logged[-1])
        reader = b"bars" in (stored := (home / "archive" / "archive-extensions.dat").read_bytes())
        assert reader
        assert committed.to_bytes(8, "little") in stored
    assert query.source.take_lines() == []


def test_the_named_reader_is_never_beyond_the_offset_that_spark_has_committed(
    archive: aeron.AeronArchive, recorded: Recorded, files: SharedArchive, stream_id: int
) -> None:
    """With asynchronous progress tracking, Spark plans batches that begin at offsets that it has not logged yet."""

    def position() -> int:
        [reader] = archive.list_readers(name="late")
        return reader.position

    query = SharedQuery(files, stream_id, starting_offsets="earliest", reader="late")
    query.run_batch()
    ends = []
    for _ in range(3):
        recorded.send(10)
        assert query.run_batch() is not None
        ends.append(recorded.publication.position)
        assert position() == 0
    query.source.commit(query.logged[-2])
    assert position() == ends[-2]
    query.restart()
    query.rows_of(len(query.logged) - 1)
    assert position() == ends[-2]


def test_a_query_holds_retention_back_until_it_commits(
    archive: aeron.AeronArchive, recorded: Recorded, replays: SharedArchive, stream_id: int
) -> None:
    query = SharedQuery(replays, stream_id, starting_offsets="earliest", reader="bars")
    recorded.send(4000)
    query.run_batch()
    recording_id = recorded.recording.recording_id
    archive.set_retention(recording_id=recording_id, max_bytes=TERM)

    def freed() -> int:
        archive.apply_retention(recording_id=recording_id)
        return archive.get_start_position(recording_id)

    [outcome] = archive.apply_retention(recording_id=recording_id, dry_run=True)
    assert (outcome.held_by, outcome.reader, outcome.new_start_position) == ("READER", "bars", 0)
    assert outcome.allowed_position > 0
    assert freed() == 0
    query.source.commit(query.logged[-1])
    eventually(lambda: freed() == outcome.allowed_position)
    recorded.send(10)
    query.run_batch()
    assert sum(len(table) for table in query.finished) == len(recorded.sent)


ALL = dict.fromkeys(("recording_id", "stream_id", "session_id", "position", "timestamp"))


def matching(values: pa.ChunkedArray, ranges: list[tuple[int, int]]) -> pa.BooleanArray:
    matches = [any(low <= value <= high for low, high in ranges) for value in values.to_pylist()]
    return pa.array(matches, pa.bool_())


@pytest.mark.parametrize("by", ["files", "replays"])
def test_a_filter_on_positions_plans_the_segments_that_can_match(
    recorded: Recorded, stream_id: int, by: str, request: pytest.FixtureRequest
) -> None:
    """08-88"""
    recorded.send(3000)
    recorded.send(3, size=7000)
    shared: SharedArchive = request.getfixturevalue(by)
    whole = pa.concat_tables([shared.read(piece) for piece in shared.plan(stream_id)])
    ends = whole["position"].to_pylist()
    for ranges, segments in (
        ([(ends[100], ends[110])], 1),
        ([(2 * TERM, 2 * TERM)], 1),
        ([(2 * TERM, 2 * TERM + 32)], 2),
        ([(ends[5], ends[5]), (ends[-1], ends[-1])], 2),
        ([(0, 0)], 0),
        ([(ends[-1] + 1, 2**63 - 1)], 0),
        ([], 0),
        ([(-(2**63), 2**63 - 1)], -(-ends[-1] // (2 * TERM))),
    ):
        pieces = shared.plan(stream_id, filter={**ALL, "position": ranges})
        assert len(pieces) == segments, ranges
        rows = pa.concat_tables([whole.slice(0, 0), *(shared.read(piece) for piece in pieces)])
        expected = whole.filter(matching(whole["position"], ranges))
        assert rows.filter(matching(rows["position"], ranges)).equals(expected), ranges


def test_a_filter_on_times_plans_the_segments_that_can_match(
    recorded: Recorded, files: SharedArchive, replays: SharedArchive, stream_id: int
) -> None:
    """08-88"""
    for _ in range(4):
        recorded.send(900)
        time.sleep(0.02)
    schema = pa.schema([("value", pa.binary()), ("timestamp", pa.timestamp("us", tz="UTC"))])
    pieces = files.plan(stream_id)
    tables = [files.read(piece, schema) for piece in pieces]
    micros = [[value.as_py() for value in table["timestamp"].cast(pa.int64())] for table in tables]
    assert len(pieces) > 3
    for number, times in enumerate(micros):
        ranges = [(times[0], times[-1])]
        selected = files.plan(stream_id, filter={**ALL, "timestamp": ranges})
        expected = [
            piece
            for piece, other in zip(pieces, micros, strict=True)
            if min(other) <= times[-1] and max(other) >= times[0]
        ]
        assert pieces[number] in selected
        assert selected == expected
        assert len(selected) < len(pieces)
    assert files.plan(stream_id, filter={**ALL, "timestamp": [(0, 1)]}) == []
    # Without the archive's directory, the source knows no arrival times, so it plans all partitions. Spark then drops
    # the rows that do not match.
    assert len(replays.plan(stream_id, filter={**ALL, "timestamp": [(0, 1)]})) == len(pieces)


def test_a_filter_on_ids_plans_the_recordings_that_can_match(
    archive: aeron.AeronArchive, recorded: Recorded, files: SharedArchive, stream_id: int
) -> None:
    """08-88"""
    other = Recorded(archive, stream_id)
    recorded.send(3)
    other.send(2)
    id_, session = other.recording.recording_id, other.publication.session_id
    for filter_, sent in (
        ({"stream_id": [(stream_id, stream_id)]}, recorded.sent + other.sent),
        ({"stream_id": [(stream_id + 1, 2**31 - 1)]}, []),
        ({"recording_id": [(id_, 2**63 - 1)]}, other.sent),
        ({"session_id": [(session, session)]}, other.sent),
        ({"session_id": [(session, session)], "recording_id": [(0, id_ - 1)]}, []),
    ):
        pieces = files.plan(stream_id, filter={**ALL, **filter_})
        assert [value for piece in pieces for value in files.read(piece)["value"].to_pylist()] == sent

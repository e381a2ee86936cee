"""Tests of the commands ``aeron archive`` on a running archive and on the directory of an archive."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from aeron.sbe import Schema
from commands import Command, driver_directory, run
from ports import free_port

CHANNEL = "aeron:ipc?term-length=64k"
STREAM = 1001
REPLAY_STREAM = 100
SUBSCRIBER_POSITION = 4
SEGMENT_LENGTH = 64 * 1024
TORN_AT, TORN_FRAME_LENGTH = 11776, 736
STOP_POSITION_OF_FIRST = 112


@dataclass(frozen=True)
class Scene:
    """An archive on a driver. It has a stopped recording of 200 messages of 989 to 991 bytes."""

    driver: aeron.MediaDriver
    client: aeron.Aeron
    archive: aeron.AeronArchive
    directory: Path
    recording: aeron.Recording
    control_channel: str

    def run(self, command: str, *arguments: object) -> str:
        """Runs a command on the running archive and returns its output. The command must end with status 0."""
        result = run("archive", *command.split(), "--dir", self.driver.dir, *arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def record(self, stream_id: int, messages: int | list[bytes]) -> aeron.Recording:
        """Records messages, or this number of messages, stops the recording and returns it."""
        publication = self.archive.add_recorded_exclusive_publication(CHANNEL, stream_id)
        for payload in map(message, range(messages)) if isinstance(messages, int) else messages:
            position = publication.publish(payload, timeout=5)
        recording = self.archive.wait_recorded(publication, position, timeout=5)
        self.archive.stop_recording(publication)
        publication.close()
        eventually(lambda: self.archive.get_stop_position(recording.recording_id) is not None)
        found = self.archive.list_recording(recording.recording_id)
        assert found is not None
        return found


def message(number: int) -> bytes:
    return b"message %d" % number + b"." * 980


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    port = free_port()
    control_channel = f"aeron:udp?endpoint=localhost:{port}"
    with (
        driver_directory() as directory,
        aeron.MediaDriver(dir=directory) as driver,
        aeron.Archive(
            directory.with_name("archive"),
            driver=driver,
            segment_file_length=SEGMENT_LENGTH,
            control_channel=control_channel,
        ) as server,
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        assert server.archive_id is not None
        made = Scene(driver, client, archive, directory.with_name("archive"), None, control_channel)  # type: ignore[arg-type]
        recording = made.record(STREAM, 200)
        yield Scene(driver, client, archive, made.directory, recording, control_channel)
        archive.close()
        client.close()
        server.close()
        for path in made.directory.iterdir():
            path.unlink()
        made.directory.rmdir()


def test_replay_prints_each_message_with_its_position(scene: Scene) -> None:
    """07-83, 07-89"""
    id = scene.recording.recording_id
    lines = scene.run("replay", id).splitlines()
    assert len(lines) == 200
    assert re.fullmatch(rf"Message to position 1024 of recording {id} \(989 bytes\) <<message 0\.+>>", lines[0])
    assert f"position {scene.recording.stop_position} " in lines[-1]
    assert len(scene.run("replay", id, "-m", 7).splitlines()) == 7


def test_replay_with_json_prints_the_messages_of_a_range(scene: Scene) -> None:
    """07-89"""
    shown = scene.run("replay", scene.recording.recording_id, "--json", "--from", 2048, "--to", 4096)
    messages = [json.loads(line) for line in shown.splitlines()]
    assert [each["position"] for each in messages] == [3072, 4096]
    assert bytes.fromhex(messages[0]["payload"]) == message(2)


def test_replay_and_follow_print_the_values_of_sbe_messages(scene: Scene) -> None:
    market = Path(__file__).parent / "sbe" / "market.xml"
    values = {"transactTime": 5, "tradeId": 1, "side": "Buy", "price": 2, "symbol": "ES", "expiry": 9}
    id = scene.record(2040, [Schema(market)["Trade"].encode_one(values), b"short"]).recording_id
    trade, short = scene.run("replay", id, "--sbe", market).splitlines()
    assert '<<Trade {"transactTime": 5, "tradeId": 1,' in trade
    assert "<<cannot be decoded: " in short
    rows = [json.loads(line) for line in scene.run("replay", id, "--sbe", market, "--json").splitlines()]
    assert (rows[0]["template"], rows[0]["values"]["symbol"]) == ("Trade", "ES")
    assert "error" in rows[1]
    assert '<<Trade {"transactTime": 5' in scene.run("follow", id, "--sbe", market, "-m", 1)


def test_replay_writes_the_bytes_of_messages_to_a_file(scene: Scene, tmp_path: Path) -> None:
    output = tmp_path / "messages"
    assert scene.run("replay", scene.recording.recording_id, "-o", output) == ""
    assert output.read_bytes() == b"".join(map(message, range(200)))


def test_replay_does_not_write_into_a_file_of_an_archive(scene: Scene, tmp_path: Path) -> None:
    """07-191"""
    (tmp_path / "archive.catalog").write_text("theirs")
    (tmp_path / "link").symlink_to("archive.catalog")
    for name in ("archive.catalog", "link"):
        result = run(
            *("archive", "replay", "--dir", scene.driver.dir, scene.recording.recording_id, "-o", tmp_path / name)
        )
        assert result.exit_code == 1
        assert "in the directory of an archive or a driver" in result.stderr
    assert (tmp_path / "archive.catalog").read_text() == "theirs"


def test_replay_and_follow_print_messages_of_a_range_of_time(scene: Scene) -> None:
    publication = scene.archive.add_recorded_exclusive_publication(CHANNEL, 2020)
    for number in range(20):
        if number == 10:
            time.sleep(0.01)
            middle = datetime.now(UTC).isoformat()
            time.sleep(0.01)
        position = publication.publish(message(number), timeout=5)
    id = scene.archive.wait_recorded(publication, position, timeout=5).recording_id
    assert len(scene.run("replay", id, "--since", middle).splitlines()) == 10
    assert "<<message 9." in scene.run("replay", id, "--until", middle).splitlines()[-1]
    assert scene.run("replay", id, "--since", middle, "--until", middle) == ""
    assert len(scene.run("replay", id, "--since", "1h").splitlines()) == 20
    assert "<<message 10." in scene.run("follow", id, "--since", middle, "-m", 1)
    scene.archive.stop_recording(publication)
    publication.close()
    dumped = run("archive", "dump", scene.directory, "--since", middle, "--json").stdout.splitlines()
    frames = [json.loads(line) for line in dumped if f'"recording_id": {id}, "position"' in line]
    assert bytes.fromhex(frames[0]["payload"]) == message(10)
    assert len(frames) == 10
    listed = run("archive", "list", scene.directory, "--until", "2001-01-01T00:00:00Z", "--json").stdout
    assert json.loads(listed) == []
    listed = run("archive", "list", scene.directory, "--since", middle, "--json").stdout
    assert id in [each["recording_id"] for each in json.loads(listed)]


def test_replay_does_not_exceed_its_rate(scene: Scene) -> None:
    begin = time.monotonic()
    lines = scene.run("replay", scene.recording.recording_id, "--rate", "400k").splitlines()
    assert len(lines) == 200
    assert time.monotonic() - begin > 0.4


def test_replay_at_a_speed_writes_all_messages(scene: Scene) -> None:
    assert len(scene.run("replay", scene.recording.recording_id, "--speed", "0.5").splitlines()) == 200


def test_invalid_times_and_a_time_together_with_a_position_are_refused(scene: Scene) -> None:
    for arguments, text in (
        (["--since", "soon"], "'soon' is neither a time such as"),
        (["--since", "1h", "--from", 0], "--from and --since are both given"),
        (["--until", "1h", "--to", 0], "--to and --until are both given"),
        (["--speed", "0"], "--speed"),
    ):
        result = run("archive", "replay", "--dir", scene.driver.dir, 0, *arguments)
        assert result.exit_code == 1
        assert text in result.stderr


def test_replay_and_purge_of_an_unknown_recording_fail(scene: Scene) -> None:
    """07-103, 07-106"""
    for command in (("replay", 99), ("follow", 99), ("purge", 99, "-y")):
        result = run("archive", command[0], "--dir", scene.driver.dir, *command[1:])
        assert result.exit_code == 1
        assert "99" in result.stderr


def test_replay_has_status_1_if_it_ends_before_the_end_of_the_recording(scene: Scene, tmp_path: Path) -> None:
    recording = scene.record(2010, 200)
    (scene.directory / f"{recording.recording_id}-{SEGMENT_LENGTH}.rec").unlink()
    output = tmp_path / "messages"
    result = run("archive", "replay", "--dir", scene.driver.dir, recording.recording_id, "-o", output)
    assert result.exit_code == 1
    assert result.stderr
    assert b"".join(map(message, range(200))).startswith(output.read_bytes())


def test_replay_has_status_1_if_no_stream_from_the_archive_arrives(tmp_path: Path) -> None:
    control_channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    with (
        driver_directory() as directory,
        driver_directory() as other,
        aeron.MediaDriver(dir=directory) as driver,
        aeron.MediaDriver(dir=other),
        aeron.Archive(
            tmp_path / "archive",
            driver=driver,
            segment_file_length=SEGMENT_LENGTH,
            control_channel=control_channel,
            connect_timeout_ns=200_000_000,
        ),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        Scene(driver, client, archive, tmp_path, None, control_channel).record(STREAM, 3)  # type: ignore[arg-type]
        remote = ("--control-channel", control_channel, "--response-channel", "aeron:udp?endpoint=localhost:0")
        result = run("archive", "replay", "--dir", other, 0, *remote)
    assert result.exit_code == 1
    assert "no connection established" in result.stderr


def test_record_prints_starts_and_stops_and_ends_the_recording(scene: Scene) -> None:
    """07-45, 07-54, 07-55"""
    with Command("archive", "record", "--dir", scene.driver.dir, "-c", CHANNEL, "-s", 2001, "--json") as record:
        record.wait_for("subscription_id")
        publication = scene.client.add_exclusive_publication(CHANNEL, 2001)
        record.wait_for('"START"')
        publication.publish(b"recorded", timeout=5)
        record.send(signal.SIGINT)
        assert record.end() == 0
        publication.close()
    signals = [json.loads(line) for line in record.output().splitlines()[1:]]
    assert [each["signal"] for each in signals] == ["START", "STOP"]
    assert scene.archive.list_recording_subscriptions(stream_id=2001) == []


def test_record_with_detach_ends_and_the_archive_continues_to_record(scene: Scene) -> None:
    """07-38"""
    shown = scene.run("record", "-c", CHANNEL, "-s", 2002, "--detach")
    [subscription] = scene.archive.list_recording_subscriptions(stream_id=2002)
    assert f"subscription {subscription.subscription_id}" in shown
    scene.archive.stop_recording(subscription.subscription_id)


def test_follow_prints_new_messages_until_the_recording_stops(scene: Scene) -> None:
    """07-90"""
    publication = scene.archive.add_recorded_exclusive_publication(CHANNEL, 2003)
    position = publication.publish(b"first", timeout=5)
    id = scene.archive.wait_recorded(publication, position, timeout=5).recording_id
    with Command("archive", "follow", "--dir", scene.driver.dir, id) as follow:
        follow.wait_for("<<first>>")
        publication.publish(b"second", timeout=5)
        follow.wait_for("<<second>>")
        scene.archive.stop_recording(publication)
        publication.close()
        assert follow.end() == 0
    assert follow.output().count("Message to position") == 2


def test_follow_with_live_starts_at_the_recorded_position(scene: Scene) -> None:
    """07-84"""
    publication = scene.archive.add_recorded_exclusive_publication(CHANNEL, 2004)
    position = publication.publish(b"before", timeout=5)
    id = scene.archive.wait_recorded(publication, position, timeout=5).recording_id
    with Command("archive", "follow", "--dir", scene.driver.dir, id, "--live", "-m", 1) as follow:
        eventually(lambda: is_replayed(scene), timeout=15)
        publication.publish(b"after", timeout=5)
        assert follow.end() == 0
    assert "<<after>>" in follow.output()
    assert "<<before>>" not in follow.output()
    publication.close()


def is_replayed(scene: Scene) -> bool:
    """Returns whether a replay on stream 100 has a subscriber. The driver shows the subscriber's position in a
    counter."""
    with aeron.CncFile(scene.driver.dir) as cnc:
        positions = [counter for counter in cnc.counters() if counter.type_id == SUBSCRIBER_POSITION]
    return any(position.stream_id == REPLAY_STREAM for position in positions)


def test_replicate_copies_a_recording(scene: Scene) -> None:
    """07-113"""
    id = scene.recording.recording_id
    lines = scene.run("replicate", id, scene.control_channel, "--json").splitlines()
    signals = [json.loads(line) for line in lines[1:]]
    assert signals[0]["signal"] == "REPLICATE"
    assert signals[-1]["signal"] == "REPLICATE_END"
    copy = scene.archive.list_recording(signals[0]["recording_id"])
    assert copy is not None
    assert copy.stop_position == scene.recording.stop_position
    assert scene.run("replay", copy.recording_id).count("\n") == 200


def test_replicate_of_an_unknown_recording_fails(scene: Scene) -> None:
    """07-116"""
    result = run("archive", "replicate", "--dir", scene.driver.dir, 99, scene.control_channel)
    assert result.exit_code == 1
    assert "99" in result.stderr


def test_purge_deletes_the_first_segments_or_the_whole_recording(scene: Scene) -> None:
    """07-109, 07-110"""
    recording = scene.record(2005, 100)
    id = recording.recording_id
    result = json.loads(scene.run("purge", id, "--before", SEGMENT_LENGTH, "--yes", "--json"))
    assert result == {"recording_id": id, "segments": 1}
    assert scene.archive.get_start_position(id) == SEGMENT_LENGTH
    assert scene.run("purge", id, "--yes") == f"(recordingId={id}) deleted 1 segment files\n"
    assert scene.archive.list_recording(id) is None


def test_purge_asks_before_it_deletes(scene: Scene) -> None:
    recording = scene.record(2006, 1)
    result = run("archive", "purge", "--dir", scene.driver.dir, recording.recording_id)
    assert result.exit_code == 1
    assert "will be deleted" in result.stderr
    assert scene.archive.list_recording(recording.recording_id) is not None


def test_commands_that_only_read_files_work_while_the_archive_runs(scene: Scene) -> None:
    """07-132"""
    described = json.loads(run("archive", "describe", scene.directory, "--json").stdout)
    assert described["mark_file"]["is_active"]
    count = json.loads(run("archive", "count", scene.directory, "--json").stdout)["count"]
    assert count == len(described["recordings"]) == len(scene.archive.list_recordings())
    listed = run("archive", "list", scene.directory).stdout.splitlines()
    assert len(listed) == count + 1
    assert run("archive", "verify", scene.directory, "--all").exit_code == 0


def test_verify_reports_no_false_damage_while_the_archive_runs(scene: Scene) -> None:
    publication = scene.archive.add_recorded_exclusive_publication(CHANNEL, 2030)
    id = None
    for round in range(6):
        for number in range(100):
            position = publication.publish(message(number), timeout=5)
            if number % 25 == 0:
                verified = run("archive", "verify", scene.directory, "--all", *(() if id is None else (id,)))
                assert verified.exit_code == 0, verified.output
        id = scene.archive.wait_recorded(publication, position, timeout=5).recording_id
        if round:
            scene.archive.purge_segments(id, round * SEGMENT_LENGTH)
    scene.archive.stop_recording(publication)
    publication.close()


def test_verify_reports_damage_while_the_archive_runs(scene: Scene) -> None:
    recording = scene.record(2031, 100)
    segment = scene.directory / f"{recording.recording_id}-0.rec"
    with segment.open("r+b") as file:
        file.seek(1024 * 10 + 6)
        file.write(b"\xff")
    result = run("archive", "verify", scene.directory, recording.recording_id, "--all")
    assert result.exit_code == 255
    assert f"(recordingId={recording.recording_id}) ERR" in result.stdout
    scene.archive.purge_recording(recording.recording_id)


def test_commands_that_change_files_refuse_the_directory_of_a_running_archive(scene: Scene) -> None:
    result = run("archive", "compact", scene.directory, "--yes")
    assert result.exit_code == 1
    assert "active mark file detected" in result.stderr


def test_capacity_is_shown_and_raised(tmp_path: Path) -> None:
    """07-68, 07-132"""
    archive = tmp_path / "archive"
    with aeron.MediaDriver(dir=tmp_path / "driver") as driver, aeron.Archive(archive, driver=driver):
        pass
    assert run("archive", "capacity", archive).stdout == "1048576\n"
    assert json.loads(run("archive", "capacity", archive, "2m", "--json").stdout) == {"capacity": 2 * 1024 * 1024}
    assert (archive / "archive.catalog").stat().st_size == 2 * 1024 * 1024
    assert run("archive", "capacity", archive, 1000).stdout == "2097152\n"
    assert run("archive", "capacity", archive, "2g").exit_code == 1


def test_a_directory_without_an_archive_is_refused_with_the_exit_status_of_the_real_tool(tmp_path: Path) -> None:
    """07-132"""
    missing = run("archive", "count", tmp_path / "missing")
    assert missing.exit_code == 255
    assert "Archive folder not found" in missing.stderr
    assert run("archive", "no-such-command").exit_code == 255
    empty = run("archive", "count", tmp_path)
    assert empty.exit_code == 1
    assert "archive.catalog" in empty.stderr


def test_commands_continue_after_a_recording_that_cannot_be_read(two: Path) -> None:
    segment = two / "0-0.rec"
    segment.unlink()
    segment.mkdir()
    stamped = run("archive", "checksum", two, "CRC-32C", "--json")
    assert stamped.exit_code == 1
    first, second = json.loads(stamped.stdout)
    assert "0-0.rec" in first["problem"]
    assert (second["problem"], second["frames"]) == (None, 3)
    verified = run("archive", "verify", two, "--json")
    assert verified.exit_code == 255
    assert [each["verdict"] for each in json.loads(verified.stdout)] == ["ERR", "OK"]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Returns the directory of an archive with two recordings of three messages each."""
    directory = tmp_path / "archive"
    with (
        aeron.MediaDriver(dir=tmp_path / "driver") as driver,
        aeron.Archive(directory, driver=driver, segment_file_length=SEGMENT_LENGTH),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        scene = Scene(driver, client, archive, directory, None, "")  # type: ignore[arg-type]
        for stream_id in (STREAM, STREAM + 1):
            scene.record(stream_id, 3)
    return directory


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Returns the directory of an archive in the state after a kill. The recording has no stop position, and the second
    page of the last fragment is missing."""
    directory = tmp_path / "archive"
    with (
        aeron.MediaDriver(dir=tmp_path / "driver") as driver,
        aeron.Archive(directory, driver=driver, segment_file_length=SEGMENT_LENGTH),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication(CHANNEL, STREAM)
        for _ in range(TORN_AT // TORN_FRAME_LENGTH + 1):
            position = publication.publish(b"x" * 700, timeout=5)
        archive.wait_recorded(publication, position, timeout=5)
    with (directory / "archive.catalog").open("r+b") as catalog:
        catalog.seek(STOP_POSITION_OF_FIRST)
        catalog.write((-1).to_bytes(8, "little", signed=True))
    with (directory / "0-0.rec").open("r+b") as segment:
        segment.seek(TORN_AT // 4096 * 4096 + 4096)
        segment.write(bytes(4096))
    # The index would prove that the fragment was whole.
    (directory / "index-0-0.idx").unlink()
    return directory


@pytest.mark.parametrize(("answer", "stop"), [("y", 11776), ("n", 12512)])
def test_a_repair_asks_whether_to_keep_or_truncate_a_torn_fragment(torn: Path, answer: str, stop: int) -> None:
    """07-79, 07-133"""
    assert f"may not be whole: 0-0.rec, position {TORN_AT}" in run("archive", "verify", torn).stdout
    asked = run("archive", "verify", torn, "--repair", input=f"{answer}\n")
    assert asked.exit_code == 0
    assert "straddles a page boundary" in asked.stderr
    [entry] = json.loads(run("archive", "list", torn, "--json").stdout)
    assert entry["stop_position"] == stop
    assert run("archive", "verify", torn, "--repair", "--on-torn-fragment", "truncate", "--json").exit_code == 0


@pytest.mark.parametrize("command", ["compact", "delete-orphans"])
def test_commands_that_delete_files_ask_first(torn: Path, command: str) -> None:
    run("archive", "verify", torn, "--repair", "--on-torn-fragment", "keep")
    (torn / "0-1048576.rec").write_bytes(b"")
    run("archive", "mark-invalid", torn, 0)
    before = sorted(path.name for path in torn.iterdir())
    asked = run("archive", command, torn, input="n\n")
    assert asked.exit_code == 0
    assert "WARNING" in asked.stderr
    assert sorted(path.name for path in torn.iterdir()) == before
    # If standard input is empty, the command fails and deletes nothing.
    assert run("archive", command, torn).exit_code == 1
    assert sorted(path.name for path in torn.iterdir()) == before
    assert run("archive", command, torn, input="y\n").exit_code == 0
    assert sorted(path.name for path in torn.iterdir()) != before


# ---- readers, names, retention ---------------------------------------------------------------------------------------


def test_readers_are_listed_and_removed(scene: Scene) -> None:
    recording_id = scene.recording.recording_id
    scene.archive.commit_reader(recording_id, "bars", 1024, max_age_ms=60_000)
    [listed] = json.loads(scene.run("reader list", "--recording", recording_id, "--json"))
    assert (listed["name"], listed["position"], listed["max_lag_bytes"]) == ("bars", 1024, None)
    lines = scene.run("reader list").splitlines()
    assert lines[0].split() == ["recording", "name", "position", "committed", "max", "age", "max", "lag"]
    assert lines[1].split()[:3] == [str(recording_id), "bars", "1,024"]
    assert scene.run("reader remove", recording_id, "bars", "-y").endswith("removed the reader bars\n")
    again = run("archive", "reader", "remove", "--dir", scene.driver.dir, recording_id, "bars", "-y")
    assert (again.exit_code, "has no reader bars" in again.stderr) == (1, True)


def test_the_staged_rows_of_a_spark_query_are_listed_and_deleted(scene: Scene) -> None:
    def staged(alias: str) -> aeron.ExclusivePublication:
        publication = scene.archive.add_recorded_exclusive_publication(f"{CHANNEL}|alias={alias}", 30)
        scene.archive.wait_recorded(publication, publication.publish(bytes(96), timeout=5), timeout=5)
        return publication

    def stop(publication: aeron.ExclusivePublication) -> None:
        scene.archive.stop_recording(publication)
        publication.close()

    stop(staged("spark-gone.7.0.0"))
    stop(staged("spark-gone.8.1.0"))
    stop(staged("spark-idle.0.0.0"))
    stop(staged("spark-gone"))
    running = staged("spark-running.3.0.0")
    eventually(lambda: sum(one["is_active"] for one in json.loads(scene.run("staged list", "--json"))) == 1)
    listed = {one["query"]: one for one in json.loads(scene.run("staged list", "--json"))}
    assert set(listed) == {"gone", "idle", "running"}
    assert (len(listed["gone"]["recordings"]), listed["gone"]["bytes"], listed["gone"]["last_batch"]) == (2, 256, 8)
    assert scene.run("staged list").splitlines()[1].split()[:4] == ["gone", "2", "256", "8"]

    refused = run("archive", "staged", "delete", "--dir", scene.driver.dir, "running", "-y")
    assert (refused.exit_code, "the query running runs" in refused.stderr) == (1, True)
    assert scene.run("staged delete", "gone", "-y") == "deleted 2 staged recordings of the query gone\n"
    assert {one["query"] for one in json.loads(scene.run("staged list", "--json"))} == {"idle", "running"}
    assert any("alias=spark-gone|" in f"{one.original_channel}|" for one in scene.archive.list_recordings())
    stop(running)


def test_the_name_of_a_recording_is_set_listed_and_removed(scene: Scene) -> None:
    recording_id = scene.recording.recording_id
    scene.archive.set_recording_metadata(recording_id, b"\xff\x00")
    assert "has the name trades" in scene.run("name set", recording_id, "trades")
    [info] = json.loads(scene.run("name list", "--name", "trades", "--json"))
    assert (info["recording_id"], info["metadata"]) == (recording_id, "/wA=")
    assert scene.run("name list").splitlines()[1].split() == [str(recording_id), "trades", "2"]
    scene.run("name set", recording_id, "")
    scene.archive.set_recording_metadata(recording_id, b"")
    assert json.loads(scene.run("name list", "--json")) == []


def test_retention_is_set_listed_applied_and_removed(scene: Scene) -> None:
    recording = scene.record(2003, 200)
    id = recording.recording_id
    scene.archive.commit_reader(id, "bars", 0)
    arguments = ("--recording", id, "--max-bytes", "64k", "--max-age", "7d")
    assert "replaced" not in scene.run("retention set", *arguments, "-y")
    [policy] = json.loads(scene.run("retention list", "--json"))
    assert (policy["recording_id"], policy["max_bytes"], policy["max_age_ms"]) == (id, 65536, 7 * 86_400_000)
    assert scene.run("retention list").splitlines()[1].split() == [str(id), "65,536", "604,800,000", "ms"]
    [outcome] = json.loads(scene.run("retention apply", "--dry-run", "--json"))
    assert (outcome["held_by"], outcome["reader"], outcome["new_start_position"]) == ("READER", "bars", 0)
    assert scene.run("retention apply", "--recording", id).splitlines()[1].split()[-3:] == [
        "nothing",
        "READER",
        "bars",
    ]
    result = json.loads(scene.run("retention set", "--recording", id, "--remove", "--json"))
    assert result["replaced"] is True
    assert scene.run("retention set", "--recording", id, "--remove") == "there was no such policy\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "give --max-bytes or --max-age, or only --remove"),
        (("--remove", "--max-bytes", "1k"), "give --max-bytes or --max-age, or only --remove"),
        (("--recording", "1", "--stream", "2", "--max-age", "1d"), "--recording is for one recording"),
        (("--max-age", "1w"), "'1w' is not a number with one of the units"),
        (("--max-bytes", "x"), "'x'"),
    ],
)
def test_invalid_options_of_a_retention_policy_are_a_usage_error(arguments: tuple[str, ...], text: str) -> None:
    result = run("archive", "retention", "set", *arguments)
    assert (result.exit_code, text in result.stderr) == (1, True), result.stderr


def test_retention_asks_before_it_may_delete(scene: Scene) -> None:
    result = run("archive", "retention", "set", "--dir", scene.driver.dir, "--max-age", "1d", input="n\n")
    assert "recordings of all streams, all channels: at most 86,400,000 ms old" in result.stderr
    assert scene.archive.list_retention() == []

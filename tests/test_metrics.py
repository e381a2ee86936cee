"""Tests of `aeron.metrics` and `aeron clients`: the state of a driver as typed values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron
from aeron import metrics
from commands import run

IPC = "aeron:ipc?term-length=64k"


def stream_of(driver: aeron.MediaDriver, stream_id: int) -> metrics.StreamMetrics:
    """Returns the only publication of a stream."""
    [found] = [each for each in metrics.snapshot(driver.dir).streams if each.stream_id == stream_id]
    return found


def test_a_stream_has_its_publication_and_its_subscribers(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    subscriptions = [client.add_subscription(channel, stream_id) for channel in (IPC, "aeron:ipc?tether=false")]
    publication = client.add_exclusive_publication(IPC, stream_id)
    publication.wait_connected(timeout=5)
    publication.publish(bytes(992), timeout=5)
    assert len(subscriptions[1].poll_batch(10)) == 1
    eventually(lambda: stream_of(driver, stream_id).position == 1024)
    stream = stream_of(driver, stream_id)
    assert (stream.channel, stream.session_id, stream.is_exclusive) == (IPC, publication.session_id, True)
    assert (stream.registration_id, stream.client_id) == (publication.registration_id, client.client_id)
    assert stream.limit - stream.position == stream.window_left > 0
    assert (stream.sender_position, stream.sender_limit, stream.naks_received) == (None, None, None)
    slow, fast = stream.subscribers
    assert (slow.registration_id, slow.lag_bytes, slow.is_tethered) == (subscriptions[0].registration_id, 1024, None)
    assert (fast.registration_id, fast.lag_bytes, fast.is_tethered) == (subscriptions[1].registration_id, 0, False)
    assert (fast.joined_position, fast.client_id) == (0, client.client_id)
    assert stream.limited_by is None


def test_the_subscriber_that_holds_the_publisher_back_is_named(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    slow, fast = (client.add_subscription(IPC, stream_id) for _ in range(2))
    publication = client.add_exclusive_publication(IPC, stream_id)
    publication.wait_connected(timeout=5)

    def is_full() -> bool:
        fast.poll_batch(100)
        return publication.offer(bytes(992)) == aeron.BACK_PRESSURED and stream_of(driver, stream_id).window_left == 0

    eventually(is_full)
    stream = stream_of(driver, stream_id)
    assert stream.limited_by == f"subscriber {slow.registration_id} of client {client.client_id}"


def test_a_publisher_that_no_receiver_lets_send_is_limited_by_the_receivers(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    port = free_port()
    channel = f"aeron:udp?endpoint=localhost:{port}|term-length=64k"
    subscription = client.add_subscription(channel, stream_id)
    publication = client.add_publication(channel, stream_id)
    publication.wait_connected(timeout=5)
    eventually(lambda: publication.offer(bytes(992)) == aeron.BACK_PRESSURED and _is_limited(driver, stream_id))
    stream = stream_of(driver, stream_id)
    assert (stream.limited_by, stream.sender_position) == ("receivers", stream.sender_limit)
    assert stream.back_pressure_events is not None
    [image] = [each for each in metrics.snapshot(driver.dir).images if each.stream_id == stream_id]
    assert (image.session_id, image.channel, image.naks_sent) == (publication.session_id, channel, 0)
    assert image.highest_position == image.position == image.subscribers[0].lag_bytes > 0
    assert image.subscribers[0].registration_id == subscription.registration_id
    endpoints = [each for each in metrics.snapshot(driver.dir).endpoints if each.channel == channel]
    assert [(each.is_sender, each.status) for each in endpoints] == [
        (True, aeron.ChannelStatus.ACTIVE),
        (False, aeron.ChannelStatus.ACTIVE),
    ]
    assert endpoints[1].addresses == (f"127.0.0.1:{port}",)


def _is_limited(driver: aeron.MediaDriver, stream_id: int) -> bool:
    return stream_of(driver, stream_id).limited_by == "receivers"


def test_a_client_has_its_name_and_what_it_owns(driver: aeron.MediaDriver, stream_id: int) -> None:
    name = "quotes \n of name=x"
    with aeron.connect(driver, client_name=name) as client:
        publication = client.add_publication(IPC, stream_id)
        subscription = client.add_subscription(IPC, stream_id)
        counter = client.add_counter(1001, "mine")

        def found() -> metrics.ClientMetrics:
            return next(each for each in metrics.snapshot(driver.dir).clients if each.client_id == client.client_id)

        eventually(lambda: found().name == name and found().images == 1)
        assert (found().publications, found().images, found().counters) == (1, 1, 1)
        assert found().version.startswith("1.52")
        assert 0 <= found().heartbeat_age_ms < 10_000
        shown = json.loads(run("clients", "--dir", driver.dir, "--json").stdout)
        assert client.client_id in [each["client_id"] for each in shown]
        assert r"quotes \n of name=x" in run("clients", "--dir", driver.dir).stdout
        assert not any(each.is_closed for each in (publication, subscription, counter))


def test_a_recording_has_its_position_and_its_lag(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path
) -> None:
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, archive_id=77, low_storage_space_threshold=0),
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication(IPC, stream_id)
        recording = archive.wait_recorded(publication, publication.publish(bytes(992), timeout=5), timeout=5)

        def found() -> metrics.RecordingMetrics:
            [found] = metrics.snapshot(driver.dir).recordings
            return found

        eventually(lambda: found().position == 1024)
        assert (found().archive_id, found().recording_id, found().stream_id) == (77, recording.recording_id, stream_id)
        assert (found().session_id, found().lag_bytes) == (publication.session_id, 0)


def test_a_snapshot_is_a_table_with_a_row_for_each_counter(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    publication = client.add_publication(IPC, stream_id)
    found = metrics.snapshot(driver.dir)
    table = found.to_arrow()
    assert table.num_rows == len(found.counters)
    [limit] = table.filter(
        (table["stream_id"].to_numpy(zero_copy_only=False) == stream_id)
        & (table["name"].to_numpy(zero_copy_only=False) == "publisher_limit")
    ).to_pylist()
    assert limit["session_id"] == publication.session_id
    assert limit["client_id"] == client.client_id
    assert (limit["kind"], limit["unit"], limit["channel"]) == ("position", "bytes", IPC)
    assert found.system["bytes_mapped"] > 0
    assert found.max_counters == 16_384
    assert found.pid > 0
    assert abs(found.time_ms - found.heartbeat_ms) < 10_000


def test_a_directory_without_a_driver_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(aeron.DriverTimeoutError):
        metrics.snapshot(tmp_path)
    assert run("clients", "--dir", tmp_path).exit_code == 1


def test_a_missing_loss_report_is_an_empty_one_and_an_unreadable_one_is_an_error(tmp_path: Path) -> None:
    with aeron.MediaDriver(dir=tmp_path / "driver") as driver:
        report = Path(driver.dir) / "loss-report.dat"
        report.unlink()
        assert metrics.snapshot(driver.dir).losses == ()
        report.mkdir()
        with pytest.raises(OSError, match="loss-report"):
            metrics.snapshot(driver.dir)
        assert "loss-report" in "".join(aeron.health(driver.dir).reasons)
        report.rmdir()


def test_a_driver_and_a_client_return_the_state_of_the_driver(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int
) -> None:
    publication = client.add_publication(IPC, stream_id)
    assert client.aeron_dir == driver.dir
    for found in (driver.metrics(), client.metrics()):
        assert found.aeron_dir == driver.dir
        assert publication.registration_id in {stream.registration_id for stream in found.streams}


def test_an_archive_has_its_counters_and_more_from_its_directory_or_a_client(tmp_path: Path, stream_id: int) -> None:
    with (
        aeron.MediaDriver(dir=tmp_path / "driver") as driver,
        aeron.Archive(tmp_path / "archive", driver=driver, low_storage_space_threshold=0),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as control,
    ):
        publication = control.add_recorded_publication(IPC, stream_id)
        recording = control.wait_recorded(publication, publication.publish(bytes(992), timeout=5), timeout=5)
        control.commit_reader(recording.recording_id, "reader", 0)
        control.set_retention(max_bytes=1 << 30)
        [plain] = metrics.snapshot(driver.dir).archives
        assert (plain.archive_id, plain.directory, plain.readers) == (control.archive_id, None, None)
        assert plain.values["archive_recording_sessions"] == plain.values["archive_control_sessions"] == 1
        assert plain.values["archive_errors"] == 0
        assert plain.values["archive_recorder_write_bytes"] == 1024
        found = metrics.snapshot(archive=tmp_path / "archive")
        [named] = found.archives
        assert found.aeron_dir == driver.dir
        assert (named.values["archive_errors"], named.directory) == (0, str(tmp_path / "archive"))
        assert named.heartbeat_ms is not None
        assert found.time_ms - named.heartbeat_ms < 10_000
        assert named.free_bytes is not None
        [served] = metrics.snapshot(archive=control).archives
        assert served.readers is not None
        assert [(reader.name, reader.position) for reader in served.readers] == [("reader", 0)]
        assert served.retention is not None
        assert [policy.max_bytes for policy in served.retention] == [1 << 30]
        assert served.copied == ()
    with pytest.raises(aeron.ArchiveDirectoryError, match="no mark file"):
        metrics.snapshot(archive=tmp_path)

"""Exports recordings that the real archive wrote or is writing, and recordings of our archive on the real driver."""

import pyarrow as pa
import pyarrow.parquet
import pytest

import aeron
from interop.kinds import each_archive
from recorded import messages_of

_STREAM = 4501
_CHANNEL = "aeron:ipc?term-length=64k|mtu=1408"


@pytest.fixture
def recorded(drivers, start_archive, kinds):
    """Returns `(archive, client, publication)`. The archive has an active recording of the publication."""
    kind, driver_kind = kinds
    driver = drivers(driver_kind)
    archive = start_archive(kind, driver, {"aeron.archive.segment.file.length": "64k"})
    control, control_stream, _ = archive.control("udp")
    with (
        aeron.connect(driver.directory) as client,
        aeron.connect_archive(client, control_channel=control, control_stream_id=control_stream) as connected,
    ):
        connected.start_recording(_CHANNEL, _STREAM)
        with client.add_exclusive_publication(_CHANNEL, _STREAM) as publication:
            publication.wait_connected(timeout=10)
            yield archive, connected, publication


@each_archive
def test_a_stopped_recording_is_exported_completely(recorded, tmp_path):
    archive, connected, publication = recorded
    payloads = [bytes([number]) * (number * 50 % 8000) for number in range(200)]
    stop = _publish(connected, publication, payloads)
    connected.stop_recording(_CHANNEL, _STREAM)
    path = tmp_path / "recording.parquet"
    exported = aeron.read_recording(archive.directory, 0).export(path)
    assert (exported.to_position, exported.rows) == (stop, len(payloads))
    table = pa.parquet.read_table(path)
    assert table["value"].to_pylist() == payloads
    assert table["position"].to_pylist() == [each.position for each in messages_of(archive.directory, 0, 0, stop)]
    unknown = table["timestamp"].null_count
    assert unknown == (len(payloads) if archive.kind == "java" else 0)


@each_archive
def test_each_read_of_an_active_recording_ends_at_the_recorded_position(recorded):
    archive, connected, publication = recorded
    found, position = [], 0
    payloads = [bytes([number]) * 3000 for number in range(150)]
    for part in (payloads[:1], payloads[1:100], [], payloads[100:]):
        if part:
            end = _publish(connected, publication, part)
        batches = aeron.read_recording(archive.directory, 0, from_position=position)
        found += pa.table(batches)["value"].to_pylist()
        position = batches.position
        assert position == end
    assert found == payloads


@each_archive
def test_a_recording_of_a_killed_archive_is_read_to_its_end(recorded):
    archive, connected, publication = recorded
    payloads = [bytes([number + 1]) * 3000 for number in range(100)]
    end = _publish(connected, publication, payloads)
    archive.kill()
    # The mark file of a killed process counts as active for ten seconds, so the test deletes the file.
    (archive.directory / "archive-mark.dat").unlink()
    batches = aeron.read_recording(archive.directory, 0)
    assert pa.table(batches)["value"].to_pylist() == payloads
    assert batches.position == end


def _publish(connected, publication, messages):
    """Publishes messages, and waits until they are recorded. Returns the position after them."""
    for message in messages:
        position = publication.publish(message, timeout=10)
    connected.wait_recorded(publication, position, timeout=10)
    return position

"""Segments that are only in object storage: the real archive and its tool accept the directory without them."""

from tests.conftest import eventually

import aeron
from interop.archive_tool import ArchiveTool

_STREAM = 4311
_CHANNEL = "aeron:ipc?term-length=64k|mtu=8k"
_SEGMENT = 128 * 1024


def test_the_real_archive_takes_over_after_local_segments_were_deleted_and_ours_still_has_the_copies(
    drivers, start_archive, tmp_path
):
    driver = drivers("ours")
    archive = start_archive("ours", driver)
    archive.stop()
    archive.settings |= {
        "aeron.archive.objects.url": (tmp_path / "bucket").as_uri(),
        "aeron.archive.objects.delete.local": "true",
    }
    archive.start()
    messages = [bytes([number]) * 4000 for number in range(100)]
    with aeron.connect(driver.directory) as client:
        with _connected(client, archive) as connected:
            connected.start_recording(_CHANNEL, _STREAM)
            with client.add_exclusive_publication(_CHANNEL, _STREAM) as publication:
                publication.wait_connected(timeout=10)
                for message in messages:
                    position = publication.publish(message, timeout=10)
                connected.wait_recorded(publication, position, timeout=10)
                connected.stop_recording(_CHANNEL, _STREAM)
            last = position // _SEGMENT * _SEGMENT
            eventually(lambda: _bases(archive) == [last], timeout=20)
        assert archive.stop() == 15
        ArchiveTool(archive.directory).show()
        assert not ArchiveTool(archive.directory).verify()
        assert ArchiveTool(archive.directory).positions() == {0: (last, position)}

        archive.kind = "java"
        archive.start()
        with _connected(client, archive) as connected:
            (recording,) = connected.list_recordings()
            assert (recording.start_position, recording.stop_position) == (last, position)
            local = _replayed(connected, last)
            assert local == messages[-len(local) :]
        archive.stop()

        archive.kind = "ours"
        archive.start()
        with _connected(client, archive) as connected:
            copied = [aeron.CopiedRange(0, 0, last, last)]
            eventually(lambda: connected.list_copied_ranges() == copied)
            assert _replayed(connected, 0) == messages
        assert archive.stop() == 15


def _connected(client, archive):
    control, control_stream, _ = archive.control("udp")
    return aeron.connect_archive(client, control_channel=control, control_stream_id=control_stream)


def _replayed(connected, position):
    with connected.replay(0, position=position, length=aeron.REPLAY_ALL_AND_STOP) as replay:
        return [message for batch in replay.batches(timeout=10) for message in batch.to_list()]


def _bases(archive):
    return sorted(int(path.stem.split("-")[1]) for path in archive.directory.glob("*.rec"))

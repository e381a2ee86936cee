"""Test of `aeron archive stat` on the real archive and on ours."""

import json

import aeron
from commands import run
from interop.kinds import each_archive_on_ours
from interop.waiting import eventually

_STREAM = 4601
_CHANNEL = "aeron:ipc?term-length=64k"


@each_archive_on_ours
def test_stat_shows_the_bytes_of_active_and_stopped_recordings(drivers, start_archive, kinds):
    kind, driver_kind = kinds
    driver = drivers(driver_kind)
    archive = start_archive(kind, driver)
    control, control_stream, _ = archive.control("udp")
    target = ["--dir", driver.directory, "--control-channel", control, "--control-stream", control_stream]
    with (
        aeron.connect(driver.directory) as client,
        aeron.connect_archive(client, control_channel=control, control_stream_id=control_stream) as connected,
    ):
        connected.start_recording(_CHANNEL, _STREAM)
        first, second = (client.add_exclusive_publication(_CHANNEL, _STREAM) for _ in range(2))
        for publication in (first, second):
            publication.wait_connected(timeout=10)
            position = publication.publish(bytes(1000), timeout=10)
            recording = connected.wait_recorded(publication, position, timeout=10)
            if publication is first:
                session_id = first.session_id
                first.close()
                eventually(lambda id=recording.recording_id: connected.get_stop_position(id) is not None)
        result = run("archive", "stat", *target, "--json", "-u", 50)
        assert result.exit_code == 0, result.output
        shown = json.loads(result.stdout)
    assert shown["archive_id"] == archive.archive_id()
    assert [(each["session_id"], each["bytes"], each["is_active"]) for each in shown["recordings"]] == [
        (second.session_id, position, True),
        (session_id, position, False),
    ]
    assert [each["bytes_per_s"] for each in shown["recordings"]] == [0, 0]

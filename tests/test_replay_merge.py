"""Test of `ReplayMerge` with a driver that does not process its commands for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import eventually
from tests.frozen import fill_command_buffer
from tests.ports import free_port

import aeron


class DriverThread:
    """Runs a driver that has no threads. The thread can pause."""

    def __init__(self, driver: aeron.MediaDriver) -> None:
        self._driver = driver
        self._is_ended = threading.Event()
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> DriverThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended.set()
        self._thread.join()

    def paused(self) -> threading.Lock:
        """Returns a context in which the driver does nothing."""
        return self._turn

    def _run(self) -> None:
        while not self._is_ended.is_set():
            with self._turn:
                self._driver.do_work()
            time.sleep(0.0005)


def has_room(client: aeron.Aeron) -> bool:
    """Returns whether the command buffer has room for a command, which it also sends."""
    try:
        client.async_add_counter(1001, "y")
    except aeron.AeronError:
        return False
    return True


@pytest.mark.parametrize("end", ["poll", "close"])
def test_a_removal_of_the_replay_is_sent_again_after_the_command_buffer_was_full(
    end: str, tmp_path: Path, stream_id: int
) -> None:
    control = free_port()
    with (
        aeron.MediaDriver(threading_mode="INVOKER") as driver,
        DriverThread(driver) as thread,
        # The archive gets the directory of the driver. Otherwise it would run the driver.
        aeron.Archive(tmp_path, driver=driver.dir, segment_file_length=128 * 1024, low_storage_space_threshold=0),
        aeron.connect(driver.dir) as client,
        aeron.connect_archive(client) as archive,
    ):
        channel = f"aeron:udp?control=127.0.0.1:{control}|control-mode=dynamic|ssc=true|term-length=64k"
        publication = archive.add_recorded_exclusive_publication(channel, stream_id)
        for _ in range(20):
            position = publication.publish(b"x" * 700, timeout=10)
        recording = archive.wait_recorded(publication, position, timeout=10)
        session = f"session-id={publication.session_id}"
        subscription = client.add_subscription(f"aeron:udp?control-mode=manual|{session}", stream_id)
        merge = aeron.ReplayMerge(
            subscription,
            archive,
            replay_channel=f"aeron:udp?{session}",
            replay_destination="aeron:udp?endpoint=127.0.0.1:0",
            live_destination=f"aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:{control}",
            recording_id=recording.recording_id,
        )

        def polled(is_done: Callable[[], bool]) -> bool:
            merge.poll_batch()
            return is_done()

        eventually(lambda: polled(lambda: merge.is_live_added), timeout=20)
        image = merge.image
        assert image is not None
        eventually(lambda: image.active_transport_count == 2, timeout=10)
        assert not merge.is_merged
        with thread.paused():
            pending = fill_command_buffer(client)
            eventually(lambda: polled(lambda: merge.is_merged), timeout=10)
            assert len(subscription.local_socket_addresses) == 2
        if end == "poll":
            eventually(lambda: polled(lambda: len(subscription.local_socket_addresses) == 1), timeout=10)
        else:
            eventually(lambda: has_room(client), timeout=10)
            merge.close()
            eventually(lambda: len(subscription.local_socket_addresses) == 1, timeout=10)
        assert merge.is_merged
        merge.close()
        del pending

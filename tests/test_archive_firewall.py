"""Tests of an archive on another host. A firewall lets in only packets that respond to packets of this side."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from commands import driver_directory, running_driver
from firewall import INSIDE_ADDRESS, OUTSIDE_ADDRESS, Firewall, two_hosts_with_a_firewall
from test_archive_scenarios import SETTINGS, running_archive

STREAM_ID = 1001
CONTROL = f"aeron:udp?endpoint={OUTSIDE_ADDRESS}:8010"
RESPONSES = f"aeron:udp?control-mode=response|control={OUTSIDE_ADDRESS}:8020"
ARCHIVE_OPTIONS = (
    f"-Daeron.archive.control.channel={CONTROL}",
    f"-Daeron.archive.replication.channel=aeron:udp?endpoint={OUTSIDE_ADDRESS}:0",
)
# The archive records this publication with a spy. With `ssc=true`, the spy counts as a connected subscriber.
PUBLISHED = f"aeron:udp?control-mode=dynamic|control={OUTSIDE_ADDRESS}:8030|ssc=true"
LIVE = f"aeron:udp?control-mode=dynamic|control={OUTSIDE_ADDRESS}:8030|endpoint={INSIDE_ADDRESS}:0"


@pytest.fixture
def firewall() -> Iterator[Firewall]:
    with two_hosts_with_a_firewall() as firewall:
        yield firewall


@pytest.fixture
def drivers(firewall: Firewall, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Yields the directories of the archive's driver and of the driver on this side of the firewall."""
    with (
        driver_directory() as there,
        driver_directory() as here,
        running_archive(there, tmp_path / "archive", *ARCHIVE_OPTIONS, namespace=firewall.outside),
        running_driver(here, namespace=firewall.inside, **SETTINGS),
    ):
        yield there, here


def test_a_client_behind_a_firewall_replays_and_follows_a_recording(
    firewall: Firewall, drivers: tuple[Path, Path]
) -> None:
    there, here = drivers
    messages = [b"%06d" % number * 200 for number in range(300)]
    with ExitStack() as stack:
        publishing = stack.enter_context(aeron.connect_archive(stack.enter_context(aeron.connect(there))))
        publication = publishing.add_recorded_publication(PUBLISHED, STREAM_ID)
        for message in messages:
            publication.publish(message, timeout=10)
        recording = publishing.wait_recorded(publication, publication.position, timeout=10).recording_id
        client = stack.enter_context(aeron.connect(here))
        archive = stack.enter_context(
            aeron.connect_archive(client, control_channel=CONTROL, response_channel=RESPONSES)
        )
        with archive.replay(recording, RESPONSES, length=aeron.REPLAY_ALL_AND_STOP) as replay:
            assert [message for batch in replay.batches() for message in batch.to_list()] == messages
        followed: list[bytes] = []
        with archive.follow(recording, live_channel=LIVE, replay_channel=RESPONSES, reader="inside") as follower:

            def follow_to_the_end() -> bool:
                if (batch := follower.poll_batch()) is not None:
                    followed.extend(batch.to_list())
                return len(followed) == len(messages)

            eventually(follow_to_the_end)
            eventually(lambda: follower.poll_batch() is None and follower.is_live)
            messages.append(b"live")
            publication.publish(messages[-1], timeout=10)
            eventually(follow_to_the_end)
        assert followed == messages
        [reader] = archive.list_readers(name="inside")
        assert reader.position == publication.position
    assert firewall.refused == []


def test_an_archive_does_not_reach_a_port_of_a_host_behind_a_firewall(
    firewall: Firewall, drivers: tuple[Path, Path]
) -> None:
    """This test shows that the firewall refuses packets. The other test depends on this."""
    with (
        aeron.connect(drivers[1]) as client,
        pytest.raises(aeron.ArchiveTimeoutError),
    ):
        endpoint = f"aeron:udp?endpoint={INSIDE_ADDRESS}:8040"
        aeron.connect_archive(client, control_channel=CONTROL, response_channel=endpoint, message_timeout=1)
    address = socket.inet_aton(INSIDE_ADDRESS) + (8040).to_bytes(2, "big")
    assert address in {destination for _, _, destination in firewall.refused}

"""Test of persistent subscriptions with lost datagrams. A number such as 11-13 is line 13 of document 11."""

import itertools

import pytest

import aeron
from interop.loss import lossy
from interop.persistent import IPC, Reader, Source
from interop.test_archive_python import connected
from ports import free_port

_NETWORK = "ssc=true|term-length=1m"


@pytest.mark.parametrize("lost", ["live", "replay", "both"])
def test_each_message_is_received_once_although_a_third_of_the_datagrams_is_lost(drivers, start_archive, stream, lost):
    """11-46"""
    driver = drivers("ours", lossy("ours", 0.3))
    server = start_archive("ours", driver)
    control, control_stream, responses = server.control("ipc")
    settings = {"control_channel": control, "control_stream_id": control_stream, "response_channel": responses}
    port = free_port()
    live = f"aeron:udp?endpoint=localhost:{port}" if lost != "replay" else IPC
    with aeron.connect(driver.directory) as client, connected(client, settings) as archive:
        published = f"{live}|{_NETWORK}" if lost != "replay" else "aeron:ipc?term-length=1m"
        source = Source(archive, published, stream, lengths=(100, 3000))
        source.send(60)
        settings |= {
            "recording_id": source.id,
            "live_channel": live,
            "live_stream_id": stream,
            "replay_channel": IPC if lost == "live" else "aeron:udp?endpoint=localhost:0",
            "start_position": aeron.FROM_START,
        }
        with Reader(aeron.PersistentSubscription, client, **settings) as reader:
            reader.until_live(meanwhile=source.trickle)
            source.send(20, reader=reader)
            reader.until_read(source.messages)
            names = [name for name, _, _ in reader.events]
            assert names == list(itertools.islice(itertools.cycle(["joined", "left"]), len(names)))
        assert {counter.label: counter.value for counter in client.counters_reader}["NAKs sent"] > 0

"""Streams over IPC between clients and drivers of every kind."""

import pytest

from interop.peers import transfer

IPC = "aeron:ipc"
KINDS = ["java", "c"]


@pytest.mark.parametrize("driver", ["java", "c"])
@pytest.mark.parametrize("publisher", KINDS)
@pytest.mark.parametrize("subscriber", KINDS)
@pytest.mark.parametrize("exclusive", [False, True], ids=("concurrent", "exclusive"))
def test_messages_arrive_whole_and_in_order(
    driver, publisher, subscriber, exclusive, shared_drivers, start_peer, stream
):
    running = shared_drivers(driver)
    subscription = start_peer(subscriber, running).add_subscription(IPC, stream)
    publication = start_peer(publisher, running).add_publication(IPC, stream, exclusive=exclusive)
    publication.await_connected()
    for how in ("offer", "claim", "parts"):
        transfer([publication], [subscription], 300, [32, 0, 1, 100, 1344], how=how)
    transfer([publication], [subscription], 60, [1377, 10_000, publication.max_message])

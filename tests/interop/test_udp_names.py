"""Tests of names between two drivers, one of them ours. The names come from gossip, or from a table that changes."""

import struct

from interop.kinds import each_way
from interop.peers import transfer
from interop.system import RESOLUTION_CHANGES, counter, counters_of
from interop.waiting import eventually
from ports import free_port

NEIGHBORS, CACHE_ENTRIES, TABLE_ENTRY = 15, 16, 2001
LENGTHS = [100, 3000]


def gossiping(name, port, neighbor_port):
    return {
        "AERON_NAME_RESOLVER_SUPPLIER": "driver",
        "AERON_DRIVER_RESOLVER_NAME": name,
        "AERON_DRIVER_RESOLVER_INTERFACE": f"127.0.0.1:{port}",
        "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR": f"127.0.0.1:{neighbor_port}",
        "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT": "3s",
    }


@each_way
def test_drivers_exchange_their_names(sender, receiver, start_driver, start_peer, stream):
    """02-93, 02-97, 04-175: a publication finds the other driver by its name, until the name times out"""
    ports = free_port(), free_port()
    sending = start_driver(sender, _for_java(sender, gossiping("berlin", *ports)))
    receiving = start_driver(receiver, _for_java(receiver, gossiping("tokyo", *reversed(ports))))
    publisher, subscriber = start_peer(sender, sending), start_peer(receiver, receiving)
    for peer in (publisher, subscriber):
        eventually(lambda peer=peer: [c["value"] for c in counters_of(peer, NEIGHBORS)] == [1], timeout_s=15)
        eventually(lambda peer=peer: [c["value"] for c in counters_of(peer, CACHE_ENTRIES)] == [1], timeout_s=15)
    channel = f"aeron:udp?endpoint=tokyo:{free_port()}"
    subscription = subscriber.add_subscription(channel, stream)
    publication = publisher.add_publication(channel, stream)
    publication.await_connected()
    transfer([publication], [subscription], 20, LENGTHS)
    receiving.kill()
    eventually(lambda: [c["value"] for c in counters_of(publisher, NEIGHBORS)] == [0], timeout_s=10)
    eventually(lambda: [c["value"] for c in counters_of(publisher, CACHE_ENTRIES)] == [0])


def _for_java(kind, settings):
    """Returns the settings; for `java` without the supplier of the name resolver, which Java chooses by the other
    settings."""
    if kind != "java":
        return settings
    return {name: value for name, value in settings.items() if name != "AERON_NAME_RESOLVER_SUPPLIER"}


def test_our_driver_sends_to_the_new_address_of_a_name(start_driver, start_peer, drivers, stream):
    """04-172, 04-174: after a change of the table, the stream goes to another socket of the C driver"""
    _follows("ours", start_driver, start_peer, drivers, stream)


def test_the_c_driver_sends_to_the_new_address_of_a_name_on_our_driver(start_driver, start_peer, drivers, stream):
    """04-172"""
    _follows("c", start_driver, start_peer, drivers, stream)


def _follows(sender, start_driver, start_peer, drivers, stream):
    receiver = "c" if sender == "ours" else "ours"
    port = free_port()
    table = {
        "AERON_NAME_RESOLVER_SUPPLIER": "csv_table",
        "AERON_NAME_RESOLVER_INIT_ARGS": "moving,127.0.0.1,127.0.0.2",
    }
    running = start_driver(sender, table)
    subscriptions = [
        start_peer(receiver, drivers(receiver)).add_subscription(f"aeron:udp?endpoint=127.0.0.{host}:{port}", stream)
        for host in (1, 2)
    ]
    publisher = start_peer(sender, running)
    publication = publisher.add_publication(f"aeron:udp?endpoint=moving:{port}", stream)
    publication.await_connected()
    transfer([publication], subscriptions[:1], 20, LENGTHS)
    [entry] = counters_of(publisher, TABLE_ENTRY)
    assert entry["label"].startswith("NameEntry{name='moving', initialResolutionHost='127.0.0.1'")
    assert counter(publisher, RESOLUTION_CHANGES) == 0
    set_counter(running, entry["id"], 1)
    subscriptions[0].close()
    [image] = subscriptions[1].await_images(1, timeout_s=20)
    publication.await_connected()
    assert image["session"] == publication.session
    assert counter(publisher, RESOLUTION_CHANGES) == 1
    assert publication.offer(LENGTHS[0]) > 0
    assert subscriptions[1].receive(1, LENGTHS, first=20)["faults"] == []


def set_counter(driver, id, value):
    """Writes a counter of the driver, as an operator does."""
    with open(f"{driver.directory}/cnc.dat", "r+b") as file:
        _, to_driver, to_clients, metadata, _ = struct.unpack("<5i", file.read(20))
        file.seek(128 + to_driver + to_clients + metadata + id * 128)
        file.write(struct.pack("<q", value))

"""Compares addresses of unusual forms on the Java driver and on ours. The C driver has other errors for some."""

import pytest

from interop import control
from interop.control import ControlClient
from ports import free_port

ADDRESSES = [
    "aeron:udp",
    "aeron:udp?alias=x",
    "aeron:udp?endpoint=localhost:{port}&control=localhost:{port}",
    "aeron:udp?endpoint=localhost:{port}&x",
    "aeron:udp?endpoint=a:1,b:2",
    "aeron:udp?endpoint=:{port}",
    "aeron:udp?control=:{port}|control-mode=dynamic",
    "aeron:udp?endpoint=localhost",
    "aeron:udp?endpoint=[::1%lo]:{port}",
    "aeron:udp?endpoint=[fe80::9:1%lo]:{port}",
    "aeron:udp?endpoint=[fe80::9:1%lo]:{port}|interface=[fe80::9:1%lo]",
]
# The Java driver's error for these has code 1, as for all texts that it cannot parse.
OTHER_CODES = {"aeron:udp?endpoint=localhost": 11, ADDRESSES[-1]: 11}


@pytest.mark.parametrize("kind", [control.ADD_PUBLICATION, control.ADD_SUBSCRIPTION])
def test_our_driver_accepts_the_same_addresses_as_the_java_driver(kind, start_driver):
    """05-8"""
    told = []
    for driver in ("java", "ours"):
        client = ControlClient(start_driver(driver).directory)
        told.append([])
        for number, address in enumerate(ADDRESSES):
            channel = address.format(port=free_port())
            add = control.add if kind == control.ADD_PUBLICATION else control.add_subscription
            events = client.perform(kind, add(1, 100 + number, 5000 + number, channel))
            code = {"ours": OTHER_CODES.get(address)}.get(driver)
            for event in events:
                if event.name == "ON_ERROR":
                    assert code in (None, event.code), (address, event.text)
                    told[-1].append((address, event.name, 1 if code else event.code))
                elif event.name in ("ON_PUBLICATION_READY", "ON_SUBSCRIPTION_READY"):
                    told[-1].append((address, event.name))
        addresses = [each.label for each in client.counters() if each.label.startswith(("snd-channel", "rcv-channel"))]
        assert any("endpoint=:" in label and " 127.0.0.1:" in label for label in addresses)
        client.close()
    theirs, ours = told
    assert ours == theirs

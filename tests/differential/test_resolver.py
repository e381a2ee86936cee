"""Sends datagrams to the socket on which drivers exchange names: malformed datagrams and generated series."""

import struct
import time

import pytest

from differential import cases, differences, wire
from differential.rig import PACE, PATIENCE_S, SCALE, Duel, Socket
from interop.waiting import eventually

# The resolver runs every 10 ms. It sends no immediate response, so the script waits for two or more of its runs.
_RUN_S = 0.025 * PACE
_SETTINGS = {
    "AERON_NAME_RESOLVER_SUPPLIER": "driver",
    "AERON_DRIVER_RESOLVER_NAME": "alpha",
    "AERON_DRIVER_RESOLVER_INTERFACE": "127.0.0.1:{port}",
    "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT": "60s",
}
_COUNTERS = {15: "neighbors", 16: "cache entries"}
_PORT_IN_VECTORS = struct.pack("<H", 24420)
_SELF = 0x80


class ResolverScene:
    """The resolver of a driver, and a socket in the role of its neighbours."""

    def __init__(self, side, system=("Invalid packets", "Errors")):
        self.side, self._system = side, system
        self.address = ("127.0.0.1", side.port)
        self.socket = Socket()
        self._counters = {_COUNTERS[c.type]: c.id for c in side.control.counters() if c.type in _COUNTERS}
        self._before = {}
        self._before = self.observe()

    def send(self, datagram):
        self.socket.send(datagram, self.address)

    @staticmethod
    def settle(*_):
        time.sleep(_RUN_S)

    def observe(self):
        system = self.side.system()
        now = {**self.side.values(self._counters), **{name: system[name] for name in self._system}}
        return {name: value - self._before.get(name, 0) for name, value in now.items()}

    def forget_frames(self):
        """Does nothing: the resolver sends only by timers, so no frames are compared."""

    def hear_everything(self):
        """Does nothing: the resolver needs no request."""

    def names(self):
        """Returns the names that the driver sends to its neighbours, without ages."""
        self.socket.take()
        return {entry for _, datagram, _ in self.socket.taken for entry in _entries(datagram)}

    def close(self):
        self.socket.close()


def _entries(datagram):
    at, found = 8, []
    while at < len(datagram):
        type_id, flags, port = struct.unpack_from("<BBH", datagram, at)
        address_length = 4 if type_id == 1 else 16
        name_at = at + 8 + address_length
        (name_length,) = struct.unpack_from("<h", datagram, name_at)
        if not flags & _SELF:
            address = datagram[at + 8 : at + 8 + address_length]
            found.append((type_id, port, address, datagram[name_at + 2 : name_at + 2 + name_length]))
        at += wire.align(10 + address_length + name_length, 8)
    return found


def _entry(type_id, flags, port, age_ms, address, name):
    entry = struct.pack("<BBHi", type_id, flags, port, age_ms) + address + struct.pack("<h", len(name)) + name
    return entry.ljust(wire.align(len(entry), 8), b"\0")


def _datagram(entries):
    body = b"".join(entries)
    return struct.pack("<iBBH", 8 + len(body), 0, 0, wire.RES) + body


@pytest.mark.parametrize("case", cases.of(cases.RESOLVER), ids=lambda case: case.name)
def test_the_resolver_handles_a_malformed_datagram_like_the_c_driver(pairs, case):
    """02-103, 02-112, 04-177"""
    pair = pairs(**_SETTINGS)
    known = case.name in differences.MALFORMED
    if known:
        # The C driver handles this datagram differently, or crashes, so the script uses only our driver. The additional
        # setting starts another pair of drivers, so that the state of the shared pair does not change.
        pair = pairs(**_SETTINGS, AERON_EVENT_LOG="")[1:]
    with Duel(pair, ResolverScene) as duel:
        duel.step("start")
        for datagram in case.datagrams:
            own = lambda scene: datagram.replace(_PORT_IN_VECTORS, struct.pack("<H", scene.side.port))  # noqa: E731, B023
            duel.step(f"{case.name}: {datagram.hex()}", lambda scene, own=own: scene.send(own(scene)))
        duel.step("wait")
        # The drivers are also equal if neither has handled the datagram yet. So the test waits for the expected count.
        eventually(lambda: duel.step("wait")["Invalid packets"] == case.counts_as_invalid)
        assert duel.scenes[-1].side.is_alive()


@pytest.mark.parametrize("seed", range(1, 1 + SCALE))
def test_series_of_neighbours_have_the_same_effects_in_both_drivers(pairs, seed):
    """02-94, 02-95, 02-112"""
    settings = {**_SETTINGS, "AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL": "200ms"}
    # The counter of errors is not compared: sending to the invented neighbours fails at times that depend on timers.
    with Duel(pairs(**settings), lambda side: ResolverScene(side, ["Invalid packets"]), seed) as duel:
        choose = duel.random
        for number in range(40):
            entries = [_random_entry(choose) for _ in range(choose.randint(1, 4))]
            datagram = _datagram(entries)
            if choose.random() < 0.1:
                # A longer datagram could end after 8 or more bytes of an entry. The C driver would then continue with
                # bytes of an earlier datagram.
                datagram = datagram[: choose.randrange(1, 16)]
            duel.step(f"{number}: {datagram.hex()}", lambda scene, d=datagram: scene.send(d))
        _announce(duel)
        duel.step("a neighbour that listens")
        time.sleep(0.6 * PACE)
        # A driver that is late sends the same names in the next interval. Ours sends at most ten bytes for each
        # received byte. So the neighbour announces itself again and again, as a driver does, until it has received all
        # names.
        deadline = time.monotonic() + PATIENCE_S
        while True:
            _announce(duel)
            theirs, ours = (_without(scene.names(), scene.socket.address[1]) for scene in duel.scenes)
            if theirs == ours or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        assert theirs == ours
        assert len(ours) > 5


def _announce(duel):
    for scene in duel.scenes:
        host, port = scene.socket.address
        itself = _entry(1, _SELF, port, 0, bytes(map(int, host.split("."))), b"listener")
        scene.send(_datagram([itself]))


def _random_entry(choose):
    type_id = choose.choices([1, 2, 3], [10, 5, 1])[0]
    address = bytes([127, *choose.choices(range(3), k=3 if type_id == 1 else 15)])
    name = choose.choice([b"a", b"bb", b"ccc", b"alpha", b"a-name-of-more-than-8-bytes", b""])
    return _entry(
        type_id, choose.choice([0, _SELF]), choose.randrange(20000, 20004), choose.choice([0, 5, 1000]), address, name
    )


def _without(names, port):
    return {name for name in names if name[1] != port}

"""Test of connections to an archive over a network that loses a fifth of all datagrams.

Our driver sends few SETUP frames to an address that has sent nothing back, and the real C driver sends one each 100 ms.
Clients connect as often. `make soak` sets the variable `SOAK`, which raises the number of connections from 5 to 100.
"""

import os
import statistics
import time

import pytest

import aeron
from interop.archive_peers import ArchiveClient
from interop.drivers import PATIENT_SETTINGS
from interop.loss import lossy
from interop.peers import PeerError

pytestmark = pytest.mark.timeout(1800 if os.environ.get("SOAK") else 120)

_TRIES = 100 if os.environ.get("SOAK") else 5
_LOSS = 0.2
_TIMEOUT_S = 5
# Of 100 connections, this number may fail by chance.
_CHANCE = 3


class _Ours:
    def __init__(self, driver, archive):
        self._aeron = aeron.connect(driver.directory)
        self._channel, self._stream, self._responses = archive.control("udp")

    def connect(self):
        options = {"control_channel": self._channel, "response_channel": self._responses}
        aeron.connect_archive(
            self._aeron, control_stream_id=self._stream, message_timeout=_TIMEOUT_S, **options
        ).close()

    def close(self):
        self._aeron.close()


class _Java:
    def __init__(self, peer, archive):
        self._peer, self._archive = peer, archive

    def connect(self):
        ArchiveClient(self._peer, self._archive, "udp", timeout_s=_TIMEOUT_S).close()

    def close(self):
        pass


@pytest.mark.parametrize("client_kind", ["ours", "java"])
def test_clients_connect_through_loss_as_often_as_with_the_real_driver(
    start_driver, start_archive, start_peer, client_kind
):
    """04-198"""
    clients, times, failed = {}, {}, {}
    there = start_driver("ours", {**PATIENT_SETTINGS, **lossy("ours", _LOSS)})
    peer = start_peer("java-archive-client", there) if client_kind == "java" else None
    for kind in ("c", "ours"):
        driver = start_driver(kind, {**PATIENT_SETTINGS, **lossy(kind, _LOSS)})
        archive = start_archive("ours", driver)
        clients[kind] = _Ours(there, archive) if peer is None else _Java(peer, archive)
        times[kind], failed[kind] = [], 0
    for number in range(2 * _TRIES):
        kind = ("c", "ours")[number % 2]
        begin = time.monotonic()
        try:
            clients[kind].connect()
            times[kind].append(time.monotonic() - begin)
        except (aeron.ArchiveTimeoutError, PeerError):
            failed[kind] += 1
    for client in clients.values():
        client.close()
    for kind, seconds in times.items():
        print(f"{client_kind} client, archive on {kind}: {failed[kind]} of {_TRIES} failed, {_summary(seconds)}")
    assert failed["ours"] <= failed["c"] + _CHANCE


def _summary(seconds):
    load = os.getloadavg()[0]
    return f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s, load {load:.1f}"

"""Tests of an archive that receives a replay request, or ends, while recordings are starting."""

import struct
import time

import pytest

import aeron

_CHANNEL = "aeron:ipc?term-length=64k"
_STREAM, _REPLAY_STREAM = 4100, 4200
_SCHEMA, _VERSION = 101, 13
_CONNECT, _START_RECORDING, _REPLAY, _STOP_REPLAY = 58, 4, 6, 7
_CONTROL_RESPONSE, _OK = 1, 0
_RECORDING_POSITION_TYPE = 100
_TIMEOUT_S = 10

each_mode = pytest.mark.parametrize("mode", ["SHARED", "DEDICATED"])


class Session:
    """A control session without a client library. It sends a request at the exact time that a test chooses."""

    def __init__(self, client, archive):
        channel, stream, _ = archive.control("ipc")
        self._responses = client.add_subscription(channel, stream + 1)
        self._requests = client.add_exclusive_publication(channel, stream)
        self._requests.wait_connected(timeout=_TIMEOUT_S)
        self._correlation_id = 0
        self._id = 0
        fields = struct.pack("<qii", 1, stream + 1, 0x00010C00)
        self._send(_CONNECT, fields + _text(channel) + _text("") + _text(""))
        self._id, _, _ = self._await_response(1)

    def ask(self, template, fields=b"", text=None):
        """Sends a request. Returns the result and the error text of the response."""
        self._correlation_id += 1
        correlation_id = 1000 + self._correlation_id
        body = struct.pack("<qq", self._id, correlation_id) + fields
        self._send(template, body + (b"" if text is None else _text(text)), block=len(body))
        _, result, error = self._await_response(correlation_id)
        return result, error

    def record(self, stream):
        """Requests a recording of an IPC stream."""
        assert self.ask(_START_RECORDING, struct.pack("<ii", stream, 0), "aeron:ipc")[1] == ""

    def _send(self, template, body, block=16):
        self._requests.publish(struct.pack("<HHHH", block, template, _SCHEMA, _VERSION) + body, timeout=_TIMEOUT_S)

    def _await_response(self, correlation_id):
        found = []

        def take(payload, _header):
            message = bytes(payload)
            if struct.unpack_from("<H", message, 2)[0] == _CONTROL_RESPONSE:
                session, correlation, result, code = struct.unpack_from("<qqqi", message, 8)
                if correlation == correlation_id:
                    found.append((session, result, "" if code == _OK else message[44:].decode()))

        deadline = time.monotonic() + _TIMEOUT_S
        while not found:
            assert time.monotonic() < deadline, "no response"
            self._responses.poll(take, 10)
        return found[0]


def _text(text):
    return struct.pack("<I", len(text)) + text.encode()


def _await_counter(file, recording):
    deadline = time.monotonic() + _TIMEOUT_S
    while not any(
        counter.type_id == _RECORDING_POSITION_TYPE and int.from_bytes(counter.key[:8], "little") == recording
        for counter in file.counters()
    ):
        assert time.monotonic() < deadline, "no counter"


def _stop_positions(archive):
    """Returns the stop positions of all catalog entries."""
    catalog = (archive.directory / "archive.catalog").read_bytes()
    at, found = 32, []
    while at + 32 <= len(catalog) and (length := struct.unpack_from("<i", catalog, at)[0]) > 0:
        found.append(struct.unpack_from("<q", catalog, at + 32 + 48)[0])
        at += (32 + length + 63) // 64 * 64
    return found


@each_mode
def test_a_recording_can_be_replayed_as_soon_as_its_counter_exists(drivers, start_archive, mode):
    """07-46, 07-84"""
    driver = drivers("ours")
    archive = start_archive("ours", driver, {"aeron.archive.threading.mode": mode})
    with aeron.connect(driver.directory) as client, aeron.CncFile(driver.directory) as file:
        session = Session(client, archive)
        client.add_subscription("aeron:ipc", _REPLAY_STREAM)
        for recording in range(20):
            session.record(_STREAM + recording)
            publication = client.add_exclusive_publication(_CHANNEL, _STREAM + recording)
            _await_counter(file, recording)
            fields = struct.pack("<qqqiiq", recording, -1, -1, _REPLAY_STREAM, -1, -1)
            replay, error = session.ask(_REPLAY, fields, "aeron:ipc")
            assert error == ""
            session.ask(_STOP_REPLAY, struct.pack("<q", replay))
            publication.close()
    assert archive.stop() == 15


@each_mode
def test_an_archive_that_ends_while_recordings_start_writes_all_stop_positions(drivers, start_archive, mode):
    """07-81"""
    driver = drivers("ours")
    archive = start_archive("ours", driver, {"aeron.archive.threading.mode": mode})
    for delay_s in (0, 0.0005, 0.001, 0.002):
        with aeron.connect(driver.directory) as client:
            publications = [client.add_exclusive_publication(_CHANNEL, _STREAM) for _ in range(30)]
            Session(client, archive).record(_STREAM)
            time.sleep(delay_s)
            assert archive.stop() == 15
            assert not any(publication.is_closed for publication in publications)
        assert -1 not in _stop_positions(archive)
        archive.start()
    assert archive.stop() == 15

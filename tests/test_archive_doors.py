"""Tests of an archive that strangers flood with requests.

A number such as 07-164 is line 164 of the checklist in document 07 of the specification (`docs/spec`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from aeron._pipeline import _read_archive_mark
from ports import free_port

SMALL = {"segment_file_length": 128 * 1024, "low_storage_space_threshold": 0}
_SCHEMA, _SCHEMA_VERSION = 101, 13
_CONNECT, _CLOSE, _LIST, _STOP_POSITION = 58, 3, 10, 15
_PROTOCOL_VERSION = 1 << 16 | 12 << 8


@pytest.fixture
def host() -> Iterator[aeron.MediaDriver]:
    """A driver for the archive only, so that a flood does not reach other tests."""
    with aeron.MediaDriver(ipc_term_buffer_length=64 * 1024, threading_mode="SHARED") as driver:
        yield driver


def server(driver: aeron.MediaDriver, directory: Path, **settings: object) -> tuple[aeron.Archive, str]:
    control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    return aeron.Archive(directory, driver=driver, control_channel=control, **SMALL, **settings), control


def message(template_id: int, block: bytes, *texts: bytes) -> bytes:
    header = struct.pack("<4H", len(block), template_id, _SCHEMA, _SCHEMA_VERSION)
    return header + block + b"".join(struct.pack("<I", len(text)) + text for text in texts)


def connect_request(number: int, response_channel: str, credentials: bytes = b"", stream_id: int = 5) -> bytes:
    block = struct.pack("<qii", number, stream_id, _PROTOCOL_VERSION)
    return message(_CONNECT, block, response_channel.encode(), credentials, b"")


def send(publication: aeron.ExclusivePublication, request: bytes) -> None:
    eventually(lambda: publication.offer(request))


def errors_of(directory: Path) -> dict[str, int]:
    """Returns the number of observations of each entry in the error log."""
    mark = _read_archive_mark(directory)
    assert mark is not None
    return {error.text: error.observation_count for error in mark.errors}


# ---- the error log ---------------------------------------------------------------------------------------------------


def test_strangers_do_not_fill_the_error_log(host: aeron.MediaDriver, tmp_path: Path) -> None:
    """07-164, 07-165, 07-166"""
    archive, control = server(host, tmp_path)
    with archive, aeron.connect(host) as client, client.add_exclusive_publication(control, 10) as publication:
        publication.wait_connected(timeout=5)
        for number in range(5_000):
            send(publication, message(_LIST, struct.pack("<qqqi", 10**12 + number, number, 0, 1)))
            send(publication, message(_CLOSE, struct.pack("<q", 10**12 + number)))
        for number in range(500):
            send(publication, message(_STOP_POSITION, bytes(number % 24)))
            send(publication, connect_request(number, f"aeron:ipc?mtu={number}{'x' * 900}"))
        eventually(lambda: sum(errors_of(tmp_path).values()) == 6_000)
        entries = errors_of(tmp_path)
    assert entries["WARN - control request for unknown session"] == 5_000
    assert entries["control message has a length that does not fit its template"] == 500
    further = entries["WARN - further errors that clients caused: the error log has no room for their texts"]
    bytes_of_clients = sum(len(text) + 24 for text in entries)
    assert (bytes_of_clients < 300_000) & (0 < further < 500), (bytes_of_clients, further)
    assert not any("10000000" in text for text in entries)

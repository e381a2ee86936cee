"""Makes recordings for tests, and reads their messages from the segment files without code of the package."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import aeron

TERM_LENGTH = SEGMENT_LENGTH = 64 * 1024
MTU_LENGTH = 1408
CHANNEL = f"aeron:ipc?term-length={TERM_LENGTH}|mtu={MTU_LENGTH}"
MAX_MESSAGE_LENGTH = TERM_LENGTH // 8

_HEADER = struct.Struct("<iBBHiiiiq")
_BEGIN, _END, _PADDING = 0x80, 0x40, 0


class Message(NamedTuple):
    """A message of a recording: start position, end position, reserved value, flags and payload."""

    begin: int
    position: int
    reserved_value: int
    flags: int
    payload: bytes


def messages_of(directory: Path, recording_id: int, start: int, stop: int) -> list[Message]:
    """Returns the complete messages in the segment files of a recording."""
    first = start // TERM_LENGTH * TERM_LENGTH
    files = [directory / f"{recording_id}-{base}.rec" for base in range(first, stop, SEGMENT_LENGTH)]
    data = b"".join(file.read_bytes() for file in files)
    found: list[Message] = []
    position = start
    begin, payload = Message(0, 0, 0, 0, b""), b""
    while position < stop:
        offset = position - first
        length, _, flags, kind, _, _, _, _, reserved = _HEADER.unpack_from(data, offset)
        assert length >= _HEADER.size, (position, length)
        end = position + (length + 31) // 32 * 32
        if kind != _PADDING:
            if flags & _BEGIN:
                begin, payload = Message(position, 0, reserved, flags, b""), b""
            payload += data[offset + _HEADER.size : offset + length]
            if flags & _END:
                found.append(begin._replace(position=end, payload=payload))
        position = end
    return found


def offer_all(publication: aeron.ExclusivePublication, messages: Iterable[bytes]) -> int:
    """Publishes messages with their numbers as reserved values. Returns the position after the last one."""
    position: int = publication.position
    deadline = time.monotonic() + 20
    for number, message in enumerate(messages):
        while not (offered := publication.offer(message, reserved_value=number)):
            assert time.monotonic() < deadline, offered
            time.sleep(0.0001)
        position = offered
    return position


@dataclass(frozen=True)
class Recorder:
    """A running archive with short segments, and a client of the archive."""

    client: aeron.Aeron
    archive: aeron.AeronArchive
    directory: Path

    def record(self, stream_id: int, messages: Iterable[bytes]) -> aeron.Recording:
        """Records messages, stops the recording and returns it. The reserved value of a message is its number."""
        with self.archive.add_recorded_exclusive_publication(CHANNEL, stream_id) as publication:
            position = offer_all(publication, messages)
            recording = self.archive.wait_recorded(publication, position, timeout=10)
            self.archive.stop_recording(publication)
        stopped = self.archive.list_recording(recording.recording_id)
        assert stopped is not None
        return stopped

    def messages(self, recording: aeron.Recording) -> list[Message]:
        """Returns the messages in the segment files of a stopped recording."""
        assert recording.stop_position is not None
        return messages_of(self.directory, recording.recording_id, recording.start_position, recording.stop_position)


@contextmanager
def recorder(driver: aeron.MediaDriver, directory: Path) -> Iterator[Recorder]:
    """Yields a running archive in `directory`."""
    with (
        aeron.Archive(directory, driver=driver, segment_file_length=SEGMENT_LENGTH, low_storage_space_threshold=0),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        yield Recorder(client, archive, directory)

"""Reads the messages of a partition directly from the segment files, without code of the product."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct("<iBBHiiiiq")
_PADDING = 0
_BEGIN, _END = 0x80, 0x40


class Message(NamedTuple):
    """A complete message and its end position."""

    recording_id: int
    stream_id: int
    session_id: int
    position: int
    payload: bytes


def messages(partition: str) -> list[Message]:
    """Returns the messages of a partition. Checks that every frame has the position that its header states."""
    piece = json.loads(partition)
    recording, position = piece["recording"], piece["from"]
    found: list[Message] = []
    parts: list[bytes] | None = None
    while position < piece["to"]:
        frame = _frame(Path(piece["archive"]["path"]), recording, position)
        if frame.kind == _PADDING:
            parts = None
        else:
            if frame.flags & _BEGIN:
                parts = []
            if parts is not None:
                parts.append(frame.payload)
                if frame.flags & _END:
                    end = position + frame.aligned_length
                    ids = recording["id"], recording["stream_id"], recording["session_id"]
                    found.append(Message(*ids, end, b"".join(parts)))
                    parts = None
        position += frame.aligned_length
    assert position == piece["to"], "the range ends within a frame"
    assert parts is None, "the range ends within a message"
    return found


class _Frame(NamedTuple):
    flags: int
    kind: int
    aligned_length: int
    payload: bytes


def _frame(path: Path, recording: dict[str, int], position: int) -> _Frame:
    term_length = recording["term_length"]
    first = recording["start_position"] // term_length * term_length
    base = first + (position - first) // recording["segment_length"] * recording["segment_length"]
    with (path / f"{recording['id']}-{base}.rec").open("rb") as file:
        file.seek(position - base)
        header = file.read(_HEADER.size)
        length, _version, flags, kind, offset, session, stream, term, _reserved = _HEADER.unpack(header)
        assert length >= _HEADER.size, f"no frame at {position} of recording {recording['id']}"
        assert (session, stream) == (recording["session_id"], recording["stream_id"])
        assert offset == position % term_length
        assert (term - recording["initial_term_id"]) % 2**32 == position // term_length
        payload = b"" if kind == _PADDING else file.read(length - _HEADER.size)
    return _Frame(flags, kind, (length + 31) // 32 * 32, payload)

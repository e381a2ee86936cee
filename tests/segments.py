"""Builds a segment file of a recording frame by frame, without an archive."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

__all__ = ["BEGIN", "BOOT_ID", "END", "MIB", "SESSION_ID", "STREAM_ID", "Segment"]

DATA, PADDING = 1, 0
UNFRAGMENTED, BEGIN, END = 0xC0, 0x80, 0x40
SESSION_ID, STREAM_ID, TERM_ID = -5, 1001, 7
MIB = 1 << 20
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Segment:
    """The first segment file of recording 0. `position` is the position after the last written frame."""

    def __init__(self, directory: Path, length: int = MIB) -> None:
        self.directory = directory
        self.length = length
        self.path = directory / "0-0.rec"
        self.path.touch()
        os.truncate(self.path, length)
        self.position = 0

    def frame(self, payload: bytes, flags: int = UNFRAGMENTED, reserved_value: int = 0) -> int:
        self._write(32 + len(payload), flags, DATA, reserved_value, payload)
        return self.position

    def padding(self, length: int) -> None:
        self._write(length, 0, PADDING, 0, b"")

    def _write(self, length: int, flags: int, kind: int, reserved_value: int, payload: bytes) -> None:
        place = (self.position, SESSION_ID, STREAM_ID, TERM_ID)
        header = struct.pack("<iBBH4iq", length, 0, flags, kind, *place, reserved_value)
        self.write(self.position, header + payload)
        self.position += (length + 31) // 32 * 32

    def write(self, position: int, data: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(position)
            file.write(data)

    def partition(self, start: int = 0, **location: Any) -> str:
        """Returns the JSON text of a partition with all messages from position `start` on."""
        archive = {
            "path": str(self.directory),
            "nonce": None,
            "boot_id": BOOT_ID.read_text().strip(),
            "host": "here",
            **location,
        }
        recording = {
            "id": 0,
            "stream_id": STREAM_ID,
            "session_id": SESSION_ID,
            "initial_term_id": TERM_ID,
            "term_length": self.length,
            "segment_length": self.length,
            "start_position": 0,
            "channel": "aeron:ipc",
        }
        range_ = {"from": start, "to": self.position, "end": self.position, "index_hint": None}
        return json.dumps({"archive": archive, "recording": recording, **range_})

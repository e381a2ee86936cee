"""Keys of a driver's counters: the stream or channel of a counter."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import aeron

_STREAM = struct.Struct("<qiii")
_CHANNEL = struct.Struct("<i")


@dataclass(frozen=True)
class StreamKey:
    """Key of a counter of a stream. A long channel is truncated, because the length of a key is limited."""

    registration_id: int
    session_id: int
    stream_id: int
    channel: str


def stream_key(counter: aeron.CounterSnapshot) -> StreamKey:
    """Returns the key of a counter that belongs to a stream."""
    registration_id, session_id, stream_id, length = _STREAM.unpack_from(counter.key)
    return StreamKey(registration_id, session_id, stream_id, _text(counter.key[_STREAM.size :], length))


def channel_key(counter: aeron.CounterSnapshot) -> str:
    """Returns the channel in the key of a channel status counter."""
    (length,) = _CHANNEL.unpack_from(counter.key)
    return _text(counter.key[_CHANNEL.size :], length)


def _text(room: bytes, length: int) -> str:
    return room[: max(length, 0)].decode("ascii", "replace")

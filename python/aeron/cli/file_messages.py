"""Files as messages, as Aeron's FileSender and FileReceiver exchange them (docs/spec/06, 4.7).

The first message announces a file with its name, its length and a correlation id. Chunks of the file follow. Numbers
are little-endian."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from aeron.exceptions import AeronError

_VERSION = 0
_CREATE_TYPE, _CHUNK_TYPE = 1, 2

_HEAD = struct.Struct("<iiq")
_CREATE = struct.Struct("<qi")
_CHUNK = struct.Struct("<qq")

CHUNK_HEADER_LENGTH = _HEAD.size + _CHUNK.size
"""Length in bytes of the header of a chunk message."""


class BadMessageError(AeronError, ValueError):
    """A message that does not belong to a file transfer."""


@dataclass(frozen=True)
class Create:
    """Announces a file of ``length`` bytes, 0 for an empty file."""

    correlation_id: int
    length: int
    name: str


@dataclass(frozen=True)
class Chunk:
    """Bytes of a file from ``offset``."""

    correlation_id: int
    offset: int
    data: bytes


def encode(message: Create | Chunk) -> bytes:
    """Returns the bytes of a message."""
    if isinstance(message, Create):
        name = message.name.encode()
        head = _HEAD.pack(_VERSION, _CREATE_TYPE, message.correlation_id)
        return head + _CREATE.pack(message.length, len(name)) + name
    head = _HEAD.pack(_VERSION, _CHUNK_TYPE, message.correlation_id)
    return head + _CHUNK.pack(message.offset, len(message.data)) + message.data


def decode(payload: bytes) -> Create | Chunk:
    """Decodes the message in ``payload``, which may be any bytes.

    Raises:
        BadMessageError: the bytes are not a message of a file transfer.
    """
    try:
        version, kind, correlation_id = _HEAD.unpack_from(payload)
        if version != _VERSION:
            raise BadMessageError(f"version={version} is not {_VERSION}")
        if kind == _CREATE_TYPE:
            length, name_length = _CREATE.unpack_from(payload, _HEAD.size)
            name = _rest(payload, _HEAD.size + _CREATE.size, name_length).decode()
            if length < 0:
                raise BadMessageError(f"file length={length} is negative")
            return Create(correlation_id, length, name)
        if kind == _CHUNK_TYPE:
            offset, length = _CHUNK.unpack_from(payload, _HEAD.size)
            return Chunk(correlation_id, offset, _rest(payload, CHUNK_HEADER_LENGTH, length))
    except struct.error as error:
        raise BadMessageError(f"message of {len(payload)} bytes is cut off") from error
    except UnicodeDecodeError as error:
        raise BadMessageError("the name is not UTF-8") from error
    raise BadMessageError(f"type={kind} is neither {_CREATE_TYPE} nor {_CHUNK_TYPE}")


def _rest(payload: bytes, start: int, length: int) -> bytes:
    if not 0 <= length <= len(payload) - start:
        raise BadMessageError(f"length={length} does not fit in a message of {len(payload)} bytes")
    return payload[start : start + length]

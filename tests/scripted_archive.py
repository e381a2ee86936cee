"""A simulated archive that collects the received requests.

The test chooses the responses, even ones that no real archive sends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import aeron

_SCHEMA, _VERSION = 101, 13
# Version 1.10.0. From 1.11.0 on, a client would also request the archive id, which this archive does not support.
_PROTOCOL_VERSION = 1 << 16 | 10 << 8
_SESSION = 77
_RESPONSE, _DESCRIPTOR = 1, 22
_OK, RECORDING_UNKNOWN = 0, 2
# Template id of each supported request, with the request's name and the format of its fixed-length block.
_REQUESTS = {
    58: ("connect", "<qii"),
    61: ("keep alive", "<qq"),
    3: ("close", "<q"),
    10: ("list", "<qqq"),
    6: ("replay", "<qqqqqiiq"),
    7: ("stop replay", "<qqq"),
    15: ("stop position", "<qqq"),
    67: ("max recorded position", "<qqq"),
}


@dataclass(frozen=True)
class Request:
    """A request of the client."""

    name: str
    # Fields of the fixed-length block.
    block: tuple[int, ...]
    # First variable-length text after the block.
    text: str

    @property
    def correlation_id(self) -> int:
        return self.block[1]


@dataclass
class ScriptedArchive:
    """Calls `answers[name](request)` for each request with a name in `answers`. Other requests get no response.

    The archive always accepts the connect request.
    """

    client: aeron.Aeron
    # Stream id of the requests. Another archive on the same driver must not use it.
    control_stream_id: int
    answers: dict[str, Callable[[Request], None]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._requests = self.client.add_subscription("aeron:ipc", self.control_stream_id)
        self._responses: aeron.ExclusivePublication | None = None

    def step(self) -> None:
        """Handles the requests that have arrived."""
        self._requests.poll(lambda payload, _: self._on_request(bytes(payload)))

    def names(self) -> list[str]:
        """Returns the names of the requests so far, without connect and keep-alive requests."""
        return [request.name for request in self.requests if request.name not in ("connect", "keep alive")]

    def last(self, name: str) -> Request:
        return [request for request in self.requests if request.name == name][-1]

    def respond(self, request: Request, relevant: int, code: int = _OK) -> None:
        block = struct.pack("<qqqii", _SESSION, request.correlation_id, relevant, code, _PROTOCOL_VERSION)
        self._send(_RESPONSE, block, b"")

    def describe(self, request: Request, source: aeron.ExclusivePublication, stop_position: int = -1) -> None:
        """Sends the descriptor of a recording of `source` from position 0. An active recording has stop position -1."""
        positions = struct.pack("<qqqq", 0, -1, 0, stop_position)
        term = source.term_buffer_length
        stream = struct.pack("<6i", source.initial_term_id, term, term, 1408, source.session_id, source.stream_id)
        block = struct.pack("<qqq", _SESSION, request.correlation_id, request.block[2]) + positions + stream
        self._send(_DESCRIPTOR, block, b"aeron:ipc", b"aeron:ipc", b"aeron:ipc")

    def _on_request(self, payload: bytes) -> None:
        block_length, template, _, _ = struct.unpack_from("<4H", payload)
        name, layout = _REQUESTS[template]
        assert struct.calcsize(layout) == block_length
        texts = payload[8 + block_length :]
        text = texts[4 : 4 + struct.unpack_from("<I", texts)[0]].decode() if texts else ""
        request = Request(name, struct.unpack_from(layout, payload, 8), text)
        self.requests.append(request)
        if name == "connect":
            self._on_connect(request)
        elif name in self.answers:
            self.answers[name](request)

    def _on_connect(self, request: Request) -> None:
        correlation_id, stream_id, _ = request.block
        self._responses = self.client.add_exclusive_publication(request.text, stream_id)
        self._responses.wait_connected(timeout=5)
        self.respond(Request("connect", (0, correlation_id), ""), _SESSION)

    def _send(self, template: int, block: bytes, *texts: bytes) -> None:
        assert self._responses is not None
        data = b"".join(struct.pack("<I", len(text)) + text for text in texts)
        self._responses.publish(struct.pack("<4H", len(block), template, _SCHEMA, _VERSION) + block + data, timeout=5)

"""A client that writes and reads single records of the control protocol, to check the exact responses of a driver.

The client must be the only writer of the command ring, so no other client may be connected while it sends.
"""

import mmap
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path

_HEADER_LENGTH = 128
_RING_TRAILER_LENGTH, _RING_TAIL, _RING_CORRELATION, _RING_HEARTBEAT = 768, 128, 512, 640
_BROADCAST_TRAILER_LENGTH, _BROADCAST_TAIL = 128, 8
_RECORD_HEADER_LENGTH, _RECORD_ALIGNMENT, _PADDING_TYPE = 8, 8, -1
_COUNTER_LENGTH, _METADATA_LENGTH = 128, 512
_RECORD_ALLOCATED, _RECORD_UNUSED = 1, 0
# The timeout is long, because a driver may wait for a name server that does not respond.
_ANSWER_TIMEOUT_S = 30

ADD_PUBLICATION, REMOVE_PUBLICATION, ADD_EXCLUSIVE_PUBLICATION = 0x01, 0x02, 0x03
ADD_SUBSCRIPTION, REMOVE_SUBSCRIPTION, CLIENT_KEEPALIVE = 0x04, 0x05, 0x06
ADD_DESTINATION, REMOVE_DESTINATION, ADD_COUNTER, REMOVE_COUNTER, CLIENT_CLOSE = 0x07, 0x08, 0x09, 0x0A, 0x0B
ADD_RCV_DESTINATION, REMOVE_RCV_DESTINATION, TERMINATE_DRIVER, ADD_STATIC_COUNTER = 0x0C, 0x0D, 0x0E, 0x0F
REJECT_IMAGE, REMOVE_DESTINATION_BY_ID, GET_NEXT_AVAILABLE_SESSION_ID = 0x10, 0x11, 0x12

_PUBLICATION_READY = ("correlation", "registration", "session", "stream", "limit_counter", "status_counter")
_IMAGE = ("image", "session", "stream", "subscription", "position_counter")
_PUBLICATION_ERROR = ("registration", "destination", "session", "stream", "receiver", "group_tag", "address_type")

# By type: the event's name, the layout and the names of its fixed fields, and the names of the texts that follow. Each
# text has its length before it.
_EVENTS = {
    0x0F01: ("ON_ERROR", "<qi", ("correlation", "code"), ("text",)),
    0x0F02: ("ON_AVAILABLE_IMAGE", "<qiiqi", _IMAGE, ("log", "source")),
    0x0F03: ("ON_PUBLICATION_READY", "<qqiiii", _PUBLICATION_READY, ("log",)),
    0x0F04: ("ON_OPERATION_SUCCESS", "<q", ("correlation",), ()),
    0x0F05: ("ON_UNAVAILABLE_IMAGE", "<qqi", ("image", "subscription", "stream"), ("channel",)),
    0x0F06: ("ON_EXCLUSIVE_PUBLICATION_READY", "<qqiiii", _PUBLICATION_READY, ("log",)),
    0x0F07: ("ON_SUBSCRIPTION_READY", "<qi", ("correlation", "status_counter"), ()),
    0x0F08: ("ON_COUNTER_READY", "<qi", ("registration", "counter"), ()),
    0x0F09: ("ON_UNAVAILABLE_COUNTER", "<qi", ("registration", "counter"), ()),
    0x0F0A: ("ON_CLIENT_TIMEOUT", "<q", ("client",), ()),
    0x0F0B: ("ON_STATIC_COUNTER", "<qi", ("correlation", "counter"), ()),
    0x0F0C: ("ON_PUBLICATION_ERROR", "<qqiiqqhH16si", (*_PUBLICATION_ERROR, "port", "address", "code"), ("text",)),
    0x0F0D: ("ON_NEXT_AVAILABLE_SESSION_ID", "<qi", ("correlation", "session"), ()),
}


@dataclass
class Event:
    """One event from the driver."""

    name: str
    values: dict = field(default_factory=dict)
    length: int = 0

    @classmethod
    def decode(cls, type_id, body):
        name, layout, names, texts = _EVENTS[type_id]
        values = dict(zip(names, struct.unpack_from(layout, body), strict=True))
        at = struct.calcsize(layout)
        for text in texts:
            (length,) = struct.unpack_from("<i", body, at)
            values[text] = body[at + 4 : at + 4 + length].decode(errors="replace")
            at += 4 + _align(length, 4)
        return cls(name, values, len(body))

    def __getattr__(self, name):
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass
class CounterRecord:
    """An allocated counter."""

    id: int
    type: int
    label: str
    key: bytes
    value: int
    registration: int
    owner: int
    reference: int


class ControlClient:
    """Sends commands to the driver of a directory and reads all of its events."""

    def __init__(self, directory):
        with open(Path(directory) / "cnc.dat", "r+b") as file:
            self._cnc = mmap.mmap(file.fileno(), 0)
        lengths = struct.unpack_from("<5i", self._cnc, 4)
        ring, clients, metadata, values, errors = lengths
        self._ring = _HEADER_LENGTH
        self._ring_capacity = ring - _RING_TRAILER_LENGTH
        self._broadcast = self._ring + ring
        self._broadcast_capacity = clients - _BROADCAST_TRAILER_LENGTH
        self._metadata = self._broadcast + clients
        self._values = self._metadata + metadata
        self._errors = self._values + values
        self._max_counters = values // _COUNTER_LENGTH
        self._errors_length = errors
        self._cursor = self._read("<q", self._broadcast + self._broadcast_capacity + _BROADCAST_TAIL)
        self._unseen = []

    def close(self):
        self._cnc.close()

    def next_id(self):
        """Takes and returns the next correlation id of the driver."""
        at = self._ring + self._ring_capacity + _RING_CORRELATION
        value = self._read("<q", at)
        struct.pack_into("<q", self._cnc, at, value + 1)
        return value

    def send(self, type_id, body):
        """Writes one command record."""
        length = _RECORD_HEADER_LENGTH + len(body)
        tail_at = self._ring + self._ring_capacity + _RING_TAIL
        tail = self._read("<q", tail_at)
        room = self._ring_capacity - tail % self._ring_capacity
        if _align(length, _RECORD_ALIGNMENT) > room:
            self._write_record(tail, room, _PADDING_TYPE, b"")
            tail += room
        struct.pack_into("<q", self._cnc, tail_at, tail + _align(length, _RECORD_ALIGNMENT))
        self._write_record(tail, length, type_id, body)

    def claim_and_die(self, length):
        """Claims a command record and never commits it, like a client that is killed while it writes."""
        tail_at = self._ring + self._ring_capacity + _RING_TAIL
        tail = self._read("<q", tail_at)
        length += _RECORD_HEADER_LENGTH
        struct.pack_into("<q", self._cnc, tail_at, tail + _align(length, _RECORD_ALIGNMENT))
        struct.pack_into("<i", self._cnc, self._ring + tail % self._ring_capacity, -length)

    def driver_heartbeat(self):
        """Returns the driver's last heartbeat in milliseconds since the epoch, or -1 after an orderly end."""
        return self._read("<q", self._ring + self._ring_capacity + _RING_HEARTBEAT)

    def _write_record(self, tail, length, type_id, body):
        at = self._ring + tail % self._ring_capacity
        self._cnc[at + _RECORD_HEADER_LENGTH : at + _RECORD_HEADER_LENGTH + len(body)] = body
        struct.pack_into("<i", self._cnc, at + 4, type_id)
        struct.pack_into("<i", self._cnc, at, length)

    def events(self):
        """Returns the events since the last call."""
        events, self._unseen = self._unseen, []
        tail_at = self._broadcast + self._broadcast_capacity + _BROADCAST_TAIL
        while self._cursor < self._read("<q", tail_at):
            at = self._broadcast + self._cursor % self._broadcast_capacity
            length, type_id = struct.unpack_from("<ii", self._cnc, at)
            if type_id != _PADDING_TYPE:
                events.append(Event.decode(type_id, self._cnc[at + _RECORD_HEADER_LENGTH : at + length]))
            self._cursor += _align(length, _RECORD_ALIGNMENT)
        return events

    def perform(self, type_id, body):
        """Sends a command. Returns every event until the driver has executed the command.

        The driver executes commands in order. So a second command follows, a request for a session id, and its response
        marks the end. The returned events do not include that response.
        """
        marker = self.next_id()
        self.send(type_id, body)
        self.send(GET_NEXT_AVAILABLE_SESSION_ID, struct.pack("<qqi", 0, marker, -1))
        seen = []
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        while True:
            events = self.events()
            for number, event in enumerate(events):
                if event.name == "ON_NEXT_AVAILABLE_SESSION_ID" and event.correlation == marker:
                    self._unseen = events[number + 1 :]
                    return seen
                seen.append(event)
            assert time.monotonic() < deadline, f"command {type_id:#x} was not executed; events: {seen}"
            time.sleep(0.001)

    def await_event(self, name, timeout_s=_ANSWER_TIMEOUT_S):
        """Waits for the next event with this name. Returns all events up to it, and the event itself."""
        seen = []
        deadline = time.monotonic() + timeout_s
        while True:
            events = self.events()
            for number, event in enumerate(events):
                seen.append(event)
                if event.name == name:
                    self._unseen = events[number + 1 :]
                    return seen
            assert time.monotonic() < deadline, f"no {name} within {timeout_s} s, only {seen}"
            time.sleep(0.001)

    def beat(self, client):
        """Writes the heartbeat of a client, as the client's conductor does."""
        for counter in self.counters():
            if counter.type == 11 and struct.unpack_from("<q", counter.key)[0] == client:
                at = self._values + counter.id * _COUNTER_LENGTH
                struct.pack_into("<q", self._cnc, at, time.time_ns() // 1_000_000)

    def value(self, id):
        """Returns the value of a counter."""
        return self._read("<q", self._values + id * _COUNTER_LENGTH)

    def set_value(self, id, value):
        """Writes the value of a counter, as the counter's owner does."""
        struct.pack_into("<q", self._cnc, self._values + id * _COUNTER_LENGTH, value)

    def counters(self):
        """Returns every allocated counter, by id."""
        found = []
        for id in range(self._max_counters):
            record = self._metadata + id * _METADATA_LENGTH
            state, type_id = struct.unpack_from("<ii", self._cnc, record)
            if state == _RECORD_UNUSED:
                break
            if state == _RECORD_ALLOCATED:
                found.append(self._counter(id, type_id, record))
        return found

    def _counter(self, id, type_id, record):
        value, registration, owner, reference = struct.unpack_from(
            "<4q", self._cnc, self._values + id * _COUNTER_LENGTH
        )
        (label_length,) = struct.unpack_from("<i", self._cnc, record + 128)
        label = self._cnc[record + 132 : record + 132 + label_length].decode(errors="replace")
        key = self._cnc[record + 16 : record + 128]
        return CounterRecord(id, type_id, label, key, value, registration, owner, reference)

    def error_log(self):
        """Returns a pair (observation count, text) for each distinct error."""
        entries, offset = [], 0
        while offset + 24 <= self._errors_length:
            length, count = struct.unpack_from("<ii", self._cnc, self._errors + offset)
            if length <= 0:
                break
            text = self._cnc[self._errors + offset + 24 : self._errors + offset + length].decode(errors="replace")
            entries.append((count, text))
            offset += _align(length, 8)
        return entries

    def _read(self, layout, at):
        return struct.unpack_from(layout, self._cnc, at)[0]


def add(client, correlation, stream, channel):
    """Returns the body of ADD_PUBLICATION or ADD_EXCLUSIVE_PUBLICATION."""
    return struct.pack("<qqi", client, correlation, stream) + _text(channel)


def add_subscription(client, correlation, stream, channel):
    return struct.pack("<qqqi", client, correlation, -1, stream) + _text(channel)


def remove(client, correlation, registration):
    """Returns the body of REMOVE_SUBSCRIPTION, REMOVE_COUNTER or the old form of REMOVE_PUBLICATION."""
    return struct.pack("<qqq", client, correlation, registration)


def remove_publication(client, correlation, registration, *, revoke=False):
    return remove(client, correlation, registration) + struct.pack("<q", revoke)


def add_counter(client, correlation, type_id, key, label):
    return struct.pack("<qqi", client, correlation, type_id) + _bytes(key) + _text(label)


def add_static_counter(client, correlation, registration, type_id, key, label):
    return struct.pack("<qqqi", client, correlation, registration, type_id) + _bytes(key) + _text(label)


def reject_image(client, correlation, image, position, reason):
    return struct.pack("<qqqq", client, correlation, image, position) + _text(reason)


def client_close(client):
    return struct.pack("<qq", client, -1)


def terminate_driver(client, token=b""):
    return struct.pack("<qqi", client, -1, len(token)) + token


def _text(text):
    data = text.encode()
    return struct.pack("<i", len(data)) + data


def _bytes(data):
    return struct.pack("<i", len(data)) + data.ljust(_align(len(data), 4), b"\0")


def _align(value, alignment):
    return (value + alignment - 1) & ~(alignment - 1)

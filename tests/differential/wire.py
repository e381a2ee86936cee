"""Encodes UDP frames, and describes the part of a datagram that must be equal for two drivers."""

import struct
import zlib

PAD, DATA, NAK, SM, ERR, SETUP, RTTM, RES, RSP_SETUP = 0, 1, 2, 3, 4, 5, 6, 7, 0x0B
BEGIN_AND_END = 0xC0
EOS = 0x20
REVOKED = 0x10
SM_SETUP, SM_EOS = 0x80, 0x40
RTTM_REPLY = 0x80
ERR_HAS_TAG = 0x08
HEADER_LENGTH = 32
_NAMES = {
    PAD: "PAD",
    DATA: "DATA",
    NAK: "NAK",
    SM: "SM",
    ERR: "ERR",
    SETUP: "SETUP",
    RTTM: "RTTM",
    RSP_SETUP: "RSP_SETUP",
}


def align(length, alignment=32):
    return (length + alignment - 1) & ~(alignment - 1)


def setup(session, stream, *, initial, active, offset, term_length, mtu=1408, ttl=0, flags=0):
    return struct.pack(
        "<iBBHiiiiiiii", 40, 0, flags, SETUP, offset, session, stream, initial, active, term_length, mtu, ttl
    )


def data(session, stream, term, offset, payload, flags=BEGIN_AND_END):
    """Returns a DATA frame, padded to the alignment."""
    length = HEADER_LENGTH + len(payload)
    header = struct.pack("<iBBHiiiiq", length, 0, flags, DATA, offset, session, stream, term, 0)
    return (header + payload).ljust(align(length), b"\0")


def pad(session, stream, term, offset, length):
    """Returns a PAD frame, of which only the header is sent."""
    return struct.pack("<iBBHiiiiq", length, 0, BEGIN_AND_END, PAD, offset, session, stream, term, 0)


def heartbeat(session, stream, term, offset, flags=BEGIN_AND_END):
    return struct.pack("<iBBHiiiiq", 0, 0, flags, DATA, offset, session, stream, term, 0)


def nak(session, stream, term, offset, length):
    return struct.pack("<iBBHiiiii", 28, 0, 0, NAK, session, stream, term, offset, length)


def status(session, stream, term, offset, window, receiver, *, flags=0, feedback=b""):
    length = 36 + len(feedback)
    fields = (length, 0, flags, SM, session, stream, term, offset, window, receiver)
    return struct.pack("<iBBHiiiiiq", *fields) + feedback


def error(session, stream, receiver, text, *, code=13, tag=None):
    flags = 0 if tag is None else ERR_HAS_TAG
    fields = (40 + len(text), 0, flags, ERR, session, stream, receiver, -1 if tag is None else tag, code, len(text))
    return struct.pack("<iBBHiiqqii", *fields) + text


def rttm(session, stream, echo, receiver, flags=RTTM_REPLY):
    return struct.pack("<iBBHiiqqq", 40, 0, flags, RTTM, session, stream, echo, 0, receiver)


def kind(datagram):
    """Returns the type of the first frame of a datagram."""
    return struct.unpack_from("<H", datagram, 6)[0]


def flags(datagram):
    return datagram[5]


def echo(datagram):
    """Returns the timestamp of an RTTM."""
    return struct.unpack_from("<q", datagram, 16)[0]


def session(datagram):
    """Returns the session id of a frame. In control frames, it is where DATA and SETUP have the term offset."""
    return struct.unpack_from("<i", datagram, 12 if kind(datagram) in (PAD, DATA, SETUP) else 8)[0]


def receiver_of_status(datagram):
    return struct.unpack_from("<q", datagram, 28)[0]


def is_heartbeat(datagram):
    return len(datagram) == HEADER_LENGTH and kind(datagram) == DATA and datagram[:4] == b"\0\0\0\0"


def readable(datagram, receivers=()):
    """Returns one line with all content of a datagram. A receiver id in `receivers` is replaced by its index.

    A checksum stands for the payload of DATA. The time in an RTTM request is left out, because it differs between
    drivers.
    """
    type_id = kind(datagram)
    name = "HEARTBEAT" if is_heartbeat(datagram) else _NAMES.get(type_id, f"type {type_id}")
    tell = _TELLERS.get(type_id, lambda d, _: d[8:].hex())
    return f"{name} {flags(datagram):#x} {tell(datagram, receivers)} of {len(datagram)}"


def _tell_data(datagram, _):
    length, offset, session_id, stream, term, reserved = struct.unpack_from("<i4xiiiiq", datagram)
    payload = zlib.crc32(datagram[HEADER_LENGTH:])
    return f"{session_id}/{stream} {term}:{offset} length {length} reserved {reserved} payload {payload:#x}"


def _tell_status(datagram, receivers):
    *fields, receiver = struct.unpack_from("<5iq", datagram, 8)
    return f"{fields} by {_number(receiver, receivers)} {datagram[36:].hex()}"


def _tell_error(datagram, receivers):
    session_id, stream, receiver, tag, code, length = struct.unpack_from("<iiqqii", datagram, 8)
    by = _number(receiver, receivers)
    return f"{session_id}/{stream} by {by} tag {tag} code {code} {datagram[40 : 40 + length]!r}"


def _tell_rttm(datagram, receivers):
    session_id, stream, time, delta, receiver = struct.unpack_from("<iiqqq", datagram, 8)
    time = "its time" if flags(datagram) & RTTM_REPLY else time
    return f"{session_id}/{stream} {time} delta {delta} by {_number(receiver, receivers)}"


def _number(receiver, receivers):
    return f"receiver {receivers.index(receiver)}" if receiver in receivers else receiver


_TELLERS = {
    PAD: _tell_data,
    DATA: _tell_data,
    SETUP: lambda datagram, _: struct.unpack_from("<8i", datagram, 8),
    NAK: lambda datagram, _: struct.unpack_from("<5i", datagram, 8),
    SM: _tell_status,
    ERR: _tell_error,
    RTTM: _tell_rttm,
}

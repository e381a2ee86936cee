#!/usr/bin/env python3
"""Writes the initial corpus of each fuzz target, from data captured from the real Aeron and from constructed data.

usage: seed.py

The script needs only Python. A file's name is a hash of its content, so a second run adds nothing.
"""

import hashlib
import json
import pathlib
import struct
from collections.abc import Iterator

FUZZ = pathlib.Path(__file__).resolve().parent
RUST = FUZZ.parent / "rust"


def vectors(path: str) -> list | dict:
    """Returns the content of a JSON file with captured data, which the tests of a crate use."""
    return json.loads((RUST / path).read_text())


def commands() -> Iterator[bytes]:
    """Type id, then the body, of each captured command and event."""
    for message in vectors("protocol/tests/vectors/commands.json"):
        yield message["msg_type_id"].to_bytes(4, "little", signed=True) + bytes.fromhex(message["hex"])


def frames() -> Iterator[bytes]:
    """Each captured datagram, and each malformed datagram sent to a real driver. Long datagrams are truncated."""
    for case in vectors("protocol/tests/vectors/frames.json") + vectors("protocol/tests/vectors/malformed.json"):
        datagrams = case["hex"] if isinstance(case["hex"], list) else [case["hex"]]
        yield from map(bytes.fromhex, datagrams)


def uri() -> Iterator[bytes]:
    """Each captured channel."""
    for case in vectors("protocol/tests/vectors/uris.json")["cases"]:
        if case.get("uri"):
            yield case["uri"].encode()


def ring_section() -> bytes:
    """A data area of 1 KiB with one message, and its trailer with the tail after the message."""
    record = struct.pack("<ii16x", 24, 6)
    return record.ljust(1024, b"\0") + bytes(128) + struct.pack("<q", 24).ljust(640, b"\0")


def ring() -> Iterator[bytes]:
    """A ring with a message, and a ring with a claim that is never committed."""
    yield ring_section()
    yield struct.pack("<i", -24) + ring_section()[4:]


def cnc() -> Iterator[bytes]:
    """A CnC file with one message in each buffer, two counters and an error, and with short sections."""
    event = struct.pack("<ii8x", 16, 0x0F04)
    to_clients = event.ljust(1024, b"\0") + struct.pack("<qqq", 16, 16, 0).ljust(128, b"\0")
    label = struct.pack("<i", 5) + b"label"
    counter = struct.pack("<iiq", 1, 0, 2**63 - 1).ljust(128, b"\0") + label.ljust(384, b"\0")
    metadata = (counter * 2).ljust(4096, b"\0")
    error_log = struct.pack("<iiqq", 29, 1, 2, 1) + b"error"
    sections = [ring_section(), to_clients, metadata, bytes(1024), error_log.ljust(512, b"\0")]
    header = struct.pack("<6i", 0x200, *map(len, sections)) + struct.pack("<qqqi", 10**10, 1, 1, 4096)
    yield header.ljust(128, b"\0") + b"".join(sections)


def operations() -> Iterator[bytes]:
    """No captured bytes are needed: the input is a list of operations, and any bytes are such a list."""
    yield bytes(64)
    yield bytes(range(256))


def reports() -> Iterator[bytes]:
    """The captured starts of an error log and a loss report."""
    for head in ("cnc-error-log-head.bin", "loss-report-head.bin"):
        yield (RUST / "memory/tests/vectors" / head).read_bytes()


def values() -> Iterator[bytes]:
    """Each captured text, arguments of idle strategies, and a property file."""
    for case in vectors("agent/tests/vectors/values.json")["cases"]:
        yield case.get("text", "").encode()
    yield b"10-20-1us-1ms"
    yield b"# comment\r\naeron.dir = /dev/shm/x\naeron.mtu.length : 8k\naeron.client.name=a\\\n  b\n"


def frame(position: int, length: int, type_: int = 1, flags: int = 0xC0) -> bytes:
    """A frame of the recording that the target `segment` reads. For padding, the result is only the header."""
    term_id, term_offset = divmod(position, 65_536)
    header = struct.pack("<iBBHiiiiq", length, 0, flags, type_, term_offset, 7, 1001, term_id, position)
    return header + (b"x" * (length - 32)).ljust((length - 1) // 32 * 32, b"\0") if type_ else header


def segment() -> Iterator[bytes]:
    """Recordings of a few frames with their layout before them: one segment, one segment with a torn end, two segments,
    and one segment with padding at its end."""
    frames = frame(64, 40) + frame(128, 1000) + frame(1152, 5000) + frame(6176, 32)
    yield struct.pack("<6H", 2, 2, 2, 194, len(frames), 0) + frames
    yield struct.pack("<6H", 2, 4, 2, 128, 3000, 1) + frames[:3000]
    padding = frame(64, 65_472, type_=0)
    yield struct.pack("<6H", 2, 2, 2, 2050, 32, 0) + padding + frame(65_536, 64)
    last = frame(64, 40) + frame(128, 30_000, type_=0)
    yield struct.pack("<6H", 2, 2, 2, 942, len(last), 0) + last


def offsets() -> Iterator[bytes]:
    """An offset with two recordings, an empty offset, and a partition."""
    archive = "private:9f0c000000000000000000000000beef"
    yield json.dumps({"aeron": 1, "archive": archive, "recordings": {"1001/-7/0": 98304, "1001/77/1": 4096}}).encode()
    yield json.dumps({"aeron": 1, "archive": "shared:5", "recordings": {}}).encode()
    location = {"path": "/a", "nonce": None, "boot_id": "b", "host": "h"}
    recording = {"id": 1, "stream_id": 2, "session_id": 3, "initial_term_id": 4, "start_position": 0}
    recording |= {"term_length": 65536, "segment_length": 1048576}
    piece = {"archive": location, "recording": recording, "from": 32, "to": 64, "end": 64, "index_hint": 1}
    yield json.dumps(piece).encode()


def layout() -> Iterator[bytes]:
    """Texts of layouts with every type, and records of zeros or of bytes that some fields refuse."""
    texts = [
        "ts ts_ns, px f64, qty i64, sym i32, side i32, seq i64, flags i64",
        "a i8, b u8, @4 c >i16, d u16, @8 e u32, f >u64, @24 g f32, h bool =32",
        "a ts_ms, b ts_us, c dec64:4, d char[5], e bytes[3]",
    ]
    for text in texts:
        yield text.encode() + b"\n" + bytes(96)
        yield text.encode() + b"\n" + bytes(range(96))


def archive_vector(name: str) -> bytes:
    """A captured file of a real archive."""
    return (RUST / "archive/tests/vectors" / name).read_bytes()


def archive_messages() -> Iterator[bytes]:
    """Each captured or constructed message. The target refuses the examples that are not messages."""
    for name, key in (("captured", "messages"), ("examples", "examples")):
        for message in vectors(f"protocol/tests/vectors/archive/{name}.json")[key]:
            yield bytes.fromhex(message["hex"])


def catalog() -> Iterator[bytes]:
    """The catalogs of a real archive, with room for more entries."""
    for name in ("catalog-running.bin", "catalog-ended.bin"):
        yield archive_vector(name).ljust(2048, b"\0")


def mark_file() -> Iterator[bytes]:
    """The mark file of a real archive with a short error log, and an old mark file without a message header."""
    header = archive_vector("mark-file.bin").ljust(8192, b"\0")
    yield header + struct.pack("<iiqq", 29, 1, 2, 1) + b"error"
    yield header[8:]


NOTHING = -(2**63)


def index() -> Iterator[bytes]:
    """Three indexes of 40 frames: an entry for every eight frames, the same entries in descending order, and a
    truncated entry."""
    magic = int.from_bytes(b"AIDX\x01", "little")
    header = struct.pack("<7q8x", magic, 0, 0, NOTHING, 0, 0, NOTHING)
    entries = [struct.pack("<7q8x", end, 1, 0, end, end // 144, end * 2 // 3, NOTHING) for end in range(768, 3841, 768)]
    yield header + b"".join(entries)
    yield header + b"".join(reversed(entries))
    yield header + entries[0][:40]


def extensions() -> Iterator[bytes]:
    """Records of the file of extensions: a reader, a policy for all recordings, a deletion, and a removed reader."""
    header = struct.Struct("<4H")
    reader = (
        header.pack(56, 20_100, 101, 1) + struct.pack("<7q", 0, 0, 0, 65_536, 1, -1, -1) + struct.pack("<I", 1) + b"a"
    )
    policy = header.pack(48, 20_101, 101, 1) + struct.pack("<5q2i", 0, 0, -1, 65_536, 1, 0, 0) + struct.pack("<I", 0)
    step = (
        header.pack(56, 20_102, 101, 1) + struct.pack("<6q2i", 0, 0, 0, 0, 65_536, 65_536, 0, 0) + struct.pack("<I", 0)
    )
    removed = header.pack(24, 20_002, 101, 1) + struct.pack("<3q", 0, 0, 0) + struct.pack("<I", 1) + b"a"
    for messages in ([reader, policy], [step], [reader, removed, policy]):
        yield b"".join(bytes([len(message), 0]) + message for message in messages)


def private_lock() -> Iterator[bytes]:
    """The lock file of a private archive."""
    yield struct.pack("<4sI16s16sqqQ64s64x", b"APRV", 1, bytes(16), bytes(16), 42, 1, 2, b"boot")


def sbe_schema() -> Iterator[bytes]:
    """The schemas of the tests."""
    for path in sorted((FUZZ.parent / "tests" / "sbe").glob("*.xml")):
        yield path.read_bytes()


def sbe_messages() -> Iterator[bytes]:
    """Bytes that choose schemas and values, and messages of zeros, small numbers and large numbers."""
    for step in (1, 7, 31, 77):
        choices = bytes(index * step % 256 for index in range(400))
        for message in (bytes(100), bytes(range(100)), bytes([60, 0, 1, 0, 9, 0]) + bytes(60) + b"\xff" * 40):
            yield struct.pack("<H", len(choices)) + choices + message


TARGETS = {
    "archive_messages": archive_messages,
    "catalog": catalog,
    "client": operations,
    "cnc": cnc,
    "commands": commands,
    "driver": operations,
    "extensions": extensions,
    "frames": frames,
    "index": index,
    "layout": layout,
    "log": operations,
    "mark_file": mark_file,
    "offsets": offsets,
    "private_lock": private_lock,
    "reports": reports,
    "ring": ring,
    "sbe_messages": sbe_messages,
    "sbe_schema": sbe_schema,
    "segment": segment,
    "uri": uri,
    "values": values,
}


def main() -> None:
    """Writes `corpus/<target>/<hash>` for all targets."""
    for target, seeds in TARGETS.items():
        corpus = FUZZ / "corpus" / target
        corpus.mkdir(parents=True, exist_ok=True)
        for seed in seeds():
            (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


if __name__ == "__main__":
    main()

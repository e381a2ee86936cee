#!/usr/bin/env python3
"""Writes the first corpus of each fuzz target from the bytes and texts captured from real Aeron.

usage: seed.py

Needs nothing but Python. Files are named after their content, so running it again adds nothing.
"""

import hashlib
import json
import pathlib
from collections.abc import Iterator

FUZZ = pathlib.Path(__file__).resolve().parent
RUST = FUZZ.parent / "rust"


def vectors(path: str) -> list | dict:
    """A captured file of one of the crates."""
    return json.loads((RUST / path).read_text())


def commands() -> Iterator[bytes]:
    """Type id, then the body, of each captured command and event."""
    for message in vectors("protocol/tests/vectors/commands.json"):
        yield message["msg_type_id"].to_bytes(4, "little", signed=True) + bytes.fromhex(message["hex"])


def ring() -> Iterator[bytes]:
    """A data area of 1 KiB with one message, and its trailer with the tail behind it."""
    record = (24).to_bytes(4, "little") + (6).to_bytes(4, "little") + bytes(16)
    tail = (24).to_bytes(8, "little")
    yield record.ljust(1024, b"\0") + bytes(128) + tail.ljust(640, b"\0")
    unfinished = (-24).to_bytes(4, "little", signed=True)
    yield unfinished.ljust(1024, b"\0") + bytes(128) + tail.ljust(640, b"\0")


def values() -> Iterator[bytes]:
    """Each captured text, arguments of idle strategies, and a property file."""
    for case in vectors("agent/tests/vectors/values.json")["cases"]:
        yield case.get("text", "").encode()
    yield b"10-20-1us-1ms"
    yield b"# comment\r\naeron.dir = /dev/shm/x\naeron.mtu.length : 8k\naeron.client.name=a\\\n  b\n"


def main() -> None:
    """Writes `corpus/<target>/<hash>` for all targets."""
    for target in (commands, ring, values):
        corpus = FUZZ / "corpus" / target.__name__
        corpus.mkdir(parents=True, exist_ok=True)
        for seed in target():
            (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


if __name__ == "__main__":
    main()

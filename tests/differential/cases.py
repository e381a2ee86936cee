"""The malformed datagrams of the vectors, with what the C drivers did and what an implementation should do."""

import json
from dataclasses import dataclass

from interop import toolchain

VECTORS = toolchain.PROJECT / "rust" / "protocol" / "tests" / "vectors"

RECEIVER, SENDER, RESOLVER = "receiver data socket", "sender control socket", "name resolver socket"


@dataclass(frozen=True)
class Case:
    """One case; `as_observed` says that 1.52.2 does what is recommended."""

    name: str
    session: int
    stream: int
    precondition: str
    datagrams: tuple
    recommended: str
    expected: str

    @property
    def counts_as_invalid(self):
        return "Invalid packets +1" in self.wanted

    @property
    def wanted(self):
        """What is to happen, in the words of the vectors."""
        return self.expected if self.recommended == "as observed" else self.recommended


def of(target):
    """The cases for a kind of socket."""
    cases = json.loads((VECTORS / "malformed.json").read_text())
    return [_case(case) for case in cases if case["target"] == target]


def _case(case):
    listed = case["hex"] if isinstance(case["hex"], list) else [case["hex"]]
    datagrams = [bytes.fromhex(text) for text in listed]
    if "total_length" in case:
        fill = bytes.fromhex(case["fill_byte"])
        datagrams[-1] = datagrams[-1].ljust(case["total_length"], fill)
    expected = case["expected"] if case["recommended"] != "as 1.53" else case["expected_1_53"]
    recommended = "as observed" if case["recommended"] == "as 1.53" else case["recommended"]
    return Case(
        case["name"],
        case.get("session_id"),
        case.get("stream_id"),
        case["precondition"],
        tuple(datagrams),
        recommended,
        expected,
    )

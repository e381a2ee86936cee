"""The malformed datagrams of the test vectors, with the behaviour of the C drivers and the recommended behaviour."""

import json
from dataclasses import dataclass

from interop import toolchain

VECTORS = toolchain.PROJECT / "rust" / "protocol" / "tests" / "vectors"

RECEIVER, SENDER, RESOLVER = "receiver data socket", "sender control socket", "name resolver socket"


@dataclass(frozen=True)
class Case:
    """One case. If `recommended` is `as observed`, the behaviour in `expected` is the recommended one."""

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
        """Text of the test vectors that describes the behaviour that our driver must have."""
        return self.expected if self.recommended == "as observed" else self.recommended


def of(target):
    """Returns the cases for a kind of socket."""
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

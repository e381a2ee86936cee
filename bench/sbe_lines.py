"""Cells and goals of the benchmarks of SBE messages."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from bench import environments as env
from bench.goals import Goal, Group
from bench.measure import SPARE_TIME_S, started, timed
from interop import toolchain
from interop.sbe_codecs import SBE_TOOL

PACKAGE = "sbe==0.4.3"
VERSIONS = (SBE_TOOL.split(":", 1)[1], PACKAGE)


@dataclass
class Codec:
    """Rows per second of a program that decodes or encodes messages, without a driver."""

    name: str
    command: Callable
    role: str
    words: Callable = tuple
    """Returns the file with the messages and their length, if the program needs them."""
    settings: dict = field(default_factory=dict)
    unit: str = "rows/s"

    def measure(self, seconds):
        first, *others = self.words() or ("-",)
        words = [self.role, *others, *timed(self.settings, seconds)]
        with started(self.command(), first, words) as process:
            return json.loads(process.read(seconds + SPARE_TIME_S))


def _ours():
    return (env.ours(), "-u", env.PEERS / "ours_sbe.py")


def _package():
    return (toolchain.environment("bench-sbe", PACKAGE), "-u", env.PEERS / "sbe_package.py")


def _cell(name, role):
    return Codec(name, _ours, role)


def _file(role, length):
    """Returns a function that returns a file with messages of one length, and this length."""
    return functools.cache(lambda: (env.sbe_messages(role), str(length)))


_TRADES, _BOOKS = _file("fixed", 56), _file("groups", 180)


def _fixed():
    records, ours = (
        _cell("records of a recording", "recorded-records"),
        _cell("trades of a recording", "recorded-fixed"),
    )
    encoding, decoding = _cell("encode trades", "encode-fixed"), _cell("decode trades", "fixed")
    package = Codec("decode trades, package sbe", _package, "fixed", _TRADES)
    java = Codec("read trades, Java flyweights", env.java_sbe, "fixed", _TRADES)
    return Group(
        [records, ours, encoding, decoding, package, java],
        [
            _goal("SBE trades, compared with records of the same fields", ours, records, 0.7),
            _goal("encode SBE trades, compared with decode", encoding, decoding, 0.5),
            _goal("SBE trades, compared with the package sbe", decoding, package, 100),
        ],
    )


def _groups():
    decoding, encoding = _cell("decode books", "groups"), _cell("encode books", "encode-groups")
    java = Codec("read books, Java flyweights", env.java_sbe, "groups", _BOOKS)
    return Group(
        [decoding, encoding, java],
        [
            Goal("SBE groups, entries per second", decoding.name, None, at_least=20_000_000, unit=decoding.unit),
            _goal("encode SBE groups, compared with decode", encoding, decoding, 0.5),
        ],
    )


def _attributes():
    cell = _cell("decode a quote, and read ten attributes", "attributes")
    # 1.5 us for a message.
    goal = Goal("SBE quotes by ten attributes", cell.name, None, at_least=666_667, unit="messages/s")
    return Group([cell], [goal])


def _goal(text, ours, peer, at_least):
    return Goal(text, ours.name, (peer.name,), at_least=at_least, unit=ours.unit)


SBE_GROUPS = {"sbefixed": _fixed, "sbegroups": _groups, "sbeattributes": _attributes}

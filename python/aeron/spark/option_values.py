"""Parsers of option texts.

Each function parses a text, or returns a function that parses a text. A wrong text raises ``ValueError`` with the
reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from aeron import AeronError, ChannelUriBuilder, _pipeline, parse_duration_ns, parse_size

MAX_STREAMS = 1024
"""Maximum number of streams of a query, and of distinct values of the column ``stream_id`` in one worker."""


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Returns a parser of whole numbers from `low` to `high`. The default of `high` is the largest 64-bit integer."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
            raise ValueError("not a whole number")
        return _within(int(text), low, high)

    return parse


def size(low: int) -> Callable[[str], int]:
    """Returns a parser of sizes in bytes, with an optional suffix k, m or g. The smallest size is `low`."""

    def parse(text: str) -> int:
        try:
            value = parse_size(text)
        except ValueError as error:
            raise ValueError("not a size") from error
        return _within(value, low, None)

    return parse


def _within(value: int, low: int, high: int | None) -> int:
    if value < low:
        raise ValueError("too small")
    if value > (2**63 - 1 if high is None else high):
        raise ValueError("too large")
    return value


def duration_ns(high: int | None = None) -> Callable[[str], int]:
    """Returns a parser of durations such as ``3s``. Its result is in nanoseconds and at most `high`."""

    def parse(text: str) -> int:
        try:
            value = parse_duration_ns(text)
        except ValueError as error:
            raise ValueError("not a duration") from error
        return _within(value, 0, high)

    return parse


def choice(*choices: str) -> Callable[[str], str]:
    """Returns a parser of texts that are one of `choices`, in upper or lower case."""

    def parse(text: str) -> str:
        for known in choices:
            if text.lower() == known.lower():
                return known
        raise ValueError("unknown value")

    return parse


def boolean(text: str) -> bool:
    """Parses ``true`` or ``false``."""
    return choice("true", "false")(text) == "true"


def non_empty(text: str) -> str:
    """Accepts any text that is not empty."""
    if not text:
        raise ValueError("empty")
    return text


def client_name(text: str) -> str:
    """Accepts the name of a client. The client's limit is 100 bytes."""
    if len(text.encode()) > 100:
        raise ValueError("too long")
    return text


def value_format(text: str) -> str:
    """Parses the format of a payload."""
    if text.lower() == "arrow":
        raise ValueError("reserved for a later version")
    return choice("binary", "string", "struct", "sbe")(text)


@dataclass(frozen=True)
class SbeSchemaText:
    """The text of a schema and of the files that it includes, by name. The driver program reads it once for all
    tasks."""

    text: str
    included: tuple[tuple[str, str], ...] = ()


def sbe_schema(path: str) -> SbeSchemaText:
    """Reads a schema from the file with this path, and checks it."""
    from aeron.sbe import Schema

    try:
        schema = Schema(path)
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except AeronError as error:
        raise ValueError(str(error)) from error
    return SbeSchemaText(schema._text, tuple(schema._included.items()))


def sbe_schema_text(text: str) -> SbeSchemaText:
    """Checks the text of a schema."""
    from aeron.sbe import Schema

    try:
        Schema(text=text)
    except AeronError as error:
        raise ValueError(str(error)) from error
    return SbeSchemaText(text)


def sbe_names(text: str) -> tuple[tuple[str, str], ...]:
    """Parses pairs such as ``ts us, legs.ts ns``: the field that each pair begins with, and its second word."""
    pairs = [tuple(pair.split()) for pair in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("each field needs two words")
    if len({pair[0] for pair in pairs}) < len(pairs):
        raise ValueError("a field is there twice")
    return tuple((pair[0], pair[1]) for pair in pairs)


def sbe_decimal_scale(text: str) -> int:
    """Parses a number of decimal places; -1 stands for floats."""
    return -1 if text.lower() == "float" else integer(0, 38)(text)


def starting_offsets(text: str) -> str:
    """Accepts only ``latest``, because the earlier messages of a live stream cannot be read."""
    try:
        return choice("latest")(text)
    except ValueError:
        raise ValueError("a live stream has no past") from None


def offsets(text: str) -> str:
    """Accepts a text that names positions in recordings, or a time: see `check_offsets` of the native module. Converts
    a time to microseconds since the epoch.
    """
    if re.match(r"\d{4}-\d\d-\d\d", text):
        return _time(text)
    try:
        _pipeline.check_offsets(text)
    except AeronError as error:
        raise ValueError(str(error)) from error
    return text


def _time(text: str) -> str:
    """Parses a time with a time zone. Returns it as microseconds since the epoch."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("not a time") from error
    if time.tzinfo is None:
        raise ValueError("a time without a time zone")
    return f"@{(time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)}"


@dataclass(frozen=True)
class Credentials:
    """Credentials for an archive. The representation of this object does not contain their text. Immutable."""

    text: str = field(repr=False)

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for an empty text."""
        if not self.text:
            raise ValueError("empty")


def channel(text: str) -> str:
    """Checks an Aeron URI with the parser of the client and the driver. Every parameter must be known."""
    try:
        uri = ChannelUriBuilder.parse(text)
        for parameter in re.finditer(r"[?|]([^=|]+)=", text):
            _known_parameter(uri, parameter.group(1), parameter.start(1))
        uri.validate()
    except AeronError as error:
        raise ValueError(str(error)) from error
    return text


def _known_parameter(uri: ChannelUriBuilder, name: str, place: int) -> None:
    """Refuses unknown parameters. A driver would ignore them, but in an option an unknown parameter is probably a
    typing error.
    """
    try:
        uri.get(name)
    except ValueError:
        raise ValueError(f"unknown parameter '{name}' at {place}") from None


def _ranges(text: str, low: int, high: int) -> tuple[tuple[int, int], ...]:
    ranges = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(-?[0-9]{1,19})(?:\s*-\s*(-?[0-9]{1,19}))?\s*", part)
        if match is None:
            raise ValueError(f"{part.strip()!r} is no id or range")
        first = int(match.group(1))
        last = int(match.group(2) or first)
        if first > last or first < low or last > high:
            raise ValueError(f"{part.strip()!r} is no range within {low} to {high}")
        ranges.append((first, last))
    return tuple(ranges)


def stream_id(text: str) -> int:
    """Parses one stream id."""
    return integer(-(2**31), 2**31 - 1)(text)


def stream_ids(text: str) -> tuple[int, ...]:
    """Parses numbers and ranges. Returns all ids that they contain, sorted."""
    ranges = _ranges(text, -(2**31), 2**31 - 1)
    if any(last - first >= MAX_STREAMS for first, last in ranges):
        raise ValueError("too many streams")
    ids = sorted({number for first, last in ranges for number in range(first, last + 1)})
    if len(ids) > MAX_STREAMS:
        raise ValueError("too many streams")
    return tuple(ids)


def recording_ids(text: str) -> tuple[tuple[int, int], ...]:
    """Parses numbers and ranges. Returns pairs of the first and the last id."""
    return _ranges(text, 0, 2**63 - 1)


def absolute_path(text: str) -> str:
    """Accepts an absolute path."""
    if not os.path.isabs(text):
        raise ValueError("not an absolute path")
    return text

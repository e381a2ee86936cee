"""Options that several commands share, so that an option has the same spelling, default and help in all of them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

import aeron

DEFAULT_CHANNEL = "aeron:udp?endpoint=localhost:20121"
"""The channel of Aeron's samples (docs/spec/06, section 3.1)."""

DEFAULT_STREAM_ID = 1001
"""The stream id of Aeron's samples (docs/spec/06, section 3.1)."""

PING_CHANNEL, PING_STREAM_ID = "aeron:udp?endpoint=localhost:20123", 1002
PONG_CHANNEL, PONG_STREAM_ID = "aeron:udp?endpoint=localhost:20124", 1003

LONGEST_S = 1_000_000
"""The longest time that an option accepts, in seconds: eleven days."""

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

STREAM_ID = click.IntRange(-(2**31), 2**31 - 1)


class Number(click.FloatRange):
    """A number in a range that includes both ends. NaN is refused separately, because comparisons with the limits would
    accept NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Returns the number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


F = TypeVar("F", bound=Callable[..., object])


def size(text: str) -> int:
    """Parses a number of bytes with an optional suffix k, m or g, as in the driver's settings."""
    try:
        return aeron.parse_size(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from error


def age_ms(text: str) -> int:
    """Parses a time with a suffix ms, s, m, h or d. Returns milliseconds."""
    found = re.fullmatch(r"(\d{1,15})(ms|s|m|h|d)", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a number with one of the units ms, s, m, h and d, such as 7d")
    return int(found[1]) * _UNITS_MS[found[2]]


def check_message_length(length: int, publication: aeron.Publication | aeron.ExclusivePublication) -> None:
    """Refuses a ``--length`` that is too long for a message of the stream.

    Raises:
        click.ClickException: the length is over the publication's ``max_message_length``.
    """
    if length > publication.max_message_length:
        raise click.ClickException(
            f"--length={length} is longer than max_message_length {publication.max_message_length} of this stream: "
            "give a shorter --length, or a channel with a larger term-length"
        )


def directory_option(function: F) -> F:
    """Adds the option ``--dir``: the driver's directory. Default: ``AERON_DIR``, or the platform's default."""
    return click.option(
        "--dir",
        "directory",
        default=lambda: os.environ.get("AERON_DIR") or str(aeron.default_directory()),
        show_default="AERON_DIR, else /dev/shm/aeron-<user>",
        help="Directory of the driver.",
    )(function)


def stream_options(function: F) -> F:
    """Adds the options ``--channel`` and ``--stream``."""
    function = click.option(
        "-s", "--stream", "stream_id", type=STREAM_ID, default=DEFAULT_STREAM_ID, show_default=True, help="Stream id."
    )(function)
    return click.option("-c", "--channel", default=DEFAULT_CHANNEL, show_default=True, help="Channel URI.")(function)


def ping_pong_options(function: F) -> F:
    """Adds the options for channels and stream ids in both directions of ``aeron ping`` and ``aeron pong``."""
    options = [
        click.option("-c", "--ping-channel", default=PING_CHANNEL, show_default=True, help="Channel of the pings."),
        click.option(
            "-s",
            "--ping-stream",
            "ping_stream_id",
            type=STREAM_ID,
            default=PING_STREAM_ID,
            show_default=True,
            help="Stream id of the pings.",
        ),
        click.option("-C", "--pong-channel", default=PONG_CHANNEL, show_default=True, help="Channel of the pongs."),
        click.option(
            "-S",
            "--pong-stream",
            "pong_stream_id",
            type=STREAM_ID,
            default=PONG_STREAM_ID,
            show_default=True,
            help="Stream id of the pongs.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def destination_option(function: F) -> F:
    """Adds the option ``--destination``, for channels with ``control-mode=manual``."""
    return click.option(
        "-D",
        "--destination",
        "destinations",
        multiple=True,
        metavar="URI",
        help="A destination of a channel with control-mode=manual. May be given more than once.",
    )(function)


def linger_option(function: F) -> F:
    """Adds the option ``--linger``, in seconds."""
    return click.option(
        "--linger",
        "linger_s",
        type=Number(min=0, max=LONGEST_S),
        default=0.0,
        show_default=True,
        help="Seconds to stay after the last message.",
    )(function)


def client_options(function: F) -> F:
    """Adds ``--dir``, ``--embedded`` and ``--driver-timeout``, the arguments of :func:`aeron.cli.session.session`."""
    function = click.option(
        "--driver-timeout",
        "driver_timeout_s",
        type=Number(min=0.001, max=LONGEST_S),
        show_default="AERON_DRIVER_TIMEOUT, else 10",
        help="Seconds without a heartbeat after which the driver counts as dead.",
    )(function)
    function = click.option("--embedded", is_flag=True, help="Run a driver on the directory while this command runs.")(
        function
    )
    return directory_option(function)


def timeout_option(function: F) -> F:
    """Adds the option ``--timeout``: the time for which :func:`aeron.cli.session.cnc_file` waits."""
    return click.option(
        "-t",
        "--timeout",
        "timeout_ms",
        type=click.IntRange(min=0),
        default=1000,
        show_default=True,
        help="Milliseconds to wait for a usable CnC file.",
    )(function)

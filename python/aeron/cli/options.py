"""What the subcommands share: options with one spelling and one default, and connecting to a driver."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TypeVar

import click

import aeron

DEFAULT_CHANNEL = "aeron:udp?endpoint=localhost:20121"
"""The samples' channel (reference 06, section 3.1)."""

DEFAULT_STREAM_ID = 1001
"""The samples' stream id (reference 06, section 3.1)."""

F = TypeVar("F", bound=Callable[..., object])


class SizeType(click.ParamType):
    """A number of bytes, bare or with the suffix k, m or g."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parses as the driver's settings do."""
        if isinstance(value, int):
            return value
        try:
            return aeron.parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


SIZE = SizeType()


def directory_option(function: F) -> F:
    """``--dir``: the driver's directory; the environment's ``AERON_DIR``, then the platform's default without it."""
    return click.option(
        "--dir",
        "directory",
        default=lambda: os.environ.get("AERON_DIR") or aeron.default_directory(),
        show_default="AERON_DIR, else /dev/shm/aeron-<user>",
        help="Directory of the driver.",
    )(function)


def stream_options(function: F) -> F:
    """``--channel`` and ``--stream``."""
    function = click.option(
        "-s", "--stream", "stream_id", type=int, default=DEFAULT_STREAM_ID, show_default=True, help="Stream id."
    )(function)
    return click.option("-c", "--channel", default=DEFAULT_CHANNEL, show_default=True, help="Channel URI.")(function)


def client_options(function: F) -> F:
    """``--dir``, ``--embedded`` and ``--driver-timeout``: what :func:`connected` takes."""
    function = click.option(
        "--driver-timeout",
        "driver_timeout_s",
        type=click.FloatRange(min=0.001),
        default=10.0,
        show_default=True,
        help="Seconds without a sign of the driver after which it counts as gone.",
    )(function)
    function = click.option(
        "--embedded", is_flag=True, help="Start a driver on the directory for as long as this command runs."
    )(function)
    return directory_option(function)


def timeout_option(function: F) -> F:
    """``--timeout``: how long a tool waits for a usable CnC file."""
    return click.option(
        "-t",
        "--timeout",
        "timeout_ms",
        type=click.IntRange(min=0),
        default=1000,
        show_default=True,
        help="Milliseconds to wait for a usable CnC file.",
    )(function)


@contextlib.contextmanager
def connected(
    directory: str, embedded: bool, driver_timeout_s: float, on_error: Callable[[BaseException], None] | None = None
) -> Iterator[aeron.Aeron]:
    """A client on ``directory``, with a driver of its own when ``embedded``.

    Raises:
        click.ClickException: what went wrong and, without a driver, how to start one.
    """
    with contextlib.ExitStack() as stack:
        try:
            if embedded:
                stack.enter_context(aeron.MediaDriver(dir=directory))
            elif not os.path.exists(os.path.join(directory, "cnc.dat")):
                click.echo(f"Waiting up to {driver_timeout_s:g} s for a driver on {directory}", err=True)
            client = stack.enter_context(
                aeron.connect(directory, driver_timeout_ms=int(driver_timeout_s * 1000), error_handler=on_error)
            )
        except aeron.DriverTimeoutError as error:
            raise click.ClickException(
                f"{error}\nNo driver on {directory}: start one with 'aeron driver --dir {directory}', "
                "or give --embedded to run one inside this command."
            ) from error
        except aeron.AeronError as error:
            raise click.ClickException(str(error)) from error
        yield client


@contextlib.contextmanager
def cnc_file(directory: str, timeout_ms: int) -> Iterator[aeron.CncFile]:
    """The driver's CnC file, mapped read-only.

    Raises:
        click.ClickException: there is no usable CnC file within ``timeout_ms``.
    """
    try:
        cnc = aeron.CncFile(directory, timeout_ms=timeout_ms)
    except aeron.AeronError as error:
        raise click.ClickException(
            f"{error}\nTimed out waiting for CnC file to become available after {timeout_ms}ms: is a driver running on "
            f"{directory}? Start one with 'aeron driver --dir {directory}'."
        ) from error
    with cnc:
        yield cnc

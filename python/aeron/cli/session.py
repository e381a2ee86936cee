"""Resources of a command: a client until the command must end, or a driver's CnC file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import click

import aeron
from aeron.cli.text import printable_lines

Publication = aeron.Publication | aeron.ExclusivePublication


@contextlib.contextmanager
def session(
    directory: str, embedded: bool, driver_timeout_s: float | None
) -> Iterator[tuple[aeron.Aeron, aeron.ShutdownSignalBarrier]]:
    """Yields a client of the driver on ``directory``, and a barrier that is woken when the command must end.

    SIGINT, SIGTERM and the end of the client wake the barrier. With ``embedded``, this process runs the driver on the
    directory. If the driver is lost, the client's error is printed to stderr, and the command ends with status 1.

    Raises:
        click.ClickException: the error of the client. If no driver runs, the text says how to start one.
    """
    with contextlib.ExitStack() as stack:
        with _explained(directory):
            if embedded:
                stack.enter_context(aeron.MediaDriver(dir=directory))
            elif not os.path.exists(os.path.join(directory, "cnc.dat")):
                click.echo(f"Waiting for a driver on {directory}", err=True)
            timeout_ms = None if driver_timeout_s is None else round(driver_timeout_s * 1000)
            client = stack.enter_context(
                aeron.connect(directory, driver_timeout_ms=timeout_ms, error_handler=_print_error)
            )
        stop = stack.enter_context(aeron.ShutdownSignalBarrier())
        client.add_close_handler(stop.signal)
        if client.is_closed:
            stop.signal()
        try:
            yield client, stop
        except aeron.AeronError as error:
            if client.close_cause is None:
                raise click.ClickException(printable_lines(str(error)).rstrip()) from error
        if client.close_cause is not None:
            raise SystemExit(1)


def add_publication(client: aeron.Aeron, channel: str, stream_id: int, exclusive: bool) -> Publication:
    """Adds an exclusive publication if ``exclusive`` is set, otherwise a concurrent publication."""
    if exclusive:
        return client.add_exclusive_publication(channel, stream_id)
    return client.add_publication(channel, stream_id)


@contextlib.contextmanager
def cnc_file(directory: str, timeout_ms: int) -> Iterator[aeron.CncFile]:
    """Yields the driver's CnC file, mapped read-only.

    Raises:
        click.ClickException: no usable CnC file within ``timeout_ms``.
    """
    try:
        cnc = aeron.CncFile(directory, timeout_ms=timeout_ms)
    except aeron.DriverTimeoutError as error:
        raise click.ClickException(
            f"{error}\nTimed out waiting for CnC file to become available after {timeout_ms}ms\n{_remedy(directory)}"
        ) from error
    except aeron.AeronError as error:
        raise click.ClickException(printable_lines(str(error)).rstrip()) from error
    with cnc:
        yield cnc


@contextlib.contextmanager
def _explained(directory: str) -> Iterator[None]:
    """Turns a connection error of the client into a message that says what to do."""
    try:
        yield
    except aeron.DriverTimeoutError as error:
        raise click.ClickException(
            f"{error}\n{_remedy(directory)}, or give --embedded to run one inside this command."
        ) from error
    except aeron.DriverActiveError as error:
        raise click.ClickException(f"{error}\nLeave out --embedded to use that driver.") from error
    except aeron.AeronError as error:
        raise click.ClickException(printable_lines(str(error)).rstrip()) from error


def _remedy(directory: str) -> str:
    return f"No driver on {directory}: start one with 'aeron driver --dir {directory}'"


def _print_error(error: Exception) -> None:
    click.echo(f"ERROR: {printable_lines(str(error))}".rstrip(), err=True)

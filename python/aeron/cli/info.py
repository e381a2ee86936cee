"""``aeron info``: the driver of a directory, in the form of DriverTool (docs/spec/06, section 1.5)."""

from __future__ import annotations

import time

import click

import aeron
from aeron.cli.options import directory_option, timeout_option
from aeron.cli.session import cnc_file
from aeron.cli.timestamps import local_time


@click.command("info")
@directory_option
@timeout_option
@click.option("-P", "--pid", "pid_only", is_flag=True, help="Print the driver's process id only.")
@click.option("-T", "--terminate", is_flag=True, help="Ask the driver to end. Its termination validator decides.")
def command(directory: str, timeout_ms: int, pid_only: bool, terminate: bool) -> None:
    """Show the version, process id, start time and activity of the driver on a directory."""
    with cnc_file(directory, timeout_ms) as cnc:
        if pid_only:
            click.echo(cnc.pid)
        elif terminate:
            _terminate(directory)
        else:
            now = local_time(time.time_ns() // 1_000_000)
            click.echo(f"Command 'n Control cnc_file: {directory}/cnc.dat")
            click.echo(f"Version: {cnc.version}, PID: {cnc.pid}")
            click.echo(f"{now} (start: {local_time(cnc.start_timestamp_ms)}, activity: {local_time(cnc.heartbeat_ms)})")


def _terminate(directory: str) -> None:
    try:
        asked = aeron.is_driver_active(directory) and aeron.request_driver_termination(directory)
    except aeron.AeronError as error:
        raise click.ClickException(str(error)) from error
    if not asked:
        raise click.ClickException(f"no driver runs on {directory}")

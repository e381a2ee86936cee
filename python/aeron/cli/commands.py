"""The group of the commands that are not native programs."""

from __future__ import annotations

import click

from aeron.cli.lazy import LazyCommand, LazyGroup

_NATIVE = [
    ("driver", "Run a media driver in the foreground (same as aeronmd)."),
    ("archive run", "Run an archive in the foreground (same as aeronarchive)."),
]

_HELPS = {
    "archive": "Inspect, repair or export an archive; record and replay.",
    "pub": "Publish messages to a channel and stream.",
    "sub": "Print the messages of a channel and stream.",
    "ping": "Measure round trips to a pong.",
    "pong": "Send every message back.",
    "send": "Send a file.",
    "receive": "Receive files from 'aeron send'.",
    "rate": "Measure the message rate of a stream, or send at full rate.",
    "top": "Show a driver live on the whole screen: streams, readers, clients, recordings, errors.",
    "stat": "Show a driver's counters, live or once.",
    "errors": "Show a driver's distinct errors.",
    "log-level": "Change the level of a running driver's or archive's log.",
    "reload": "Let a running driver or archive read its files again.",
    "loss": "Show the losses of a driver's streams.",
    "streams": "Show a driver's streams and the backlog of each reader.",
    "clients": "Show a driver's clients and what they own.",
    "health": "Check whether a driver and an archive live and are ready.",
    "exporter": "Serve the metrics of drivers and archives to Prometheus.",
    "info": "Show the driver of a directory, or ask the driver to end.",
    "report": "Write one file with what a bug report needs.",
    "inspect": "Print the frames of a log buffer file.",
    "sbe": "Check and list an SBE schema, or decode messages.",
    "doctor": "Check this machine for a driver, or for Spark's format aeron.",
    "demo": "Publish market data to another process, and show rate and latency.",
}

_COMMANDS = {name: LazyCommand(f"aeron.cli.{name.replace('-', '_')}", "command", text) for name, text in _HELPS.items()}

# For a wrong option, Aeron's own tools exit with status 1. Click's default of 2 is the status of a driver after SIGINT.
click.UsageError.exit_code = 1


@click.group(
    cls=LazyGroup,
    commands_of=_COMMANDS,
    native=_NATIVE,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="aeron-py", prog_name="aeron")
def aeron() -> None:
    """Aeron for Python: reliable messaging over IPC and UDP.

    Start a driver with 'aeron driver', then publish and subscribe in other terminals.
    """

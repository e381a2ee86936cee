"""The group of the commands that are not native programs."""

from __future__ import annotations

import click

from aeron.cli.lazy import LazyCommand, LazyGroup

_NATIVE = [
    ("driver", "Run a media driver in the foreground (same as aeronmd)."),
    ("archive run", "Run an archive in the foreground (same as aeronarchive)."),
]

_HELPS = {
    "archive": "Look into an archive, repair it, record, replay.",
    "pub": "Publish messages to a channel and stream.",
    "sub": "Print the messages of a channel and stream.",
    "ping": "Measure round trips to a pong.",
    "pong": "Send every message back.",
    "send": "Send a file.",
    "receive": "Store the files that are sent.",
    "rate": "Show how many messages a stream carries, or send as many as it takes.",
    "stat": "Show a driver's counters, live or once.",
    "errors": "Show a driver's distinct errors.",
    "loss": "Show what a driver's streams have lost.",
    "streams": "Show a driver's streams and how far behind each reader is.",
    "info": "Show which driver runs on a directory, or ask it to end.",
    "inspect": "Print the frames of a log buffer file.",
    "doctor": "Look for what Spark's format aeron needs on this machine.",
    "demo": "Publish market data from one process to another and show rate and latency.",
}

_COMMANDS = {name: LazyCommand(f"aeron.cli.{name}", "command", text) for name, text in _HELPS.items()}

# A wrong option is a failure with the status of Aeron's own tools: 2 would be a driver's answer to SIGINT.
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

"""The group of the commands that are not native programs; a command is imported when it is called."""

from __future__ import annotations

import importlib

import click

_NATIVE = [
    ("driver", "Run a media driver in the foreground (same as aeronmd)."),
    ("archive run", "Run an archive in the foreground (same as aeronarchive)."),
]

_COMMANDS = {
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

# A wrong option is a failure with the status of Aeron's own tools: 2 would be a driver's answer to SIGINT.
click.UsageError.exit_code = 1


class _LazyGroup(click.Group):
    """A group whose commands are imported on first use; their one-line helps are known without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"aeron.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_NATIVE, *_COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="aeron-py", prog_name="aeron")
def aeron() -> None:
    """Aeron for Python: reliable messaging over IPC and UDP.

    Start a driver with 'aeron driver', then publish and subscribe in other terminals.
    """

"""The ``aeron`` command: a driver, publishers, subscribers and views of a driver's files, one module per subcommand.

Subcommands are imported when they are called, so that ``aeron --help`` and ``aeron driver`` start fast.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

_COMMANDS = {
    "driver": ("aeron.cli.driver", "Run a media driver in the foreground (same as aeronmd)."),
    "pub": ("aeron.cli.pub", "Publish messages to a channel and stream."),
    "sub": ("aeron.cli.sub", "Print the messages of a channel and stream."),
    "stat": ("aeron.cli.stat", "Show a driver's counters, live or once."),
    "errors": ("aeron.cli.errors", "Show a driver's distinct errors."),
    "info": ("aeron.cli.info", "Show which driver runs on a directory, or ask it to end."),
    "inspect": ("aeron.cli.inspect", "Print the frames of a log buffer file."),
    "demo": ("aeron.cli.demo", "Publish market data from one process to another and show rate and latency."),
}


class _LazyGroup(click.Group):
    """A group whose commands are imported on first use; their one-line helps are known without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(_COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="aeron-py", prog_name="aeron")
def main(**_: Any) -> None:
    """Aeron for Python: reliable messaging over IPC and UDP."""

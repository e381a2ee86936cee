"""Groups of commands that import a command when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click


class LazyCommand(NamedTuple):
    """Module and name of a command, and its help in one line."""

    module: str
    attribute: str
    help: str


class LazyGroup(click.Group):
    """A group that imports a command at its first use. The one-line helps need no import.

    ``native`` lists separate programs that the help also shows. An unknown command raises ``unknown_command``.
    """

    def __init__(
        self,
        *arguments: Any,
        commands_of: Mapping[str, LazyCommand],
        native: Sequence[tuple[str, str]] = (),
        unknown_command: type[click.UsageError] = click.UsageError,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self._commands_of = commands_of
        self._native = list(native)
        self._unknown_command = unknown_command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands."""
        return list(self._commands_of)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports and returns the command with this name; ``None`` if there is no such command."""
        found = self._commands_of.get(cmd_name)
        if found is None:
            return None
        command: click.Command = getattr(importlib.import_module(found.module), found.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that the arguments name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise self._unknown_command(error.message, error.ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes names and one-line helps of all commands."""
        lines = [(name, command.help) for name, command in self._commands_of.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*self._native, *lines])

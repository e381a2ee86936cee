"""SBE messages as texts for a terminal, and the option ``--sbe``."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import click

import aeron
from aeron.cli.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from aeron.sbe import Schema

F = TypeVar("F", bound="Callable[..., object]")


def schema_in(path: str) -> Schema:
    """Reads and checks the schema in a file.

    Raises:
        click.ClickException: the file cannot be read, or the schema breaks a rule.
    """
    try:
        return aeron.sbe.Schema(path)
    except OSError as error:
        raise click.ClickException(f"{printable(path)}: {error.strerror or error}") from error
    except aeron.AeronError as error:
        raise click.ClickException(f"{printable(path)}: {printable(str(error))}") from error


def sbe_option(function: F) -> F:
    """Adds the option ``--sbe``: the file with the schema by which messages are printed."""
    return click.option(
        "--sbe",
        type=click.Path(dir_okay=False),
        help="File with an SBE schema: print the values of messages instead of their bytes.",
    )(function)


def values_of(schema: Schema, message: Any) -> dict[str, Any]:
    """Returns the name of a message's template, and its values for JSON; or the ``error`` of a message that cannot be
    decoded."""
    try:
        decoded = schema.decode(message)
        values = decoded.as_dict()
    except aeron.AeronError as error:
        return {"error": str(error)}
    return {"template": decoded.template.name, "values": _for_json(values)}


def text_of(schema: Schema, message: Any) -> str:
    """Returns a message as one line: the name of its template, and its values."""
    found = values_of(schema, message)
    if "error" in found:
        return printable(f"cannot be decoded: {found['error']}")
    return printable(f"{found['template']} {json.dumps(found['values'], ensure_ascii=False)}")


def _for_json(value: Any) -> Any:
    """Returns a value with texts for decimals, and hexadecimal digits for bytes, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _for_json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_for_json(item) for item in value]
    if isinstance(value, Decimal):
        return str(value)
    return value.hex() if isinstance(value, bytes) else value

"""``aeron sbe``: checks and lists an SBE schema, and decodes messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from aeron.cli.sbe_text import schema_in, text_of, values_of
from aeron.cli.text import printable

if TYPE_CHECKING:
    from aeron.sbe import Schema, Template


@click.command("sbe")
@click.argument("schema", type=click.Path(dir_okay=False))
@click.argument("message", required=False)
@click.option(
    "--hex", "hexadecimal", help="Decode a message in hexadecimal digits; '-' reads one from each line of input."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object in each line.")
def command(*, schema: str, message: str | None, hexadecimal: str | None, as_json: bool) -> None:
    """Check the SBE schema in the file SCHEMA, and list its messages, or the fields of MESSAGE."""
    checked = schema_in(schema)
    if hexadecimal is not None:
        if message is not None:
            raise click.UsageError("MESSAGE and --hex are both given: a message names its template itself")
        _decode(checked, hexadecimal, as_json)
        return
    lines: Iterator[str]
    if message is not None:
        if message not in checked:
            raise click.UsageError(f"the schema has no message '{message}': it has {', '.join(checked)}")
        lines = _json_elements(checked[message]) if as_json else _elements(checked[message])
    else:
        lines = _json_messages(checked) if as_json else _messages(checked)
    for line in lines:
        click.echo(printable(line))
    for warning in checked.warnings:
        click.echo(printable(f"warning: {warning}"), err=True)


def _decode(schema: Schema, hexadecimal: str, as_json: bool) -> None:
    failed = False
    lines = sys.stdin if hexadecimal == "-" else [hexadecimal]
    for line in lines:
        try:
            message = bytes.fromhex(line)
        except ValueError as error:
            raise click.UsageError(f"--hex: {error}") from error
        values = values_of(schema, message)
        failed |= "error" in values
        click.echo(json.dumps(values) if as_json else text_of(schema, message))
    if failed:
        raise click.exceptions.Exit(1)


def _messages(schema: Schema) -> Iterator[str]:
    yield f"package {schema.package or '-'}, schema {schema.id}, version {schema.version}, {len(schema)} messages"
    for each in schema.values():
        yield f"{each.id:>6} {each.name} ({each.block_length} bytes): {', '.join(each.names)}"


def _json_messages(schema: Schema) -> Iterator[str]:
    for each in schema.values():
        yield json.dumps(
            {
                "id": each.id,
                "name": each.name,
                "since_version": each.since_version,
                "block_length": each.block_length,
                "elements": list(each.names),
                "description": each.description,
            }
        )


def _elements(template: Template) -> Iterator[str]:
    yield f"message {template.name}, template {template.id}, block of {template.block_length} bytes"
    for depth, name, kind, offset, presence, since in template._elements:
        place = "" if offset is None else f" at {offset}"
        more = f" {presence}" * bool(presence) + f" since {since}" * bool(since)
        yield f"{'  ' * (depth + 1)}{name}: {kind}{place}{more}"


def _json_elements(template: Template) -> Iterator[str]:
    keys = ("depth", "name", "type", "offset", "presence", "since_version")
    for element in template._elements:
        yield json.dumps(dict(zip(keys, element, strict=True)))

"""``aeron archive staged``: the staged rows of exactly-once Spark queries in a running archive."""

from __future__ import annotations

from dataclasses import dataclass, field

import click

import aeron
from aeron._staged import alias_of, query_alias, staged_batch
from aeron.cli.archive.files import confirmed, json_option, print_json, yes_option
from aeron.cli.archive.live import Target, archive_options, archive_session
from aeron.cli.lazy import LazyCommand, LazyGroup
from aeron.cli.table import aligned
from aeron.cli.text import printable
from aeron.cli.timestamps import local_time

_MODULE = "aeron.cli.archive.staged"
_COMMANDS = {
    "list": LazyCommand(_MODULE, "list_command", "List the queries with staged rows."),
    "delete": LazyCommand(_MODULE, "delete", "Delete the staged rows of a query that is gone."),
}
_COLUMNS = ("query", "recordings", "bytes", "last batch", "last change", "state")


@dataclass
class _StagedQuery:
    """The staged recordings of a query, and whether the archive records anything for the query now."""

    name: str
    recordings: list[aeron.Recording] = field(default_factory=list)
    is_active: bool = False

    @property
    def length(self) -> int:
        """Number of recorded bytes of the stopped recordings."""
        return sum((one.stop_position or one.start_position) - one.start_position for one in self.recordings)

    @property
    def last_batch(self) -> int:
        """Highest batch with staged rows."""
        return max(found[1] for one in self.recordings if (found := staged_batch(one)) is not None)

    @property
    def changed_ms(self) -> int:
        """Latest start or stop of a staged recording, in milliseconds since the epoch."""
        return max(one.stop_timestamp_ms or one.start_timestamp_ms for one in self.recordings)


@click.group("staged", cls=LazyGroup, commands_of=_COMMANDS)
def command() -> None:
    """List and delete the rows that tasks of exactly-once Spark queries have staged in a running archive.

    A query deletes its staged rows when it has committed their batch. If a query is never started again, its staged
    rows stay.
    """


@click.command("list")
@archive_options
@json_option
def list_command(*, target: Target, as_json: bool) -> None:
    """List the queries with staged rows."""
    with archive_session(target) as session:
        queries = _staged_queries(session.archive)
    if as_json:
        print_json([_as_json(query) for query in queries])
        return
    click.echo(
        "\n".join(aligned(_COLUMNS, [_cells(query) for query in queries], texts={"query", "last change", "state"}))
    )


@click.command("delete")
@click.argument("query")
@archive_options
@yes_option
@json_option
def delete(*, target: Target, query: str, yes: bool, as_json: bool) -> None:
    """Delete the staged rows of QUERY. The query must not run, and cannot go on with these rows afterwards."""
    with archive_session(target) as session:
        found = next((one for one in _staged_queries(session.archive) if one.name == query), None)
        if found is None:
            raise click.ClickException(f"no staged rows of the query {printable(query)}")
        if found.is_active:
            raise click.ClickException(
                f"the query {printable(query)} runs: the archive records for it now; stop the query first"
            )
        count = len(found.recordings)
        warning = (
            f"{count} recordings with {found.length} bytes will be deleted. If the query {printable(query)} is started "
            f"again, it may fail because the rows of batch {found.last_batch} are gone."
        )
        if not confirmed(warning, yes):
            return
        for recording in found.recordings:
            session.archive.purge_recording(recording.recording_id)
    if as_json:
        print_json({"query": query, "recordings": count})
    else:
        click.echo(f"deleted {count} staged recordings of the query {printable(query)}")


def _staged_queries(archive: aeron.AeronArchive) -> list[_StagedQuery]:
    """Returns the queries with staged recordings, ordered by their latest change."""
    recordings = list(archive.list_recordings())
    queries: dict[str, _StagedQuery] = {}
    for recording in recordings:
        if (staged := staged_batch(recording)) is not None:
            query = queries.setdefault(staged[0], _StagedQuery(staged[0]))
            query.recordings.append(recording)
            query.is_active |= recording.is_active
    aliases = {alias_of(recording) for recording in recordings if recording.is_active}
    for query in queries.values():
        query.is_active |= query_alias(query.name) in aliases
    return sorted(queries.values(), key=lambda query: query.changed_ms)


def _as_json(query: _StagedQuery) -> dict[str, object]:
    return {
        "query": query.name,
        "recordings": [recording.recording_id for recording in query.recordings],
        "bytes": query.length,
        "last_batch": query.last_batch,
        "changed_timestamp_ms": query.changed_ms,
        "is_active": query.is_active,
    }


def _cells(query: _StagedQuery) -> tuple[str, ...]:
    return (
        printable(query.name),
        f"{len(query.recordings):,}",
        f"{query.length:,}",
        str(query.last_batch),
        local_time(query.changed_ms),
        "active" if query.is_active else "stopped",
    )

"""``aeron archive retention``: policies by which a running archive deletes old data."""

from __future__ import annotations

import click
from click.core import ParameterSource

import aeron
from aeron.cli.archive.files import RECORDING_ID, confirmed, json_option, print_json, yes_option
from aeron.cli.archive.live import Target, archive_options, archive_session
from aeron.cli.lazy import LazyCommand, LazyGroup
from aeron.cli.options import STREAM_ID, age_ms, size
from aeron.cli.table import aligned
from aeron.cli.text import printable

_MODULE = "aeron.cli.archive.retention"
_COMMANDS = {
    "set": LazyCommand(_MODULE, "set_command", "Set a policy, or remove it."),
    "list": LazyCommand(_MODULE, "list_command", "List the policies."),
    "apply": LazyCommand(_MODULE, "apply_command", "Apply the policies now, or show what they would delete."),
}
_POLICY_COLUMNS = ("recording", "stream", "channel", "max bytes", "max age")
_WAITING_COLUMNS = ("recording", "start position", "too old up to", "bytes")
_OUTCOME_COLUMNS = ("recording", "start position", "new start position", "bytes", "action", "held by")


@click.group("retention", cls=LazyGroup, commands_of=_COMMANDS, invoke_without_command=True, no_args_is_help=True)
@click.option("--trust-clock", is_flag=True, help="Delete what is too old by the wall clock, although it was in doubt.")
@archive_options
@yes_option
@json_option
@click.pass_context
def command(context: click.Context, *, target: Target, trust_clock: bool, yes: bool, as_json: bool) -> None:
    """Set, list and apply the policies by which a running archive deletes old data.

    After a start or a step that makes the wall clock doubtful, an archive deletes nothing because of its age, and no
    reader expires by its age, for a day of running. If the clock is right, --trust-clock ends this. The command shows
    what the archive then deletes, and asks.
    """
    subcommand = context.invoked_subcommand
    if subcommand is not None:
        given = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        if given:
            raise click.UsageError(f"options of {subcommand} come after it: aeron archive retention {subcommand} ...")
        return
    if not trust_clock:
        raise click.UsageError("give --trust-clock, or one of the commands " + ", ".join(_COMMANDS))
    _trust_clock(target, yes, as_json)


def _trust_clock(target: Target, yes: bool, as_json: bool) -> None:
    with archive_session(target) as session:
        waiting = [each for each in session.archive.apply_retention(dry_run=True) if each.held_by == "CLOCK"]
        if waiting and not yes:
            rows = [_waiting_cells(outcome) for outcome in waiting]
            click.echo("\n".join(aligned(_WAITING_COLUMNS, rows, texts=set())), err=True)
        bytes_ = sum(each.allowed_position - each.new_start_position for each in waiting)
        warning = (
            f"The archive will trust its wall clock, and delete {bytes_:,} bytes of {len(waiting)} recordings that are "
            "too old by this clock. Each reader gets its maximum age again."
        )
        if not confirmed(warning, yes):
            return
        outcomes = session.archive.apply_retention(trust_clock=True)
    if as_json:
        print_json([outcome_as_json(outcome) for outcome in outcomes])
    else:
        _echo_outcomes(outcomes)


@click.command("set")
@archive_options
@click.option("--recording", "recording_id", type=RECORDING_ID, help="Only this recording.")
@click.option("-s", "--stream", "stream_id", type=STREAM_ID, help="All recordings of this stream.  [default: any]")
@click.option("-c", "--channel", metavar="TEXT", help="All recordings whose channel contains this.  [default: any]")
@click.option("--max-bytes", type=size, metavar="SIZE", help="Bytes of all these recordings together, such as 10g.")
@click.option("--max-age", "max_age_ms", type=age_ms, metavar="TIME", help="Age of data, such as 7d, 12h or 90s.")
@click.option("--remove", is_flag=True, help="Remove the policy.")
@yes_option
@json_option
def set_command(
    *,
    target: Target,
    recording_id: int | None,
    stream_id: int | None,
    channel: str | None,
    max_bytes: int | None,
    max_age_ms: int | None,
    remove: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Set the policy of one recording, or of all recordings that match.

    The archive then deletes old data by itself. Data that a named reader has not committed stay.
    """
    if remove == (max_bytes is not None or max_age_ms is not None):
        raise click.UsageError("give --max-bytes or --max-age, or only --remove")
    if recording_id is not None and (stream_id is not None or channel is not None):
        raise click.UsageError("--recording is for one recording, --stream and --channel are for all that match")
    policy = aeron.RetentionPolicy(recording_id, stream_id, channel, max_bytes, max_age_ms)
    if not remove and not confirmed(f"The archive will delete data by this policy: {_sentence(policy)}.", yes):
        return
    with archive_session(target) as session:
        replaced = session.archive.set_retention(
            recording_id=recording_id,
            stream_id=stream_id,
            channel=channel,
            max_bytes=max_bytes,
            max_age_ms=max_age_ms,
        )
    if as_json:
        print_json(policy_as_json(policy) | {"replaced": replaced})
    elif remove:
        click.echo("removed the policy" if replaced else "there was no such policy")
    else:
        click.echo(f"{'replaced' if replaced else 'set'} the policy: {_sentence(policy)}")


@click.command("list")
@archive_options
@json_option
def list_command(*, target: Target, as_json: bool) -> None:
    """List the retention policies."""
    with archive_session(target) as session:
        policies = session.archive.list_retention()
    if as_json:
        print_json([policy_as_json(policy) for policy in policies])
        return
    rows = [_policy_cells(policy) for policy in policies]
    click.echo("\n".join(aligned(_POLICY_COLUMNS, rows, texts={"channel"})))


@click.command("apply")
@archive_options
@click.option("--recording", "recording_id", type=RECORDING_ID, help="Only this recording.")
@click.option("--dry-run", is_flag=True, help="Delete nothing.")
@json_option
def apply_command(*, target: Target, recording_id: int | None, dry_run: bool, as_json: bool) -> None:
    """Apply the policies now, and show what they delete. The archive also applies them by itself."""
    with archive_session(target) as session:
        outcomes = session.archive.apply_retention(recording_id=recording_id, dry_run=dry_run)
    if as_json:
        print_json([outcome_as_json(outcome) for outcome in outcomes])
        return
    _echo_outcomes(outcomes)


def _echo_outcomes(outcomes: list[aeron.RetentionOutcome]) -> None:
    rows = [_outcome_cells(outcome) for outcome in outcomes]
    click.echo("\n".join(aligned(_OUTCOME_COLUMNS, rows, texts={"action", "held by"})))


def policy_as_json(policy: aeron.RetentionPolicy) -> dict[str, object]:
    """Returns the policy with all its fields. A field without a value is null."""
    return {
        "recording_id": policy.recording_id,
        "stream_id": policy.stream_id,
        "channel": policy.channel,
        "max_bytes": policy.max_bytes,
        "max_age_ms": policy.max_age_ms,
    }


def outcome_as_json(outcome: aeron.RetentionOutcome) -> dict[str, object]:
    """Returns the outcome with all its fields. A field without a value is null."""
    return {
        "recording_id": outcome.recording_id,
        "start_position": outcome.start_position,
        "new_start_position": outcome.new_start_position,
        "allowed_position": outcome.allowed_position,
        "is_purge": outcome.is_purge,
        "held_by": outcome.held_by,
        "reader": outcome.reader,
    }


def _policy_cells(policy: aeron.RetentionPolicy) -> tuple[str, ...]:
    any_stream = "" if policy.recording_id is not None else "any"
    return (
        "any" if policy.recording_id is None else str(policy.recording_id),
        any_stream if policy.stream_id is None else str(policy.stream_id),
        any_stream if policy.channel is None else printable(policy.channel),
        "" if policy.max_bytes is None else f"{policy.max_bytes:,}",
        "" if policy.max_age_ms is None else f"{policy.max_age_ms:,} ms",
    )


def _outcome_cells(outcome: aeron.RetentionOutcome) -> tuple[str, ...]:
    freed = outcome.new_start_position - outcome.start_position
    action = "the whole recording" if outcome.is_purge else "segments" if freed else "nothing"
    holder = outcome.held_by or ""
    return (
        str(outcome.recording_id),
        f"{outcome.start_position:,}",
        f"{outcome.new_start_position:,}",
        f"{freed:,}",
        action,
        holder if outcome.reader is None else f"{holder} {printable(outcome.reader)}",
    )


def _waiting_cells(outcome: aeron.RetentionOutcome) -> tuple[str, ...]:
    start, end = outcome.new_start_position, outcome.allowed_position
    return str(outcome.recording_id), f"{start:,}", f"{end:,}", f"{end - start:,}"


def _sentence(policy: aeron.RetentionPolicy) -> str:
    if policy.recording_id is not None:
        recordings = f"recording {policy.recording_id}"
    else:
        stream = "all streams" if policy.stream_id is None else f"stream {policy.stream_id}"
        channel = "all channels" if policy.channel is None else f"channels with {printable(policy.channel)}"
        recordings = f"recordings of {stream}, {channel}"
    limits = []
    if policy.max_bytes is not None:
        limits.append(f"at most {policy.max_bytes:,} bytes")
    if policy.max_age_ms is not None:
        limits.append(f"at most {policy.max_age_ms:,} ms old")
    return f"{recordings}: {', '.join(limits)}"

"""``aeron stat``: a driver's counters in the form of AeronStat, live, once, or as JSON (docs/spec/06, section 1.2)."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable

import click

import aeron
from aeron.cli.options import LONGEST_S, directory_option, timeout_option
from aeron.cli.screen import watch
from aeron.cli.session import cnc_file
from aeron.cli.text import printable
from aeron.cli.timestamps import local_time

_SYSTEM = 0
_STREAM_TYPES = frozenset({1, 2, 3, 4, 5, 9, 10, 12})
"""The types that Aeron's own tool filters by identity, session and stream."""
_CHANNEL_TYPES = _STREAM_TYPES | {6, 7}
"""The types that Aeron's own tool filters by channel."""

Filter = Callable[[aeron.CounterSnapshot], bool]


@click.command("stat")
@click.argument("filters", nargs=-1, metavar="[NAME=REGEX]...")
@directory_option
@timeout_option
@click.option("--once", is_flag=True, help="Print the counters once and end.")
@click.option("--json", "as_json", is_flag=True, help="Print the counters once, as one JSON object.")
@click.option(
    "-u",
    "--update-period",
    "period_ms",
    type=click.IntRange(min=10, max=1000 * LONGEST_S),
    default=1000,
    show_default=True,
    help="Milliseconds between updates.",
)
def command(
    *, filters: tuple[str, ...], directory: str, timeout_ms: int, once: bool, as_json: bool, period_ms: int
) -> None:
    """Show a driver's counters until interrupted.

    FILTERS have the form NAME=REGEX, and a counter must match all of them. NAME is type, identity (system counter id or
    registration id), session, stream or channel. Example: 'aeron stat type=12 channel=ipc'. As in Aeron's own tool,
    'watch=false' is the same as --once, and 'delay=5' means 5 seconds between updates.
    """
    settings = dict(each.split("=", 1) for each in filters if each.startswith(("watch=", "delay=")))
    matches = parse_filters(each for each in filters if not each.startswith(("watch=", "delay=")))
    once = once or not _watched(settings.get("watch", "true"))
    period_ms = _delay_ms(settings["delay"]) if "delay" in settings else period_ms
    with cnc_file(directory, timeout_ms) as cnc:
        if as_json:
            click.echo(json.dumps(_as_json(cnc, matches), indent=2))
        elif once:
            click.echo("\n".join(render(cnc, matches)))
        else:
            _watch(cnc, matches, period_ms)


def _watched(text: str) -> bool:
    if text not in {"true", "false"}:
        raise click.UsageError(f"'watch={text}' is neither watch=true nor watch=false")
    return text == "true"


def _delay_ms(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text) or not 1 <= int(text) <= LONGEST_S:
        raise click.UsageError(f"'delay={text}' is not a number of seconds from 1 to {LONGEST_S}")
    return int(text) * 1000


def parse_filters(arguments: Iterable[str]) -> Filter:
    """Returns one predicate for all ``name=regex`` arguments.

    Raises:
        click.UsageError: an argument of another form, an unknown name, or a pattern that does not compile.
    """
    tests: list[Filter] = []
    for argument in arguments:
        name, separator, pattern = argument.partition("=")
        if not separator:
            raise click.UsageError(f"Arguments must be in name=pattern format: Invalid '{argument}'")
        if name not in _COMPARED:
            raise click.UsageError(f"Unrecognised argument: '{argument}', use one of {', '.join(_COMPARED)}")
        try:
            tests.append(_test(_COMPARED[name], re.compile(pattern)))
        except re.error as error:
            raise click.UsageError(f"'{argument}' is not a regular expression: {error}") from error
    return lambda counter: all(test(counter) for test in tests)


def render(cnc: aeron.CncFile, matches: Filter) -> list[str]:
    """Returns the header, a rule, and one line for each counter in the order of ids."""
    now_ms = time.time_ns() // 1_000_000
    width = len(str(cnc.max_counter_id))
    version = cnc.version
    lines = [
        f"{local_time(now_ms)} - Aeron Stat (CnC v{version >> 16}.{version >> 8 & 0xFF}.{version & 0xFF}), "
        f"pid {cnc.pid}, heartbeat age {now_ms - cnc.heartbeat_ms}ms",
        "=" * 70,
    ]
    lines += [f"{c.id:{width}}: {c.value:26,} - {printable(c.label)}" for c in cnc.counters() if matches(c)]
    return lines


def _watch(cnc: aeron.CncFile, matches: Filter, period_ms: int) -> None:
    def pause() -> bool:
        time.sleep(period_ms / 1000)
        return False

    with contextlib.suppress(KeyboardInterrupt):
        watch(lambda: render(cnc, matches), pause, advice="narrow them with NAME=REGEX, or use --once")


def _as_json(cnc: aeron.CncFile, matches: Filter) -> dict[str, object]:
    return {
        "cnc_version": cnc.version,
        "pid": cnc.pid,
        "start_timestamp_ms": cnc.start_timestamp_ms,
        "heartbeat_ms": cnc.heartbeat_ms,
        "counters": [
            {
                "id": c.id,
                "type_id": c.type_id,
                "value": c.value,
                "label": c.label,
                "registration_id": c.registration_id,
                "owner_id": c.owner_id,
                "reference_id": c.reference_id,
                "key": c.key.hex(),
            }
            for c in cnc.counters()
            if matches(c)
        ],
    }


def _test(compared: Callable[[aeron.CounterSnapshot], str | None], pattern: re.Pattern[str]) -> Filter:
    def test(counter: aeron.CounterSnapshot) -> bool:
        text = compared(counter)
        return text is None or pattern.search(text) is not None

    return test


def _identity(counter: aeron.CounterSnapshot) -> str | None:
    if counter.type_id == _SYSTEM:
        return str(counter.id)
    return _of_stream(counter, counter._stream_registration_id)


def _of_stream(counter: aeron.CounterSnapshot, part: int | None) -> str | None:
    return str(part) if counter.type_id in _STREAM_TYPES else None


_COMPARED: dict[str, Callable[[aeron.CounterSnapshot], str | None]] = {
    "type": lambda counter: str(counter.type_id),
    "identity": _identity,
    "session": lambda counter: _of_stream(counter, counter.session_id),
    "stream": lambda counter: _of_stream(counter, counter.stream_id),
    "channel": lambda counter: counter.channel if counter.type_id in _CHANNEL_TYPES else None,
}
"""The text in which each filter searches. If the text is ``None``, the filter does not apply, and the counter
passes."""

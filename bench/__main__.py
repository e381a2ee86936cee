"""Command line of the benchmarks.

`run` measures parts or groups and prints tables. A whole part also writes its raw results to `bench/results`.
`report` writes the tables of `docs/performance.md` from the raw results.
`decide` measures one line until it has a verdict, or compares this build with another one.
`build` builds our programs and prints the environment that contains them.
`selftest` plants a slowness and counts how often it is found.
"""

import argparse
import datetime
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from bench import PROJECT, decide, environments, report, results, selftest
from bench.evaluation import evaluate
from bench.lines import PARTS
from bench.measure import machine
from bench.results import Results
from bench.runner import Limits, measure_group

QUICK_SECONDS = 0.2
DECIDE_MINUTES = 10
PLANTED_LINES = ("native, message by message, 32 B", "native round trip, p50", "UDP 32 B, CPU seconds per million")
"""Lines of the self-test: a rate, a latency and a CPU time."""


def main():
    chosen = _arguments()
    try:
        with environments.using(chosen.build):
            sys.exit(chosen.command(chosen))
    except decide.LineError as error:
        sys.exit(str(error))


def _arguments():
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    names = [name for part in PARTS.values() for name in (part.name, *part.groups)]
    run = _command(commands, _run)
    run.add_argument("names", nargs="*", metavar="PART|GROUP", help=f"any of {', '.join(names)} (default: all)")
    run.add_argument("--quick", action="store_true", help="one short round, which only shows that all programs work")
    run.add_argument(
        "--results", type=Path, help="directory of the raw results (default for a whole part: bench/results)"
    )
    one = _command(commands, _decide)
    one.add_argument("line", metavar="LINE", help="text of the line, or a part of it")
    one.add_argument("--against", type=Path, metavar="DIR", help="environment of another build, made by `build` there")
    test = _command(commands, _selftest)
    test.add_argument("--tries", type=int, default=10, help="tries of each line and slowness (default: 10)")
    for measuring in (run, one, test):
        measuring.add_argument("--seconds", type=float, help="seconds of a run that count (default: set by the part)")
        measuring.add_argument("--minutes", type=float, help="longest time of a part, a line or a try")
        measuring.add_argument(
            "--busy", action="store_true", help="count runs even if other programs use the processors"
        )
        measuring.add_argument(
            "--build", type=Path, metavar="DIR", help="environment with our programs (default: built)"
        )
    _command(commands, _report)
    _command(commands, _build)
    return parser.parse_args()


def _command(commands, function):
    name = function.__name__.removeprefix("_")
    added = commands.add_parser(name, description=function.__doc__, help=function.__doc__)
    # `report` needs no build.
    added.set_defaults(command=function, build=None)
    return added


def _run(chosen):
    """Measures parts or groups."""
    known = {name for part in PARTS.values() for name in (part.name, *part.groups)}
    if unknown := set(chosen.names) - known:
        return f"unknown: {', '.join(sorted(unknown))}"
    lacking = []
    for part in PARTS.values():
        names = [name for name in part.groups if not chosen.names or {name, part.name} & set(chosen.names)]
        if names and (reason := part.missing()):
            print(f"{part.name}: not measured, {reason}", file=sys.stderr)
        elif names:
            lacking += _run_part(part, names, chosen)
    return f"no run counts: {'; '.join(lacking)}" if lacking else None


def _run_part(part, names, chosen):
    """Measures groups of a part and prints their tables. Returns the cells of which no run counts."""
    is_whole = len(names) == len(part.groups) and not (chosen.quick or chosen.busy)
    directory = chosen.results or (results.DIRECTORY if is_whole else None)
    limits = _limits(chosen, part, part.minutes * len(names) / len(part.groups))
    if chosen.quick:
        limits = replace(limits, seconds=QUICK_SECONDS, rounds=1, may_be_busy=True)
    file = directory / f"{part.name}.jsonl" if directory else None
    found = Results(_heading(part, limits), file=file)
    groups = {name: part.group(name) for name in names}
    end = time.monotonic() + limits.minutes * 60
    for left, group in zip(range(len(groups), 0, -1), groups.values(), strict=True):
        # A group that ends early leaves its time to the others.
        measure_group(found, group, replace(limits, minutes=(end - time.monotonic()) / 60 / left))
    print(report.heading(found), *report.tables(found, groups), sep="\n\n")
    if directory == results.DIRECTORY:
        report.write(PARTS.values())
    cells = [(name, cell.name) for name, group in groups.items() for cell in group.cells]
    return [", ".join(names) for names in cells if not found.of_cell(*names)]


def _limits(chosen, part, minutes):
    return Limits(chosen.seconds or part.seconds, chosen.minutes or minutes, may_be_busy=chosen.busy)


def _heading(part, limits):
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        **machine(),
        "versions": ", ".join(part.versions()),
        "seconds": limits.seconds,
        "may_be_busy": limits.may_be_busy,
    }


def _commit():
    """Returns the commit of this checkout. The files that a measurement writes do not count as changes."""
    written = (f":!{file.relative_to(PROJECT)}" for file in (results.DIRECTORY, report.DOCUMENT))
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", *written)
    return _git("rev-parse", "--short", "HEAD") + (" with changes" if changes else "")


def _git(*words):
    command = ("git", "-C", PROJECT, *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _decide(chosen):
    """Measures one line until it has a verdict."""
    part, name, goal = decide.find_line(PARTS.values(), chosen.line)
    if reason := part.missing():
        return f"not measured, {reason}"
    group = decide.line_alone(part, name, goal)
    if chosen.against:
        group = decide.against(part, name, goal, chosen.against)
    limits = _limits(chosen, part, DECIDE_MINUTES)
    found = Results(_heading(part, limits))
    measure_group(found, group, limits)
    lines = [line for line in [evaluate(found, name, goal) for goal in group.goals] if line]
    print(report.heading(found), report.line_table(lines), report.figure_table(found, {name: group}), sep="\n\n")
    return None if lines else "no run counts"


def _selftest(chosen):
    """Plants a slowness and counts how often it is found."""
    lines = []
    for text in PLANTED_LINES:
        part, name, goal = decide.find_line(PARTS.values(), text)
        lines.append((part.group(name).cell(goal.ours), goal))
    for found in selftest.selftest(lines, chosen.tries, _limits(chosen, part, DECIDE_MINUTES)):
        print(found, flush=True)


def _report(_):
    """Writes the tables of docs/performance.md from the raw results."""
    report.write(PARTS.values())


def _build(_):
    """Builds our programs, and prints the environment that contains them."""
    print(environments.made_build())


if __name__ == "__main__":
    # With the default action, the drivers and programs of the current run would go on.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    main()

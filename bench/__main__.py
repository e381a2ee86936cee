"""`python -m bench [--quick] [PART|GROUP...]`: measures and prints tables. A full run writes `docs/performance.md`."""

import argparse
import sys
from pathlib import Path

from bench import environments, report
from bench.lines import PARTS
from bench.measure import machine
from bench.runner import Results, measure

QUICK_RUNS, QUICK_SECONDS = 1, 0.4


def main():
    chosen = _arguments()
    environments.programs = chosen.programs
    voids = []
    for part in PARTS.values():
        names = [name for name in part.groups if not chosen.names or {name, part.name} & set(chosen.names)]
        if names:
            voids += _measure(part, names, chosen)
    if voids:
        sys.exit(f"not measured in some round: {', '.join(sorted(set(voids)))}")


def _arguments():
    names = [name for part in PARTS.values() for name in (part.name, *part.groups)]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PART|GROUP", help=f"any of {', '.join(names)} (default: all)")
    parser.add_argument(
        "--quick", action="store_true", help="one short run of each cell, which only shows that all programs work"
    )
    parser.add_argument("--runs", type=int, help="number of rounds of each group (default: set by the part)")
    parser.add_argument("--seconds", type=float, help="seconds for which a publisher sends (default: set by the part)")
    parser.add_argument("--programs", type=Path, help="directory that already contains our driver and native program")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return chosen


def _measure(part, names, chosen):
    if lacking := part.missing():
        print(f"{part.name}: not measured, {lacking}", file=sys.stderr)
        return []
    results = Results(
        groups=[part.groups[name]() for name in names],
        runs=chosen.runs or (QUICK_RUNS if chosen.quick else part.runs),
        seconds=chosen.seconds or (QUICK_SECONDS if chosen.quick else part.seconds),
        versions=", ".join(part.versions()),
        machine=machine(),
    )
    measure(results)
    print(report.heading(results), report.table(results), sep="\n\n")
    is_full = not (chosen.quick or results.voids) and results.runs >= part.runs and results.seconds >= part.seconds
    if is_full and len(names) == len(part.groups):
        report.write(part.name, results)
    return results.voids


if __name__ == "__main__":
    main()

"""`python -m bench [--quick] [GROUP...]`: measures, prints the table, and in full keeps it in `docs/performance.md`."""

import argparse

from bench import environments, report
from bench.lines import GROUPS
from bench.measure import machine
from bench.runner import Results, measure
from interop import toolchain

FULL_RUNS, FULL_SECONDS = 7, 2.0
QUICK_RUNS, QUICK_SECONDS = 1, 0.3


def main():
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of: {', '.join(GROUPS)} (all)")
    parser.add_argument("--quick", action="store_true", help="one short run of each, to see that everything works")
    parser.add_argument("--runs", type=int, help=f"rounds of each group ({FULL_RUNS})")
    parser.add_argument("--seconds", type=float, help=f"time that a publisher sends ({FULL_SECONDS})")
    chosen = parser.parse_args()
    unknown = set(chosen.groups) - set(GROUPS)
    if unknown:
        parser.error(f"unknown group: {', '.join(sorted(unknown))}")
    results = Results(
        groups=[make() for name, make in GROUPS.items() if name in (chosen.groups or GROUPS)],
        runs=chosen.runs or (QUICK_RUNS if chosen.quick else FULL_RUNS),
        seconds=chosen.seconds or (QUICK_SECONDS if chosen.quick else FULL_SECONDS),
        versions=", ".join((*environments.PEER_PACKAGES[:-1], toolchain.JAR)),
        machine=machine(),
    )
    measure(results)
    print(report.heading(results), report.table(results), sep="\n\n")
    is_full = not (chosen.groups or chosen.quick) and results.runs >= FULL_RUNS and results.seconds >= FULL_SECONDS
    if is_full:
        report.write(results)


if __name__ == "__main__":
    main()

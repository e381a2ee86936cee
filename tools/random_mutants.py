#!/usr/bin/env python3
"""Changes single expressions and statements at random, and reports the changes that no test finds.

usage: random_mutants.py [--count 100] [--seed N] [--crates memory,client]

`cargo mutants` makes the changes. The sample has the same number of mutants of each crate. Each mutant is tested with
the tests of its crate. If these pass, the native module is built with the mutant and the quick Python tests run. A
mutant that survives both needs a test, or is the same program. A test that runs out of time counts as found only if
the mutant has used the processor all the time: it loops. A mutant that waits would look like a slow machine.

The work is done in a copy of the last commit below `target`. Without `--seed`, each run has other mutants.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "target" / "cargo-mutants"
COPY = PLACE / "copy"
LEFT_OUT = {"aeron-bench", "aeron-simulator"}
"""Crates that only test or measure others."""
TIMEOUT_S = 900
"""Time limit of the tests of a crate: three times what the slowest crate needs on two busy cores."""
LOOPS = 0.8
"""Share of the time limit in which a mutant that loops uses the processor."""
LARGEST_SHARE = 0.08
"""If a larger share of the mutants survives, the exit status is 1."""


Mutant = dict[str, Any]
"""A change, as `cargo mutants --list --json` describes it."""


def main() -> int:
    """Tests a sample of mutants. Returns 0 if few enough survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--crates", default="")
    options = parser.parse_args()
    copy_sources()
    sample = choose(options.count, options.seed, {f"aeron-{name}" for name in options.crates.split(",") if name})
    print(f"{len(sample)} mutants, --seed {options.seed}", flush=True)
    results: Counter[str] = Counter()
    for mutant in sample:
        result = test(mutant)
        results[result] += 1
        print(f"{result:9} {mutant['package']}: {mutant['name']}", flush=True)
        if result in ("SURVIVED", "WAITED"):
            print(diff_of(), flush=True)
    tested = results.total() - results["UNVIABLE"]
    share = (results["SURVIVED"] + results["WAITED"]) / max(1, tested)
    print(", ".join(f"{count} {result}" for result, count in sorted(results.items())))
    print(f"{share:.1%} of {tested} mutants survived; at most {LARGEST_SHARE:.0%} should")
    return int(share > LARGEST_SHARE)


def copy_sources() -> None:
    """Makes a copy of the last commit. The builds of an earlier copy are used again."""
    if COPY.exists():
        run("git", "-C", COPY, "checkout", "--quiet", "--force", "--detach", head())
    else:
        PLACE.mkdir(parents=True, exist_ok=True)
        run("git", "clone", "--quiet", "--shared", ROOT, COPY)
        run("git", "-C", COPY, "checkout", "--quiet", "--detach", head())


def head() -> str:
    """Returns the last commit."""
    return run("git", "-C", ROOT, "rev-parse", "HEAD").stdout.strip()


def choose(count: int, seed: int, crates: set[str]) -> list[Mutant]:
    """Returns the same number of mutants of each crate, in a random order within a crate."""
    listed = json.loads(run("cargo", "mutants", "--workspace", "--list", "--json", cwd=COPY).stdout)
    by_crate: dict[str, list[Mutant]] = {}
    for mutant in listed:
        package = mutant["package"]
        if package not in LEFT_OUT and (not crates or package in crates):
            by_crate.setdefault(package, []).append(mutant)
    chance = random.Random(seed)
    share = -(-count // max(1, len(by_crate)))
    chosen = [
        mutant for _, mutants in sorted(by_crate.items()) for mutant in chance.sample(mutants, min(share, len(mutants)))
    ]
    return chosen[:count] if len(chosen) <= count else sorted(chance.sample(chosen, count), key=chosen.index)


def test(mutant: Mutant) -> str:
    """Returns `FOUND`, `FOUND (Python)`, `LOOPED`, `WAITED`, `UNVIABLE` or `SURVIVED`."""
    shutil.rmtree(PLACE / "mutants.out", ignore_errors=True)
    before, begin = processor_s(), time.monotonic()
    run(
        *("cargo", "mutants", "--in-place", "--baseline", "skip", "--timeout", TIMEOUT_S, "--build-timeout", TIMEOUT_S),
        *("--package", mutant["package"], "--file", mutant["file"], "--re", f"^{re.escape(mutant['name'])}$"),
        *("--output", PLACE, "--no-shuffle", "--colors", "never"),
        cwd=COPY,
        check=False,
    )
    busy = (processor_s() - before) / (time.monotonic() - begin)
    outcomes = json.loads((PLACE / "mutants.out" / "outcomes.json").read_text())
    if outcomes["caught"]:
        return "FOUND"
    if outcomes["timeout"]:
        return "LOOPED" if busy > LOOPS else "WAITED"
    if not outcomes["missed"]:
        return "UNVIABLE"
    return "FOUND (Python)" if is_found_by_python() else "SURVIVED"


def is_found_by_python() -> bool:
    """Runs the quick Python tests with the module of the copy, which gets the mutant for this time."""
    patch = PLACE / "mutant.diff"
    patch.write_text(diff_of())
    run("git", "-C", COPY, "apply", patch)
    try:
        return run("make", "check-python", "PYTEST_ADDOPTS=-x", cwd=COPY, check=False).returncode != 0
    finally:
        run("git", "-C", COPY, "checkout", "--quiet", "--", ".")


def diff_of() -> str:
    """Returns the change of the last mutant."""
    return "\n".join(path.read_text() for path in sorted((PLACE / "mutants.out" / "diff").glob("*.diff")))


def processor_s() -> float:
    """Returns the processor time of all ended child processes, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*command: object, cwd: Path = ROOT, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a command. Its build directory is that of the copy, even if a variable names another one."""
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    words = [str(word) for word in command]
    result = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if check and result.returncode:
        sys.exit(f"{' '.join(words)}: exit status {result.returncode}\n{result.stderr}")
    return result


if __name__ == "__main__":
    sys.exit(main())

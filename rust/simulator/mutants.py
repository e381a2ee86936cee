#!/usr/bin/env python3
"""Checks that the simulator finds defects: for each mutant in mutants.toml, the schedule of a seed must have a finding.

usage: mutants.py [--find LIMIT [--minutes MINUTES]]

The script builds a copy of memory, driver, client and archive that contains all mutants. An environment variable
switches one mutant on, so one build is enough. Mutants of the archive are tested by schedules with archives, unless the
mutant names another kind of schedules. Schedules of drivers are of the second edition, unless the mutant names another
one.

After a change of the schedules, the seeds of some mutants find nothing any more. For each of these, and for each mutant
without a seed, `--find` searches for the first seed below LIMIT with a schedule that finds the mutant, and writes the
seed into mutants.toml. The search ends after MINUTES.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
COPY = TARGET / "copy"
MUTANTS = ROOT / "rust/simulator/mutants.toml"
SWITCH = """
/// Returns whether this mutant is switched on.
pub(crate) fn is_mutant(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("MUTANT").map_or(0, |text| text.parse().expect("a number"))) == number
}
"""


def main() -> int:
    """Tests all mutants. Returns 0 if each mutant was found and the schedules have no finding without a mutant."""
    parser = argparse.ArgumentParser(description="Checks that the simulator finds the mutants.")
    parser.add_argument("--find", type=int, metavar="LIMIT", help="search for missing seeds below this one")
    parser.add_argument("--minutes", type=float, default=60, help="end the search after this time")
    options = parser.parse_args()
    mutants = tomllib.loads(MUTANTS.read_text())["mutant"]
    binary = build(mutants)
    end = time.monotonic() + options.minutes * 60
    missed = 0
    for number, mutant in enumerate(mutants, start=1):
        seed, finding = mutant.get("seed"), None
        if seed is not None:
            finding = findings(binary, number, mutant, str(seed)).get(seed)
        if finding is None and options.find:
            seed, finding = first_finding(binary, number, mutant, options.find, end)
            if seed is not None:
                write_seed(number, seed)
        missed += finding is None
        print(f"{number:2} seed {seed}: {mutant['bug']}: {finding or 'NOT FOUND'}", flush=True)
    kinds: list[dict] = [
        {"edition": "third"},
        {"crate": "archive"},
        {"schedules": "publishers"},
        {"schedules": "followers"},
    ]
    clean = {seed: text for kind in kinds for seed, text in findings(binary, 0, kind, "0..16").items()}
    print(f"{len(mutants) - missed} of {len(mutants)} mutants found; without a mutant: {clean or 'nothing'}")
    return int(missed > 0 or bool(clean))


def build(mutants: list[dict]) -> Path:
    """Builds the simulator with a driver and an archive that have all mutants. Returns the path of the program."""
    copy_sources(COPY)
    for number, mutant in enumerate(mutants, start=1):
        path = COPY / "rust" / mutant.get("crate", "driver") / "src" / mutant["file"]
        text = path.read_text()
        before = mutant.get("before", "")
        place = before + mutant["from"]
        if text.count(place) != 1:
            sys.exit(f"{path}: {place!r} occurs {text.count(place)} times")
        switched = f"(if crate::is_mutant({number}) {{ {mutant['to']} }} else {{ {mutant['from']} }})"
        path.write_text(text.replace(place, before + switched))
    for crate in ("memory", "driver", "client", "archive"):
        with (COPY / "rust" / crate / "src/lib.rs").open("a") as lib:
            lib.write(SWITCH)
    share_dependencies(TARGET)
    # Build with the features of `make sim`. Mutants cause warnings, which are shown only if the build fails.
    command = ["cargo", "build", "--quiet", "--workspace", "--bin", "aeron-simulator", "--target-dir", str(TARGET)]
    run = subprocess.run(command, cwd=COPY, check=False, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return TARGET / "debug/aeron-simulator"


def share_dependencies(target: Path) -> None:
    """Links the builds of `make sim` into a new target directory, so that cargo does not build dependencies again."""
    built = TARGET.parent / "debug"
    if target.joinpath("debug/deps").exists() or not built.exists():
        return
    for folder in (".fingerprint", "build", "deps"):
        link = os.link if folder == "deps" else shutil.copy2
        shutil.copytree(built / folder, target / "debug" / folder, copy_function=link, symlinks=True)


def copy_sources(copy: Path) -> None:
    """Copies what the workspace is built from. Replaces an earlier copy."""
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("target", "node_modules", ".venv")
    for folder in ("rust", "bench"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, copy / name)


def first_finding(binary: Path, number: int, mutant: dict, limit: int, until: float) -> tuple[int | None, str | None]:
    """Returns the first seed below a limit with a schedule that finds a mutant, and the finding.

    Begins no further search after the time `until` of the monotonic clock.
    """
    begin, end = 0, 8
    while begin < limit and time.monotonic() < until:
        found = findings(binary, number, mutant, f"{begin}..{min(end, limit)}")
        if found:
            return min(found.items())
        begin, end = end, 2 * end
    return None, None


def write_seed(number: int, seed: int) -> None:
    """Writes the seed of a mutant into mutants.toml."""
    first, *tables = MUTANTS.read_text().split("[[mutant]]\n")
    table = re.sub(r"^seed = \d+\n", "", tables[number - 1], flags=re.MULTILINE)
    lines = table.split("\n")
    last = max(at for at, line in enumerate(lines) if line and not line.startswith("#"))
    lines.insert(last + 1, f"seed = {seed}")
    tables[number - 1] = "\n".join(lines)
    MUTANTS.write_text("[[mutant]]\n".join([first, *tables]))


def findings(binary: Path, number: int, mutant: dict, seeds: str) -> dict[int, str]:
    """Runs the schedules of some seeds. Returns their findings by seed. A panic is a finding too."""
    kind = mutant.get("schedules", mutant.get("crate", "drivers"))
    edition = mutant.get("edition", "second")
    options = [f"--{kind}"] if kind != "drivers" else []
    if kind == "drivers" and edition != "third":
        options.append(f"--{edition}-edition")
    run = subprocess.run(
        [binary, *options, seeds], env=os.environ | {"MUTANT": str(number)}, capture_output=True, text=True, check=False
    )
    found = {
        int(seed): text for seed, text in re.findall(r"^seed (\d+)(?: \(--[\w-]+\))?: (.*)$", run.stdout, re.MULTILINE)
    }
    if run.returncode == 0 or found:
        return found
    if ".." not in seeds:
        return {int(seeds): (run.stderr.strip().splitlines() or [f"status {run.returncode}"])[0]}
    # A panic ends the program. It does not say with which seed.
    begin, end = map(int, seeds.split(".."))
    single = (findings(binary, number, mutant, str(seed)) for seed in range(begin, end))
    unrepeated = {begin: f"status {run.returncode} with the seeds {seeds}, but with no single one of them"}
    return next(filter(None, single), unrepeated)


if __name__ == "__main__":
    sys.exit(main())

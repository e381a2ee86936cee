#!/usr/bin/env python3
"""Checks that the simulator finds defects: for each mutant in mutants.toml, the schedule of a seed must have a finding.

usage: mutants.py [--find LIMIT]

The script builds a copy of memory, driver, client and archive that contains all mutants. An environment variable
switches one mutant on, so one build is enough. Mutants of the archive are tested by schedules with archives, unless the
mutant names another kind of schedules. For each mutant without a seed, `--find` searches for the first seed below LIMIT
with a schedule that finds the mutant. Schedules of drivers are of the second edition, unless the mutant names another
one.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
COPY = TARGET / "copy"
SWITCH = """
/// Returns whether this mutant is switched on.
pub(crate) fn is_mutant(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("MUTANT").map_or(0, |text| text.parse().expect("a number"))) == number
}
"""


def main() -> int:
    """Tests all mutants. Returns 0 if each mutant was found and the schedules have no finding without a mutant."""
    mutants = tomllib.loads((ROOT / "rust/simulator/mutants.toml").read_text())["mutant"]
    binary = build(mutants)
    limit = int(sys.argv[2]) if sys.argv[1:2] == ["--find"] else None
    missed = 0
    for number, mutant in enumerate(mutants, start=1):
        if limit is None:
            finding = findings(binary, number, mutant, str(mutant["seed"])).get(mutant["seed"])
        elif "seed" in mutant:
            continue
        else:
            mutant["seed"], finding = first_finding(binary, number, mutant, limit)
        missed += finding is None
        print(f"{number:2} seed {mutant['seed']}: {mutant['bug']}: {finding or 'NOT FOUND'}", flush=True)
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
    command = ["cargo", "build", "--quiet", "-p", "aeron-simulator", "--target-dir", str(TARGET)]
    subprocess.run(command, cwd=COPY, check=True, env=os.environ | {"RUSTFLAGS": "-A warnings"})
    return TARGET / "debug/aeron-simulator"


def copy_sources(copy: Path) -> None:
    """Copies what the workspace is built from. Replaces an earlier copy."""
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("target", "node_modules", ".venv")
    for folder in ("rust", "bench"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, copy / name)


def first_finding(binary: Path, number: int, mutant: dict, limit: int) -> tuple[int | None, str | None]:
    """Returns the first seed below a limit with a schedule that finds a mutant, and the finding."""
    begin, end = 0, 8
    while begin < limit:
        found = findings(binary, number, mutant, f"{begin}..{min(end, limit)}")
        if found:
            return min(found.items())
        begin, end = end, 2 * end
    return None, None


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

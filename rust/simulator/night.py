"""Runs schedules of new seeds for hours. Usage: `python rust/simulator/night.py HOURS` (`make sim-night HOURS=8`).

The seeds of a day begin at the number of the day, such as 20261128, times ten million. A second run on the same day
continues after the first one: `.cache/sim-night.json` has the next seed. Each finding is a line of
`target/sim-night.txt` and of the output. The exit status is 1 if there was a finding. A seed that found a bug belongs
into `KEPT_SEEDS`.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from mutants import ROOT, findings

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
STATE = ROOT / ".cache/sim-night.json"
FOUND = TARGET / "sim-night.txt"
SEEDS_PER_DAY = 10_000_000
# Schedules of a round. With ten schedules of drivers for one with an archive, each kind takes about half of the time.
ROUND = {"drivers": 1_000, "archive": 34, "publishers": 33, "followers": 33}


def main() -> int:
    """Runs one round, and more until the time is over. Returns 1 if a schedule had a finding."""
    end = time.monotonic() + float(sys.argv[1]) * 3600
    binary = build()
    first = first_seed(datetime.date.today())
    schedules, found = 0, {}
    while True:
        for kind, count in ROUND.items():
            mutant = {"edition": "third"} if kind == "drivers" else {"schedules": kind}
            new = findings(binary, 0, mutant, f"{first}..{first + count}")
            for seed, text in new.items():
                report(f"{kind} seed {seed}: {text}")
            found |= {(kind, seed): text for seed, text in new.items()}
            schedules += count
        first += max(ROUND.values())
        STATE.parent.mkdir(exist_ok=True)
        STATE.write_text(json.dumps({"next_seed": first}))
        print(f"{schedules} schedules, next seed {first}, {len(found)} findings", flush=True)
        if time.monotonic() >= end:
            return int(bool(found))


def first_seed(today: datetime.date) -> int:
    """Returns the first seed that no earlier run has used."""
    of_day = int(f"{today:%Y%m%d}") * SEEDS_PER_DAY
    remembered = json.loads(STATE.read_text())["next_seed"] if STATE.exists() else 0
    return max(of_day, remembered)


def build() -> Path:
    """Builds the simulator with optimisation, assertions and checks of overflows. Returns the path of the program."""
    command = ["cargo", "build", "--quiet", "--profile", "night", "-p", "aeron-simulator"]
    subprocess.run(command, cwd=ROOT, check=True)
    return TARGET / "night/aeron-simulator"


def report(line: str) -> None:
    """Prints a finding, and appends it to the file of findings."""
    print(line, flush=True)
    with FOUND.open("a") as file:
        file.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())

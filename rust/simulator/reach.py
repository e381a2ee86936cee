#!/usr/bin/env python3
"""Reports the functions of driver, client and archive that no schedule of the default seeds enters.

usage: reach.py SCHEDULES...    for example: reach.py "--all-rows 0..2000" "--archive 0..300"

The script builds the simulator, the Rust tests of the three crates and the native module with the coverage counters of
the compiler. It runs the schedules, these tests, and the Python tests without the real Aeron and Spark. It prints the
functions that only Rust or only Python tests enter. A function that nothing enters must be in reach.toml, with the
tests that enter it or the reason why no test needs to. An entry without such a function is an error.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target/reach"
ENTRIES = Path(__file__).with_name("reach.toml")
CRATES = ("driver", "client", "archive")
FUNCTION = re.compile(r"\bfn (\w+)")


def main() -> int:
    """Runs schedules and tests. Returns 0 if each function is entered or explained, and each entry is needed."""
    parser = argparse.ArgumentParser(description="Reports functions that no schedule enters.")
    parser.add_argument("schedules", nargs="+", help="options of one run of the simulator")
    schedules = parser.parse_args().schedules
    entries = tomllib.loads(ENTRIES.read_text())["left_out"]
    for entry in entries:
        check(entry)
    functions = count_schedules(schedules)
    entered = {name: "schedules" for name, count in functions.items() if count}
    for who, count in (("only Rust tests", count_rust_tests), ("only Python tests", count_python_tests)):
        found = count()
        functions |= found
        entered |= {name: who for name in sorted(found) if found[name] and name not in entered}
    for name, who in sorted(entered.items()):
        if who != "schedules":
            print(f"{who} enter {name}")
    unreached = sorted(functions.keys() - entered.keys())
    unexplained = [name for name in unreached if not any(matches(entry, name) for entry in entries)]
    for name in unexplained:
        print(f"nothing enters {name}, and {ENTRIES.name} does not say why")
    stale = [entry["functions"] for entry in entries if not any(matches(entry, name) for name in unreached)]
    for patterns in stale:
        print(f"{ENTRIES.name} explains no function with {patterns}")
    numbers = ", ".join(f"{count} by {who}" for who, count in Counter(entered.values()).items())
    explained = len(unreached) - len(unexplained)
    print(f"{len(functions)} functions, entered {numbers}; {explained} are explained, {len(unexplained)} are not")
    return int(bool(unexplained or stale))


def check(entry: dict) -> None:
    """Ends the program if the entry names neither existing tests nor a reason."""
    tests = entry.get("tests", [])
    missing = [test for test in tests if not (ROOT / test).exists()]
    if missing or not (tests or entry.get("reason")):
        sys.exit(f"{ENTRIES.name}: {entry['functions']}: tests that do not exist: {missing or 'it names none'}")


def matches(entry: dict, name: str) -> bool:
    """Returns whether an entry explains a function. `name` is `crate/path::function`."""
    return any(fnmatchcase(name, pattern) for pattern in entry["functions"])


def count_schedules(schedules: list[str]) -> dict[str, int]:
    """Runs the schedules. Returns how often they entered each function."""
    cargo("build", "--quiet", "-p", "aeron-simulator")
    binary = TARGET / "debug/aeron-simulator"
    profiles = new_folder("schedules")
    for options in schedules:
        subprocess.run([binary, *options.split()], env=writing_to(profiles), check=True)
    return counts_of(binary, profiles)


def count_rust_tests() -> dict[str, int]:
    """Runs the Rust tests of the crates. Returns how often they entered each function."""
    crates = [text for crate in CRATES for text in ("-p", f"aeron-{crate}")]
    built = cargo("test", "--quiet", "--no-run", "--message-format=json", *crates)
    counts: dict[str, int] = {}
    for number, message in enumerate(json.loads(line) for line in built.splitlines() if line.startswith("{")):
        if message.get("executable") is None or not message["profile"]["test"]:
            continue
        # The same function has other counters in another program, so each program has a folder for its counts.
        profiles = new_folder(f"tests/{number}")
        directory = Path(message["manifest_path"]).parent
        subprocess.run([message["executable"], "-q"], cwd=directory, env=writing_to(profiles), check=True)
        add(counts, counts_of(Path(message["executable"]), profiles))
    return counts


def count_python_tests() -> dict[str, int]:
    """Runs the Python tests without the real Aeron and Spark. Returns how often they entered each function."""
    cargo("build", "--quiet", "-p", "aeron-python", "--features", "test-hooks")
    package = new_folder("python") / "package"
    shutil.copytree(ROOT / "python", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    module = package / "aeron/_aeron.abi3.so"
    shutil.copy(TARGET / "debug/lib_aeron.so", module)
    profiles = new_folder("python/counts")
    environment = writing_to(profiles) | {"PYTHONPATH": str(package)}
    marks = "not interop and not spark and not slow"
    command = [ROOT / ".venv/bin/python", "-m", "pytest", "-q", "-n", "2", "-m", marks, "tests"]
    # A test that fails here fails in `make test` too, where it is reported.
    subprocess.run(command, cwd=ROOT, env=environment, check=False)
    return counts_of(module, profiles)


def add(counts: dict[str, int], more: dict[str, int]) -> None:
    """Adds counts to counts."""
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def writing_to(profiles: Path) -> dict[str, str]:
    """Returns an environment in which processes add their counts to four files in a folder."""
    return os.environ | {"LLVM_PROFILE_FILE": str(profiles / "%4m.profraw")}


def cargo(*arguments: str) -> str:
    """Runs cargo with coverage counters. Returns its output."""
    # Build scripts write counts too, which nobody reads.
    environment = writing_to(TARGET / "build") | {
        "CARGO_TARGET_DIR": str(TARGET),
        "RUSTFLAGS": "-C instrument-coverage",
    }
    run = subprocess.run(
        ["cargo", *arguments], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return run.stdout


def new_folder(name: str) -> Path:
    """Returns an empty folder for counts."""
    folder = TARGET / "profiles" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def counts_of(program: Path, profiles: Path) -> dict[str, int]:
    """Returns how often each function of a program was entered, by name. Its processes wrote to `profiles`."""
    merged = profiles / "merged.profdata"
    # A killed process may leave an incomplete file, which is left out.
    merge = [llvm("llvm-profdata"), "merge", "--failure-mode=all", "-o", merged, *profiles.glob("*.profraw")]
    subprocess.run(merge, check=True)
    command = [llvm("llvm-cov"), "export", "--format=lcov", "--instr-profile", merged, program]
    exported = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    counts: dict[str, int] = {}
    names: dict[str, str | None] = {}
    path = Path()
    for line in exported.stdout.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            path = Path(rest)
        elif kind == "FN":
            first_line, symbol = rest.split(",", 1)
            names[symbol] = name_of(path, int(first_line))
        elif kind == "FNDA":
            count, symbol = rest.split(",", 1)
            name = names[symbol]
            if name is not None:
                counts[name] = counts.get(name, 0) + int(count)
    return counts


def name_of(path: Path, line: int) -> str | None:
    """Returns the name of the function that begins at a line; `None` for closures and for functions of others."""
    if not path.is_absolute():
        path = ROOT / path
    if not path.is_relative_to(ROOT / "rust"):
        return None
    crate, folder, *rest = path.relative_to(ROOT / "rust").parts
    if crate not in CRATES or folder != "src":
        return None
    found = FUNCTION.search(path.read_text().splitlines()[line - 1])
    if found is None:
        return None
    return f"{crate}/{'/'.join(rest)}::{found[1]}"


def llvm(tool: str) -> Path:
    """Returns the path of a tool of the compiler's LLVM, which reads the counts of this compiler."""
    sysroot = Path(
        subprocess.run(["rustc", "--print", "sysroot"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    )
    found = next(sysroot.glob(f"lib/rustlib/*/bin/{tool}"), None)
    if found is None:
        sys.exit(f"{tool} is missing. Run: rustup component add llvm-tools")
    return found


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Changes single expressions and statements at random, and reports the changes that no test finds.

usage: random_mutants.py [--count 100] [--seed N] [--crates memory,client]

`cargo mutants` lists the possible changes. The sample has the same number of mutants of each crate, and at most one of
each function. A copy of the last commit gets all of them: an environment variable switches one mutant on, so one build
is enough. Each mutant is tested with the tests of its crate, then with the other Rust tests, then with the quick Python
tests. A mutant that survives needs a test, or is the same program. A test that runs out of time counts as found only if
the mutant has used the processor all the time: it loops. A mutant that waits would look like a slow machine.

Without `--seed`, each run has other mutants.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "target" / "random-mutants"
COPY = PLACE / "copy"
TARGET = PLACE / "target"
LEFT_OUT = {"aeron-bench", "aeron-simulator"}
"""Crates that only test or measure others."""
LEAST_S = 20
"""Time limit of a program of tests, in addition to five times the time that it needs without a mutant."""
PYTHON_S = 1200
"""Time limit of the quick Python tests."""
LOOPS = 0.8
"""Share of the time limit in which a mutant that loops uses the processor."""
FAILED_TEST = re.compile(rb"^[.i]*F", re.MULTILINE)
"""A failed test in the progress that `cargo test -q` prints. If others wait, the program goes on after a failure."""
LARGEST_SHARE = 0.08
"""If a larger share of the mutants survives, the exit status is 1."""
SWITCH = """
/// Returns whether this mutant is switched on.
pub(crate) fn is_mutant(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("MUTANT").map_or(0, |text| text.parse().expect("a number"))) == number
}
"""

Span = tuple[int, int]
"""First offset in a file, and the offset after the last one."""


@dataclass(frozen=True)
class Mutant:
    """A change of a function."""

    number: int
    package: str
    file: str
    name: str
    body: Span
    """The statements of the function."""
    changed: Span
    """The part of the statements that changes."""
    replacement: str


@dataclass(frozen=True)
class TestProgram:
    """A program of Rust tests, and the time that it needs without a mutant."""

    package: str
    path: Path
    directory: Path
    seconds: float


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
    viable, programs = build(sample)
    results: Counter[str] = Counter(UNVIABLE=len(sample) - len(viable))
    for mutant in viable:
        result = test(mutant, programs)
        results[result] += 1
        print(f"{result:9} {mutant.package}: {mutant.name}", flush=True)
    share = (results["SURVIVED"] + results["WAITED"]) / max(1, len(viable))
    print(", ".join(f"{count} {result}" for result, count in sorted(results.items())))
    print(f"{share:.1%} of {len(viable)} mutants survived; at most {LARGEST_SHARE:.0%} should")
    return int(share > LARGEST_SHARE)


def copy_sources() -> None:
    """Makes a copy of the last commit. The builds of an earlier copy are used again."""
    commit = run("git", "-C", ROOT, "rev-parse", "HEAD").stdout.strip()
    if not COPY.exists():
        PLACE.mkdir(parents=True, exist_ok=True)
        run("git", "clone", "--quiet", "--shared", ROOT, COPY)
    run("git", "-C", COPY, "checkout", "--quiet", "--force", "--detach", commit)


def choose(count: int, seed: int, crates: set[str]) -> list[Mutant]:
    """Returns the same number of mutants of each crate, in a random order within a crate."""
    listed = json.loads(run("cargo", "mutants", "--workspace", "--list", "--json", cwd=COPY).stdout)
    bodies = {place_of(each): each["span"] for each in listed if each["genre"] == "FnValue"}
    by_crate: dict[str, list[dict[str, Any]]] = {}
    for each in listed:
        package = each["package"]
        if package not in LEFT_OUT and (not crates or package in crates) and is_switchable(each, bodies):
            by_crate.setdefault(package, []).append(each)
    chance = random.Random(seed)
    share = -(-count // max(1, len(by_crate)))
    chosen: list[Mutant] = []
    for _, mutants in sorted(by_crate.items()):
        taken = 0
        for each in chance.sample(mutants, len(mutants)):
            if taken == share:
                break
            mutant = read(len(chosen) + 1, each, bodies)
            if all(mutant.file != other.file or are_apart(mutant.body, other.body) for other in chosen):
                chosen.append(mutant)
                taken += 1
    return chosen


def place_of(listed: dict[str, Any]) -> str:
    """Returns the file of a mutant and the place of its function."""
    return f"{listed['file']} {listed['function'] and listed['function']['span']}"


def is_switchable(listed: dict[str, Any], bodies: dict[str, Any]) -> bool:
    """Returns whether a mutant can be switched on at run time. A constant function cannot read a variable."""
    if place_of(listed) not in bodies or "/src/bin/" in listed["file"] or listed["file"].endswith("/main.rs"):
        return False
    text = (COPY / listed["file"]).read_text()
    begin, _ = offsets(text, listed["function"]["span"])
    return "const fn" not in text[begin : offsets(text, bodies[place_of(listed)])[0]]


def read(number: int, listed: dict[str, Any], bodies: dict[str, Any]) -> Mutant:
    """Returns a listed mutant with offsets in its file."""
    text = (COPY / listed["file"]).read_text()
    body, changed = offsets(text, bodies[place_of(listed)]), offsets(text, listed["span"])
    return Mutant(number, listed["package"], listed["file"], listed["name"], body, changed, listed["replacement"])


def offsets(text: str, span: dict[str, Any]) -> Span:
    """Returns the offsets of a span, which has lines and columns from 1 on."""
    lines = text.split("\n")

    def offset(place: dict[str, int]) -> int:
        return sum(len(line) + 1 for line in lines[: place["line"] - 1]) + place["column"] - 1

    return offset(span["start"]), offset(span["end"])


def are_apart(one: Span, other: Span) -> bool:
    """Returns whether two parts of a file share nothing."""
    return one[1] <= other[0] or other[1] <= one[0]


def build(sample: list[Mutant]) -> tuple[list[Mutant], list[TestProgram]]:
    """Builds the tests and the native module with all mutants. Returns the mutants that compile, and the tests."""
    # The native module has no Rust tests, so the first command does not build it.
    commands = (
        ("test", "--no-run", "--workspace", "--message-format=json"),
        ("build", "-p", "aeron-python", "--features", "test-hooks", "--message-format=json"),
    )
    viable = sample
    while True:
        lines = write(viable)
        builds = [cargo(*command) for command in commands]
        texts = [line for built in builds for line in built.stdout.splitlines() if line.startswith("{")]
        messages = [json.loads(text) for text in texts]
        refused = {number for message in messages for number in errors_in(message, lines)}
        failed = [built.stderr for built in builds if built.returncode]
        if not failed:
            break
        if not refused:
            sys.exit(failed[0])
        for mutant in viable:
            if mutant.number in refused:
                print(f"UNVIABLE  {mutant.package}: {mutant.name}", flush=True)
        viable = [mutant for mutant in viable if mutant.number not in refused]
    programs = [program for message in messages if (program := measured(message)) is not None]
    return viable, sorted(programs, key=lambda program: program.seconds)


def write(mutants: list[Mutant]) -> dict[int, tuple[str, int, int]]:
    """Writes the mutants into the copy. Returns the file and the first and last line of each mutant."""
    run("git", "-C", COPY, "checkout", "--quiet", "--force", "--", ".")
    lines: dict[int, tuple[str, int, int]] = {}
    for file in sorted({mutant.file for mutant in mutants}):
        text = (COPY / file).read_text()
        for mutant in sorted((each for each in mutants if each.file == file), key=lambda each: -each.body[0]):
            begin, end = mutant.body
            changed = text[begin : mutant.changed[0]] + mutant.replacement + text[mutant.changed[1] : end]
            switched = f"if crate::is_mutant({mutant.number}) {{\n{changed}\n}} else {{\n{text[begin:end]}\n}}"
            text = text[:begin] + switched + text[end:]
        (COPY / file).write_text(text)
        for mutant in mutants:
            if mutant.file == file:
                at = text.index(f"if crate::is_mutant({mutant.number}) {{")
                first = text.count("\n", 0, at) + 1
                length = 2 * text_of(mutant.body, file).count("\n") + mutant.replacement.count("\n") + 6
                lines[mutant.number] = (file, first, first + length)
    for package in {mutant.package for mutant in mutants}:
        with (COPY / "rust" / package.removeprefix("aeron-") / "src/lib.rs").open("a") as lib:
            lib.write(SWITCH)
    return lines


def text_of(span: Span, file: str) -> str:
    """Returns a part of a file without mutants."""
    original = run("git", "-C", COPY, "show", f"HEAD:{file}").stdout
    return original[span[0] : span[1]]


def errors_in(message: dict[str, Any], lines: dict[int, tuple[str, int, int]]) -> set[int]:
    """Returns the mutants in which the compiler has found an error."""
    if message.get("reason") != "compiler-message" or message["message"]["level"] != "error":
        return set()
    return {
        number
        for span in message["message"]["spans"]
        for number, (file, first, last) in lines.items()
        if span["file_name"] == file and first <= span["line_start"] <= last
    }


def measured(message: dict[str, Any]) -> TestProgram | None:
    """Runs a program of tests without a mutant."""
    if message.get("reason") != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
        return None
    directory = Path(message["manifest_path"]).parent
    program = TestProgram(f"aeron-{directory.name}", Path(message["executable"]), directory, 0)
    begin = time.monotonic()
    ended = outcome(0, [program.path, "-q"], directory, 600)
    if ended is not None:
        sys.exit(f"{program.path}: {ended} without a mutant")
    return TestProgram(program.package, program.path, directory, time.monotonic() - begin)


def test(mutant: Mutant, programs: list[TestProgram]) -> str:
    """Returns `FOUND`, `OTHERS` (by the tests of other crates), `PYTHON`, `LOOPED`, `WAITED` or `SURVIVED`."""
    own = [program for program in programs if program.package == mutant.package]
    others = [program for program in programs if program.package != mutant.package]
    for tests, name in ((own, "FOUND"), (others, "OTHERS")):
        for program in tests:
            found = outcome(mutant.number, [program.path, "-q"], program.directory, 5 * program.seconds + LEAST_S)
            if found is not None:
                return name if found == "FAILED" else found
    found = test_with_python(mutant.number)
    return "SURVIVED" if found is None else "PYTHON" if found == "FAILED" else found


def test_with_python(number: int) -> str | None:
    """Runs the quick Python tests with the native module of the copy."""
    package = PLACE / "package"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(COPY / "python", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(TARGET / "debug/lib_aeron.so", package / "aeron/_aeron.abi3.so")
    marks = "not interop and not spark and not slow"
    command = [ROOT / ".venv/bin/python", "-m", "pytest", "-q", "-x", "-n", "2", "-m", marks, "tests"]
    return outcome(number, command, COPY, PYTHON_S, PYTHONPATH=str(package))


def outcome(number: int, command: list[object], directory: Path, limit_s: float, **variables: str) -> str | None:
    """Runs tests with a mutant. Returns `FAILED`, `LOOPED` or `WAITED`; `None` if all tests have passed."""
    before, begin = processor_s(), time.monotonic()
    environment = os.environ | variables | {"MUTANT": str(number)}
    try:
        ended = subprocess.run(
            list(map(str, command)), cwd=directory, env=environment, capture_output=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired as expired:
        if FAILED_TEST.search(expired.stdout or b""):
            return "FAILED"
        busy = (processor_s() - before) / (time.monotonic() - begin)
        return "LOOPED" if busy > LOOPS else "WAITED"
    return None if ended.returncode == 0 else "FAILED"


def processor_s() -> float:
    """Returns the processor time of all ended child processes, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cargo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs cargo in the copy. The first build takes the dependencies from the builds of `make test-rust`."""
    built = ROOT / "target/debug"
    if built.exists() and not TARGET.exists():
        for folder in (".fingerprint", "build", "deps"):
            link = os.link if folder == "deps" else shutil.copy2
            shutil.copytree(built / folder, TARGET / "debug" / folder, copy_function=link, symlinks=True)
    environment = os.environ | {"CARGO_TARGET_DIR": str(TARGET)}
    return subprocess.run(["cargo", *arguments], cwd=COPY, env=environment, capture_output=True, text=True, check=False)


def run(*command: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs a command that must not fail."""
    words = [str(word) for word in command]
    result = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(words)}: exit status {result.returncode}\n{result.stderr}")
    return result


if __name__ == "__main__":
    sys.exit(main())

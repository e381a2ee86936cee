"""Checks that the code and the commands in the README and in docs work.

All Python blocks of a page form one program, which runs in its own process. If a block cannot run, a comment before the
block gives the reason: `<!-- not run: needs a second host -->`. The parser of `aeron` checks command lines without
running them. `tests/spark/test_guide.py` runs the blocks of docs/spark.md. The tests leave out the specification,
because its blocks are quotations and not programs.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import aeron
from commands import run

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ROOT / "docs"
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md"))]
PAGES += [path for path in sorted(DOCUMENTS.rglob("*.md")) if path.parent.name != "spec"]
LANGUAGES = {"", "console", "python", "rust", "sh", "text", "toml", "yaml"}
RUN_ELSEWHERE = {"docs/spark.md", "docs/tutorial-sbe.md"}

# A block that contains a fence has a longer fence itself. So a block ends only at a fence that equals its first one.
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>.*?) -->\n+)?(?P<fence>```+)(?P<language>\w*)\n(?P<code>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_INLINE = re.compile(r"`(aeron [^`]+)`")
# A shell prompt. The address of the host may precede it.
_PROMPT = re.compile(r"^(?:[\d.]+ +)?\$ ")
# Words before a command: `ip netns exec` with the network namespace of the command, and environment variables.
_PREFIX = re.compile(r"^(?:sudo ip netns exec \w+ |[A-Z_]+=\S+ )*")

# These commands are not parsed: the native programs, which do not use click, and `aeron archive` without a command.
_NOT_PARSED = re.compile(r"aeron (?:driver\b|archive run\b|archive$|archive \.\.\.$)")


class Block(NamedTuple):
    """A block of code, and the line of the page on which it begins."""

    mark: str | None
    language: str
    code: str
    line: int


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(found["mark"], found["language"], found["code"], text.count("\n", 0, found.start("code")))
        for found in _BLOCK.finditer(text)
    ]


def is_run(block: Block) -> bool:
    return block.language == "python" and not (block.mark or "").startswith("not run:")


def program_of(page: Path) -> str:
    """Returns the Python blocks of a page as one program. Each block keeps its line number for tracebacks."""
    lines: list[str] = []
    for block in filter(is_run, blocks_of(page)):
        lines += [""] * (block.line - len(lines)) + block.code.splitlines()
    return "\n".join(lines) + "\n"


WITH_PROGRAMS = [page for page in PAGES if name_of(page) not in RUN_ELSEWHERE and any(map(is_run, blocks_of(page)))]


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=name_of)
def test_the_programs_of_a_page_run(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text(program_of(page))
    command = [sys.executable, "-W", "error", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"{page}:\n{done.stdout}{done.stderr}"


def test_at_most_three_python_blocks_are_not_run() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language == "python"]
    assert len(blocks) > 60
    assert len([block for block in blocks if not is_run(block)]) <= 3


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_block_of_a_page_names_its_language(page: Path) -> None:
    text = page.read_text()
    assert {block.language for block in blocks_of(page)} <= LANGUAGES
    # After all blocks are removed, the page must contain no fence.
    assert "```" not in _BLOCK.sub("", text)


def commands_of(page: Path) -> list[str]:
    """Returns the command lines of a page that call `aeron`: after a prompt, in `sh` blocks, and in sentences."""
    lines: list[str] = []
    for block in blocks_of(page):
        for line in block.code.replace("\\\n", " ").splitlines():
            if block.language == "sh" or _PROMPT.match(line):
                lines += re.split(r" {3,}\$ ", _PROMPT.sub("", line))
    text = _BLOCK.sub("", page.read_text())
    lines += [found[1].replace(r"\|", "|") for found in _INLINE.finditer(text)]
    commands = [_PREFIX.sub("", line) for line in lines]
    return [command for command in commands if re.match(r"aeron [a-z]", command) and not _NOT_PARSED.match(command)]


WITH_COMMANDS = [(page, command) for page in PAGES for command in dict.fromkeys(commands_of(page))]


@pytest.mark.parametrize(("page", "command"), WITH_COMMANDS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_command_line_is_valid(page: Path, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[click.Command] = []
    monkeypatch.setattr(click.Command, "invoke", lambda self, context: called.append(self))
    # The parser creates files to which a command writes, so it runs in a temporary directory. Files that a command
    # reads do not exist there, so the parser must not check that they exist.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(click.Path, "convert", lambda self, value, parameter, context: self.coerce_path_result(value))
    words = shlex.split(command.removesuffix("&"), comments=True)[1:]
    result = run(*words)
    assert result.exit_code == 0, f"{page}: {command}\n{result.output}"
    assert not isinstance(called[-1], click.Group) or called[-1].invoke_without_command


def test_the_pages_have_command_lines() -> None:
    assert len(WITH_COMMANDS) > 60


def test_the_files_that_contributing_names_exist() -> None:
    names = re.findall(r"`((?:bench|examples|python|rust|tests)/[^`\s]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(names) > 40
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_the_reference_has_every_public_name() -> None:
    pages = "\n".join(page.read_text() for page in (DOCUMENTS / "reference").glob("*.md"))
    described = re.findall(r"^::: aeron\.(\w+)$", pages, re.MULTILINE)
    assert len(described) == len(set(described))
    mentioned = {*described, *re.findall(r"`aeron\.(\w+)`", pages)}
    exceptions = {name for name in aeron.__all__ if is_exception(getattr(aeron, name))}
    assert sorted({*aeron.__all__} - exceptions - mentioned) == ["__version__"]


def is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)

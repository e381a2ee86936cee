"""Wraps paragraphs of comments at 120 columns.

Usage: `python tools/wrap_comments.py [PATH ...]`. Without a path, it handles all Rust, Python, TOML and YAML files that
git lists, and the Makefile. The script rewrites a file if a comment or docstring has a longer line. Only the paragraph
with the longer line changes. Code, tables, headings, link definitions and directives such as `# noqa` stay as they are.
A second run changes nothing.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

MAX_COLUMNS = 120

# The Makefile, which has no suffix, is wrapped too.
SUFFIXES = (".rs", ".py", ".pyi", ".toml", ".yml")

# Marker and text of a comment that is alone on its line.
RUST_COMMENT = re.compile(r"(\s*(?:///|//!|//))( .*|)$")
HASH_COMMENT = re.compile(r"(\s*@?#+)( .*|)$")
FENCE = re.compile(r"\s*(?:```|~~~)")
# Lines that are never joined or wrapped: table row, heading, quote, doctest, link definition, ruled line, drawing.
FIXED = re.compile(r"\s*(?:\||#|>|\.\.\. |\[[^\]]+\]: \S+$|[-=*_]{3,})|.*[│─]")
DIRECTIVE = re.compile(r"\s*(?:type:|noqa|ruff:|mypy:|pylint:|fmt:|pragma|!)")
ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
# Title of a Google-style section, and one of its entries, such as `timeout: Seconds to wait.`
SECTION = re.compile(r"\s*[A-Z]\w+:$")
ENTRY = re.compile(r"\s+[\w*`.]+(?: \([^)]*\))?:\s")
START = re.compile(r"\s*(?:SAFETY|TODO|FIXME|NOTE):?\b")
# A word that would begin a list item, heading or other markup if it were the first word of a line.
NOT_FIRST = re.compile(r"(?:[-*+>|=#]+|\d+[.)]|```.*|~~~.*|\[[^\]]+\]:|#\S*)$")


@dataclass
class Paragraph:
    """Lines that are wrapped together. `hanging` is the indent of all lines after the first."""

    lines: list[str]
    hanging: str | None = None
    fixed: bool = False

    def wrapped(self, columns: int) -> list[str]:
        """Returns the lines wrapped at `columns`. If no line is longer than `columns`, the lines stay as they are. Long
        words are not split."""
        if self.fixed or all(len(line) <= columns for line in self.lines):
            return self.lines
        first = self.lines[0]
        marker = ITEM.match(first)
        start = marker[0] if marker else re.match(r"\s*", first)[0]  # type: ignore[index] # matches anything
        indent = self.hanging if self.hanging is not None else " " * len(start)
        words: list[str] = []
        for word in " ".join([first[len(start) :], *self.lines[1:]]).split():
            if words and NOT_FIRST.match(word):
                words[-1] += " " + word
            else:
                words.append(word)
        lines = [start + words[0]]
        for word in words[1:]:
            if len(lines[-1]) + 1 + len(word) <= columns:
                lines[-1] += " " + word
            else:
                lines.append(indent + word)
        return lines


@dataclass
class Splitter:
    """Splits the text of a comment into paragraphs."""

    paragraphs: list[Paragraph] = field(default_factory=list)
    open: Paragraph | None = None
    fenced: bool = False

    def split(self, lines: list[str]) -> list[Paragraph]:
        """Returns the paragraphs of a comment. Together they have exactly the given lines."""
        for line in lines:
            self.take(line)
        return self.paragraphs

    def take(self, line: str) -> None:
        """Adds a line to the open paragraph, or begins another paragraph with the line."""
        fence = bool(FENCE.match(line))
        if fence or self.fenced:
            self.fenced ^= fence
            self.begin(line, fixed=True)
        elif not line.strip() or FIXED.match(line) or DIRECTIVE.match(line):
            self.begin(line, fixed=True)
        elif self.open is None or self.starts_paragraph(line):
            self.begin(line)
        else:
            if self.open.hanging is None:
                self.open.hanging = re.match(r"\s*", line)[0]  # type: ignore[index] # matches anything
            self.open.lines.append(line)

    def begin(self, line: str, *, fixed: bool = False) -> None:
        """Begins a paragraph. A fixed line and the title of a section are paragraphs of one line."""
        entry = ENTRY.match(line)
        hanging = re.match(r"\s*", line)[0] + "    " if entry else None  # type: ignore[index] # matches anything
        paragraph = Paragraph([line], hanging, fixed)
        self.paragraphs.append(paragraph)
        self.open = None if fixed or SECTION.match(line) else paragraph

    def starts_paragraph(self, line: str) -> bool:
        """Returns whether the line begins another paragraph instead of continuing the open one."""
        assert self.open is not None
        if ITEM.match(line) or START.match(line):
            return True
        indent = len(line) - len(line.lstrip())
        first = len(self.open.lines[0]) - len(self.open.lines[0].lstrip())
        if ENTRY.match(line) and indent <= first:
            return True
        return indent < first or (
            self.open.hanging is not None and indent != len(self.open.hanging) and indent == first
        )


def wrap(lines: list[str], columns: int) -> list[str]:
    """Wraps the text of one comment, without its markers, at `columns`."""
    return [line for paragraph in Splitter().split(lines) for line in paragraph.wrapped(columns)]


def wrap_marked(lines: list[str], marker: re.Pattern[str], numbers: set[int]) -> list[str]:
    """Wraps comments with a marker on each line. `numbers` has the lines that are comments, counted from 0."""
    result: list[str] = []
    block: list[str] = []
    prefix = ""
    for number, line in enumerate([*lines, ""]):
        match = marker.match(line) if number in numbers else None
        if block and (match is None or match[1] != prefix):
            for text in wrap(block, MAX_COLUMNS - len(prefix) - 1):
                result.append(f"{prefix} {text}" if text else prefix)
            block = []
        if match is None:
            result.append(line)
        else:
            prefix = match[1]
            block.append(match[2].removeprefix(" "))
    return result[:-1]


def wrap_docstrings(text: str) -> str:
    """Wraps the docstrings of a Python module."""
    lines = text.split("\n")
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            statement = node.body[0]
            if ast.get_docstring(node, clean=False) is not None:
                found.append((statement.lineno - 1, statement.end_lineno or 0, statement.col_offset))
    for start, end, column in sorted(found, reverse=True):
        docstring = lines[start:end]
        if all(len(line) <= MAX_COLUMNS for line in docstring):
            continue
        opening = re.match(r'\s*[rR]?"""', docstring[0])
        if opening is None:
            continue
        # The quotes count as parts of the first and the last word. Each line is indented like the docstring.
        content = [" " * column + docstring[0].strip(), *docstring[1:]]
        wrapped = wrap([line[column:] if line.strip() else "" for line in content], MAX_COLUMNS - column)
        lines[start:end] = [" " * column + line if line else "" for line in wrapped]
    return "\n".join(lines)


def wrapped(path: Path, text: str) -> str:
    """Returns the text of a file with its comments wrapped."""
    if path.suffix in (".py", ".pyi"):
        text = wrap_docstrings(text)
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = {token.start[0] - 1 for token in tokens if token.type == tokenize.COMMENT}
    else:
        comments = set(range(text.count("\n") + 1))
    marker = RUST_COMMENT if path.suffix == ".rs" else HASH_COMMENT
    return "\n".join(wrap_marked(text.split("\n"), marker, comments))


def main(arguments: list[str]) -> None:
    """Wraps the comments in the given paths, or in all files of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z", *arguments], capture_output=True, text=True, check=True).stdout
    for path in map(Path, filter(None, listed.split("\0"))):
        if (path.suffix in SUFFIXES or path.name == "Makefile") and path.exists():
            text = path.read_text(encoding="utf-8")
            result = wrapped(path, text)
            if result != text:
                path.write_text(result, encoding="utf-8")
                print(path)


if __name__ == "__main__":
    main(sys.argv[1:])

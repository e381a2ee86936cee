"""Puts the docstrings of the native module into the stubs of wheels, for editors.

The texts have one source: the doc comments of the Rust crates, which the native module contains as ``__doc__``. The
stubs of a checkout have only the signatures. A wheel gets both:

    python tools/stub_docstrings.py dist/*.whl

At least one of the wheels must run on this machine: all of them get the docstrings of its module. They must come from
the same commit.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


def add_docstrings(wheels: list[Path]) -> bool:
    """Replaces wheels by those whose stubs have docstrings.

    Returns `False`, and leaves the wheels unchanged, if this interpreter cannot import the module of any of them.
    """
    with tempfile.TemporaryDirectory() as directory:
        packages = [_unpacked(wheel, Path(directory) / str(number)) for number, wheel in enumerate(wheels)]
        if (module := next(filter(_is_importable, packages), None)) is None:
            return False
        for wheel, package in zip(wheels, packages, strict=True):
            _run(module, __file__, "--directory", package / "aeron/_stubs")
            _run(module, "-m", "wheel", "pack", "--dest-dir", wheel.parent, package)
    return True


def _unpacked(wheel: Path, directory: Path) -> Path:
    command: list[str | Path] = [sys.executable, "-m", "wheel", "unpack", "--dest", directory, wheel]
    subprocess.run(command, check=True, capture_output=True)
    [package] = directory.iterdir()
    return package


def _run(module: Path, *command: str | Path) -> None:
    """Runs Python with the package in the directory `module`."""
    subprocess.run(
        [sys.executable, *command], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(module)}
    )


def _is_importable(package: Path) -> bool:
    command = [sys.executable, "-c", "import aeron._aeron"]
    return subprocess.run(command, check=False, capture_output=True, cwd=package).returncode == 0


# ---- source code -----------------------------------------------------------------------------------------------------


@dataclass
class Edit:
    """A change of a file: `lines` replace the lines from `first` up to and not including `last`, counted from 0."""

    first: int
    last: int
    lines: list[str]


def edited(source: str, edits: list[Edit]) -> str:
    """Returns source code with the changes."""
    lines = source.splitlines()
    for edit in sorted(edits, key=lambda edit: (edit.first, edit.last), reverse=True):
        lines[edit.first : edit.last] = edit.lines
    return "\n".join(lines) + "\n"


def docstring(thing: object) -> str | None:
    """Returns the docstring of an object of the native module, without its indentation."""
    text = getattr(thing, "__doc__", None)
    return inspect.cleandoc(text) if text else None


def quoted(text: str, indent: str) -> list[str]:
    """Returns a docstring as lines of source code."""
    quotes = 'r"""' if "\\" in text else '"""'
    first, *rest = text.split("\n")
    lines = [indent + quotes + first, *((indent + line).rstrip() for line in rest)]
    if len(lines) == 1:
        lines[0] += '"""'
    else:
        lines.append(indent + '"""')
    return lines


def is_placeholder(node: ast.stmt) -> bool:
    """Returns whether a statement is a docstring or an ellipsis."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def docstring_edit(node: ast.ClassDef | ast.FunctionDef, text: str, lines: list[str]) -> Edit:
    """Returns the edit that puts a docstring into a class or function of the source code `lines`."""
    indent = " " * (node.col_offset + 4)
    first = node.body[0]
    if not is_placeholder(first):
        line = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", []))]) - 1
        return Edit(line, line, quoted(text, indent))
    head = lines[first.lineno - 1][: first.col_offset].rstrip()
    return Edit(first.lineno - 1, first.end_lineno or first.lineno, [*([head] if head else []), *quoted(text, indent)])


def method_edits(node: ast.ClassDef, kind: object, lines: list[str]) -> Iterator[Edit]:
    """Yields the edits that put the docstrings of a native class into the public methods of a class."""
    for member in node.body:
        if not isinstance(member, ast.FunctionDef) or member.name.startswith("_"):
            continue
        if text := docstring(getattr(kind, member.name, None)):
            yield docstring_edit(member, text, lines)


def with_docstrings(source: str, native: object) -> str:
    """Returns the source code of a stub with the docstrings of the native module."""
    lines = source.splitlines()
    edits: list[Edit] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and (thing := getattr(native, node.name, None)):
            if text := docstring(thing):
                edits.append(docstring_edit(node, text, lines))
            if isinstance(node, ast.ClassDef):
                edits += method_edits(node, thing, lines)
    return edited(source, edits)


def main(arguments: list[str]) -> None:
    """Adds docstrings to wheels, or to the stubs in one directory with those of the installed package."""
    if arguments[:1] == ["--directory"]:
        native = importlib.import_module("aeron._aeron")
        for path in Path(arguments[1]).glob("*.pyi"):
            path.write_text(with_docstrings(path.read_text(), native))
    elif not add_docstrings([Path(each) for each in arguments]):
        names = ", ".join(arguments)
        sys.exit(f"this machine cannot import the module of {names}: add a wheel of the same commit that it can")


if __name__ == "__main__":
    main(sys.argv[1:])

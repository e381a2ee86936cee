"""Tests that mypy in strict mode and pyright accept the programs of the documentation.

All blocks of a page form one program. `GIVEN` defines the names that pages use without a definition.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
GIVEN = """
import struct

import aeron
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

archive: aeron.AeronArchive
archive_directory: str
buffer: bytes
client: aeron.Aeron
data: bytes
driver: aeron.MediaDriver
idle: aeron.IdleStrategy
operation: aeron.PendingOperation[aeron.Publication]
price: float
publication: aeron.ExclusivePublication
recording_id: int
size: float
spark: SparkSession
subscription: aeron.Subscription
time_ns: int
trades: np.ndarray[tuple[int], np.dtype[np.void]]

def handler(payload: bytes, header: aeron.Header) -> None: ...
"""
"""Names that a page may use without defining them."""
GIVEN_NAMES = {
    getattr(each, "asname", None) or getattr(each, "name", None) or getattr(getattr(each, "target", None), "id", None)
    for node in ast.parse(GIVEN).body
    for each in getattr(node, "names", [node])
}

WITHOUT_ANNOTATIONS = ["no-untyped-def", "no-untyped-call", "var-annotated"]
"""Error codes of strict mode for missing annotations. Pages leave out annotations to be short; examples have them."""


def pages() -> list[Path]:
    """Returns the pages with programs. The specification is left out, because it quotes only parts of programs."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(page for page in found if "spec" not in page.parts and BLOCK.search(page.read_text()))


def examples() -> list[Path]:
    return sorted((ROOT / "examples").rglob("*.py"))


def program_of(page: Path) -> str:
    """Returns the blocks of a page as the body of a coroutine, because they may use `await`. Lines keep their
    numbers."""
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start()) + 1
        assert first > 1, f"{page} begins with code"
        for number, line in enumerate(block[2].splitlines(), start=first):
            is_code = line.strip() and not line.startswith("from __future__")
            lines[number] = "    " + line.removeprefix(block[1]) if is_code else ""
    lines[0] = "async def page() -> None:"
    given = given_names(ast.parse("\n".join(lines)))
    lines[1] = f"    from given import {', '.join(given)}" if given else ""
    return "\n".join(lines) + "\n"


def given_names(program: ast.Module) -> list[str]:
    """Returns the names of `GIVEN` that a program uses before it assigns them."""
    names = sorted(
        (node.lineno, node.col_offset, node.id, isinstance(node.ctx, ast.Load))
        for node in ast.walk(program)
        if isinstance(node, ast.Name)
    )
    imports = [node for node in ast.walk(program) if isinstance(node, ast.Import | ast.ImportFrom)]
    known = {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}
    found = []
    for _, _, name, is_used in names:
        if name not in known:
            known.add(name)
            if is_used and name in GIVEN_NAMES:
                found.append(name)
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """Writes the program of each page beside the module `given`. Returns the file of each page."""
    directory = tmp_path_factory.mktemp("programs")
    (directory / "given.py").write_text(f"{GIVEN}\n__all__ = {sorted(filter(None, GIVEN_NAMES))}\n")
    made = {}
    for page in pages():
        name = "_".join(page.relative_to(ROOT).with_suffix("").parts)
        made[page] = directory / f"page_{re.sub(r'[^0-9a-zA-Z]', '_', name)}.py"
        made[page].write_text(program_of(page))
    return made


def readable(output: str, programs: dict[Path, Path]) -> str:
    """Returns the messages of a checker. The names of pages replace the names of the files that were made from the
    pages."""
    for page, program in programs.items():
        output = output.replace(str(program), str(page.relative_to(ROOT)))
    return output


def run(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    environment = os.environ | ({"MYPYPATH": str(path)} if path else {})
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mypy_accepts_the_pages(programs: dict[Path, Path]) -> None:
    directory = next(iter(programs.values())).parent
    lenient = [f"--disable-error-code={code}" for code in WITHOUT_ANNOTATIONS]
    files = [str(program) for program in programs.values()]
    checked = run("mypy", "--strict", "--allow-redefinition", "--no-error-summary", *lenient, *files, path=directory)
    assert checked.returncode == 0, readable(checked.stdout + checked.stderr, programs)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mypy_accepts_the_examples() -> None:
    checked = run("mypy", "--strict", "--scripts-are-modules", "--no-error-summary", *map(str, examples()))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pyright_accepts_pages_and_examples(programs: dict[Path, Path], tmp_path: Path) -> None:
    directory = next(iter(programs.values())).parent
    shutil.copytree(directory, tmp_path / "pages")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("data", "__pycache__"))
    extra = [str(ROOT / "python")]
    # Each loop of a page runs at least once, so a name that the loop assigns exists after the loop.
    pages_environment = {"root": "pages", "extraPaths": extra, "reportPossiblyUnboundVariable": "none"}
    roots = [pages_environment, {"root": "examples", "extraPaths": extra}]
    configuration = {"include": ["pages", "examples"], "executionEnvironments": roots, "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(configuration))
    checked = run("pyright", "--project", str(tmp_path), "--pythonpath", sys.executable, "--stats")
    output = readable(checked.stdout.replace(str(tmp_path / "pages"), str(directory)) + checked.stderr, programs)
    assert checked.returncode == 0, output
    count = len(programs) + 1 + len(examples())
    assert re.search(rf"Total files checked: {count}$", output, re.MULTILINE), output

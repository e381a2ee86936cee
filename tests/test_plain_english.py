"""The linter of docs/style.md finds the forms that the guide replaces, and accepts the forms that the guide allows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import plain_english

ROOT = Path(__file__).parent.parent
WORDS = (ROOT / "docs/style.md").read_text(encoding="utf-8").split("## Words")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| `(.+?)` \| (.+?) \|$", WORDS, re.M)


def messages(prose: str) -> list[str]:
    return [message for _, message in plain_english.findings_in_prose(prose)]


@pytest.mark.parametrize(("instead_of", "write"), ROWS)
def test_the_linter_finds_each_example_of_the_guide_but_not_its_replacement(instead_of: str, write: str) -> None:
    assert messages(instead_of)
    assert messages(write) == []


@pytest.mark.parametrize(("pattern", "advice"), plain_english.FORBIDDEN)
def test_each_pattern_has_an_example_in_the_guide(pattern: re.Pattern[str], advice: str) -> None:
    assert advice
    assert any(pattern.search(instead_of) for instead_of, _ in ROWS)


@pytest.mark.parametrize(
    "prose",
    [
        "What does the driver do? Who owns the lock?",
        "A user who has no secret cannot connect.",
        "Those of the readers who know Aeron skip this part.",
        "The subscriber falls behind, and lags behind until it is far behind. The file is left behind.",
        "A failed command leaves no log file, counter or socket behind. If there is none, it leaves nothing behind.",
        "A receiver behind a NAT, or behind the firewall.",
        "The value is None. It is none of these.",
        "The conductor hands over the log, and the pool hands out buffers.",
        "Returns what was sent, whatever its length.",
        "A word in backticks: `answers`, ``the file is none``, `what` and `behind`.",
        "A question\nin two lines: what is\nthis?",
    ],
)
def test_the_linter_does_not_find_an_allowed_form(prose: str) -> None:
    assert messages(prose) == []


@pytest.mark.parametrize(
    ("prose", "line"),
    [
        ("The first line.\nWhat follows is found.", 1),
        ("A list:\n\n- one\n- What two is", 3),
        ("A sentence goes on over the line: the log is\nnone.", 0),
        ("```\nanswers\n```\nThe call answers nothing.", 3),
    ],
)
def test_a_finding_has_the_number_of_its_first_line(prose: str, line: int) -> None:
    assert [offset for offset, _ in plain_english.findings_in_prose(prose)] == [line]


FILES = {
    "code.rs": (
        "//! A module.\n/// Adds.\n///\n/// It answers the sum.\nfn answers(what: &str) -> char { '\"' }\n"
        "/// The next paragraph. `answers` is code.\n/// ```\n/// let answers = behind();\n/// ```\n"
        'const A: &str = "a text \\\n    that answers"; // The trailing comment answers too.\n'
        'const B: &str = r#"a "raw" text is behind"#;\n',
        [(4, "answers"), (10, "answers"), (11, "answers"), (12, "behind")],
    ),
    "code.py": (
        '"""A module that answers."""\n\nanswers = behind = 1  # a trailing comment: Whoever reads it.\n'
        '# A block of comments\n# that answers.\n\nraise ValueError(f"{answers} is behind {behind}")\n',
        [(1, "answers"), (3, "Whoever"), (5, "answers"), (7, "behind")],
    ),
    "code.c": ("/* A block that\n * answers. */\nint answers; // behind\n", [(2, "answers"), (3, "behind")]),
    "text.md": (
        "# Title\n\nIt answers.\n\n~~~\nanswers\n~~~\n\n```\nanswers\n```\n\n> behind\n",
        [(3, "answers"), (13, "behind")],
    ),
    "table.toml": ("[answers] # a table that answers\nkey = 'behind'\n", [(1, "answers")]),
    "image.svg": ("<text>answers</text>", []),
    "wide.rs": (f'/// {"long " * 30}\n/// | {"cell | " * 30}\n#[error("{"attribute " * 20}")]\n', [(1, "columns")]),
    "wide.py": (f"# {'long ' * 30}\n# https://example.org\n", [(1, "columns")]),
}


@pytest.mark.parametrize("name", FILES)
def test_the_linter_reads_comments_and_texts_but_not_code(name: str, tmp_path: Path) -> None:
    text, expected = FILES[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found = sorted(plain_english.findings(path))
    assert [(number, word in message) for (number, message), (_, word) in zip(found, expected, strict=True)] == [
        (number, True) for number, _ in expected
    ]


def test_the_command_prints_findings_of_files_that_git_lists(tmp_path: Path) -> None:
    def lint() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "tools/plain_english.py")]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    (tmp_path / "Makefile").write_text("# The goal answers.\n", encoding="utf-8")
    assert (lint().returncode, lint().stdout) == (0, "")
    subprocess.run(["git", "add", "Makefile"], cwd=tmp_path, check=True)
    assert lint().stdout == "Makefile:1: 'answers': write 'returns', 'replies' or 'responses'\n"
    assert lint().returncode == 1


def test_the_guides_themselves_are_plain() -> None:
    for name in ("style.md", "glossary.md"):
        assert list(plain_english.findings(ROOT / "docs" / name)) == []

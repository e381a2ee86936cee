"""Tests that the rule numbers in tests and comments match the specification in docs/spec.

Rule `04-188` is line 188 of the checklist of document 04. Names cite the rule as `04_188`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPECIFICATION = ROOT / "docs" / "spec"
# A citation is not a part of a date or of a longer number.
CITATION = re.compile(r"(?<![0-9A-Za-z-])(?:[A-Za-z_]\w*_)?(0[1-8]|11|13)[-_](\d{1,3})(?!\d|-\d|_\d{3})")


def test_each_cited_rule_exists() -> None:
    rules = checklists()
    unknown = {
        f"{path.relative_to(ROOT)}: {document}-{number}"
        for path, text in sources()
        for document, number in cited(text)
        if (document, number) not in rules
    }
    assert not unknown, "these rules are not in docs/spec:\n" + "\n".join(sorted(unknown))


def test_each_rule_is_cited_by_a_test() -> None:
    cited_rules = {rule for path, text in sources() if is_test(path) for rule in cited(text)}
    missing = sorted(checklists() - cited_rules)
    assert not missing, "no test cites " + ", ".join(f"{document}-{number}" for document, number in missing)


def checklists() -> set[tuple[str, int]]:
    """Returns document and number of each rule."""
    rules = set()
    for path in SPECIFICATION.glob("[01][0-9]-*.md"):
        inside = False
        for line in path.read_text().splitlines():
            if re.match(r"#+ .*checklist", line, re.IGNORECASE):
                inside = True
            elif line.startswith("## "):
                inside = False
            elif inside and (number := re.match(r"(\d+)\. ", line)):
                rules.add((path.name[:2], int(number[1])))
    return rules


def cited(text: str) -> Iterator[tuple[str, int]]:
    # No rule has the number 0, but file names such as `11-0.rec` look like such a rule.
    return ((document, int(number)) for document, number in CITATION.findall(text) if int(number) > 0)


def sources() -> Iterator[tuple[Path, str]]:
    listed = subprocess.run(["git", "ls-files", "*.rs", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        yield ROOT / name, (ROOT / name).read_text()


def is_test(path: Path) -> bool:
    """Returns whether a file may contain tests. Rust files may have tests next to the tested code."""
    return path.suffix == ".rs" or path.is_relative_to(ROOT / "tests")

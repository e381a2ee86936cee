"""Tests that the mutants in ``rust/simulator/mutants.toml`` match the code of driver and archive."""

from __future__ import annotations

import tomllib
from pathlib import Path

RUST = Path(__file__).parent.parent / "rust"


def test_the_replaced_text_of_each_mutant_occurs_once_in_its_file() -> None:
    mutants = tomllib.loads((RUST / "simulator" / "mutants.toml").read_text())["mutant"]
    assert len(mutants) > 20
    for mutant in mutants:
        file = RUST / mutant.get("crate", "driver") / "src" / mutant["file"]
        place = mutant.get("before", "") + mutant["from"]
        assert file.read_text().count(place) == 1, f"{mutant['bug']}: {file} must contain the replaced text once"


def test_each_mutant_replaces_a_whole_expression() -> None:
    for mutant in tomllib.loads((RUST / "simulator" / "mutants.toml").read_text())["mutant"]:
        for text in (mutant["from"], mutant["to"]):
            for opening, closing in ("()", "[]", "{}"):
                assert text.count(opening) == text.count(closing), f"{mutant['bug']}: {text!r} is not an expression"

"""Test of the tutorial from a schema of SBE to bars in Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands import run as run_aeron

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial-sbe.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_blocks_of_the_tutorial_make_bars_of_trades(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "tutorial"}
    try:
        for language, code in _BLOCK.findall(PAGE.read_text()):
            if language == "console":
                result = run_aeron(*code.removeprefix("$ aeron ").split())
                assert "Trade" in result.output
                continue
            exec(compile(code, str(PAGE), "exec"), names)
    finally:
        if "closing" in names:
            names["closing"].set()
    bars = names["spark"].table("bars").collect()
    assert len(bars) >= 2
    for bar in bars:
        assert bar.symbol == "ESZ6"
        assert 99 < bar.low <= bar.high < 101
        assert bar.volume > 0
    assert capsys.readouterr().out.rstrip().endswith("\n0")

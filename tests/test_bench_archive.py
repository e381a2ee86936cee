"""Tests of the archive's benchmarks: a short run measures the start of an archive."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bench import environments
from bench.archive import catalogs

# The installed programs. The benchmarks would build a release wheel first.
BUILD = Path(sys.executable).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("state", ["stopped", "to recover"])
def test_the_start_of_an_archive_with_copies_of_one_recording_is_measured(state: str) -> None:
    with environments.using(BUILD):
        figures = catalogs.Start("many", "ours", state).measure(0.1)
    assert 0 < figures["start"] < 30_000

"""Runs `promtool` and `prometheus` of Debian's package `prometheus`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def find(program: str) -> str:
    """Returns the path of a program. Without the program the test is skipped, or fails in CI."""
    found = shutil.which(program)
    if found is None:
        reason = f"{program} is not installed: `make prometheus` installs it, or says how"
        if os.environ.get("CI"):
            pytest.fail(f"tests of alarms must not be skipped in CI: {reason}")
        pytest.skip(reason)
    return found


def promtool(*arguments: str | Path) -> str:
    """Runs promtool and returns its output. Fails if promtool does."""
    done = subprocess.run([find("promtool"), *arguments], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

"""Runs each program of the folder ``examples`` in its own process, as users do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run_example(name: str, *arguments: object, timeout: float = 30, warnings: str = "error", **environment: str) -> str:
    """Runs an example to its end, and returns its standard output. The example inherits no variables ``AERON_…``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AERON_")}
    done = subprocess.run(
        [sys.executable, "-W", warnings, str(EXAMPLES / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**inherited, **environment},
    )
    assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout

"""Runs scripts with a small file system of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run_on_small_disk(script: str, directory: Path, size_mib: int, timeout_s: float) -> str:
    """Runs a script that sees an empty file system of `size_mib` MiB in `directory`. Returns its output.

    If the system permits no mount without privileges, the test is skipped. In CI, it fails.
    """
    mount = f"mount -t tmpfs -o size={size_mib}m tmpfs {directory}"
    command = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    probe = subprocess.run((*command, mount), check=False, capture_output=True, text=True)
    if probe.returncode:
        reason = f"no file system can be mounted: {probe.stderr.strip()}"
        if os.environ.get("CI"):
            pytest.fail(f"tests on a small disk must not be skipped in CI: {reason}")
        pytest.skip(reason)
    done = subprocess.run(
        (*command, f'{mount} && exec "$0" -c "$1" "$2"', sys.executable, script, str(directory)),
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout

"""Waiting for what a driver or client does in its own time."""

import time


def eventually(holds, timeout_s=10):
    """Returns once `holds()` is true, or fails when it is not within the time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s} s"
        time.sleep(0.02)

"""Waits until a condition of a driver or client is true."""

import time


def eventually(holds, timeout_s=10):
    """Waits until `holds()` returns a true value, and fails after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s} s"
        time.sleep(0.02)

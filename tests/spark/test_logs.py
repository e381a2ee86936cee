"""Tests of log lines in processes with and without configured logging. No Spark is needed."""

from __future__ import annotations

import re
import subprocess
import sys


def in_python(code: str) -> str:
    command = [sys.executable, "-c", f"from aeron.spark.logs import logger\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stderr


def test_a_line_has_a_time_and_a_level_if_logging_is_not_configured() -> None:
    line = in_python("logger(); logger().warning('12 bytes')")
    assert re.fullmatch(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARNING aeron\.spark: 12 bytes\n", line)


def test_a_line_is_printed_once_if_logging_is_configured() -> None:
    line = in_python("import logging; logging.basicConfig(format='mine: %(message)s'); logger().warning('12 bytes')")
    assert line == "mine: 12 bytes\n"

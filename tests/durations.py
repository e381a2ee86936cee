"""Records the duration of each test: all durations go into a file, and the longest are printed.

The file is `target/test-durations.csv`, or that of the option `--durations-file`. A run replaces the file of the run
before. A row has the seconds of the test with its fixtures, and the processor
seconds of the test process and of the child processes that have ended.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

PRINTED = 20


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Durations:
    """A plugin of pytest. Worker processes measure, and the process that started them writes the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: dict[str, float] = {}
        self._processor_seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measures the processor time of a test. The report of its teardown carries the value to the main process."""
        self._started = _processor_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        report = yield
        if report.when == "teardown":
            report.user_properties.append(("processor_seconds", _processor_seconds() - self._started))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        self._seconds[test] = self._seconds.get(test, 0.0) + report.duration
        for name, value in report.user_properties:
            if name == "processor_seconds":
                self._processor_seconds[test] = value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._seconds:
            return
        longest = sorted(self._seconds.items(), key=lambda item: -item[1])
        rows = [(f"{seconds:.3f}", f"{self._processor_seconds.get(test, 0):.3f}", test) for test, seconds in longest]
        self._file.parent.mkdir(exist_ok=True)
        with self._file.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["seconds", "processor_seconds", "test"])
            writer.writerows(rows)
        if len(rows) > PRINTED:
            terminalreporter.section(f"the {PRINTED} longest tests (all: {self._file})")
            for seconds, processor_seconds, test in rows[:PRINTED]:
                terminalreporter.write_line(f"{float(seconds):7.1f} s {float(processor_seconds):7.1f} s CPU  {test}")

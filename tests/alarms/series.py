"""Series of scrapes, in the notation of `promtool test rules`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

RULES = Path(__file__).resolve().parents[2] / "dashboards" / "alerts.yml"
_MIB = 1 << 20
_METRIC = re.compile(r"\baeron_\w+")


def metrics_of_rules() -> set[str]:
    return set(_METRIC.findall(RULES.read_text()))


def to_text(texts: Iterable[str], wanted: set[str], begin: float) -> str:
    """Returns a line for each series: name, labels, and the value of each scrape, or `-` if there is none.

    Subtracts `begin` from times. Rounds free space to MiB, because all processes of the machine change it.
    """
    scrapes = [_samples(text, wanted, begin) for text in texts]
    names = sorted({name for scrape in scrapes for name in scrape})
    return "".join(f"{name} {encode([scrape.get(name) for scrape in scrapes])}\n" for name in names)


def _samples(text: str, wanted: set[str], begin: float) -> dict[str, float]:
    samples = {}
    for line in text.splitlines():
        name = re.match(r"\w+", line)
        if name is None or name[0] not in wanted:
            continue
        series, _, value = line.rpartition(" ")
        number = float(value)
        if name[0].endswith("_timestamp_seconds") and number >= 0:
            number = round(number - begin, 3)
        elif name[0].endswith("_filesystem_free_bytes"):
            number = number // _MIB * _MIB
        samples[series] = number
    return samples


def encode(values: list[float | None]) -> str:
    """Returns values as runs with equal differences, as in `5+0x3 _x2`."""
    runs: list[str] = []
    at = 0
    while at < len(values):
        first = values[at]
        end = at + 1
        if first is None:
            while end < len(values) and values[end] is None:
                end += 1
            # A scrape without the series ends it. Later scrapes have no sample.
            runs.append("stale" if at else "_")
            if end - at > 1:
                runs.append(f"_x{end - at - 1}")
        else:
            step = _difference(values, end)
            while step is not None and end < len(values) and _difference(values, end) == step:
                end += 1
            run = f"{_number(first)}{_signed(step)}x{end - at - 1}"
            runs.append(run if end - at > 1 and step is not None else _number(first))
        at = end
    return " ".join(runs)


def _difference(values: list[float | None], at: int) -> float | None:
    if at >= len(values):
        return None
    before, value = values[at - 1], values[at]
    return None if before is None or value is None else round(value - before, 9)


def decode(text: str) -> list[float | None]:
    """Returns the values of runs."""
    values: list[float | None] = []
    for run in text.split():
        if run[0] == "_" or run == "stale":
            values += [None] * int(run.partition("x")[2] or 1)
            continue
        found = re.fullmatch(r"(-?[\d.]+(?:e[+-]?\d+)?)(?:([+-][\d.]+(?:e[+-]?\d+)?)x(\d+))?", run)
        assert found is not None, run
        first, step = float(found[1]), float(found[2] or 0)
        values += [round(first + step * number, 9) for number in range(int(found[3] or 0) + 1)]
    return values


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{'-' if value < 0 else '+'}{_number(abs(value))}"

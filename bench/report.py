"""Tables of the results, made from the raw files alone."""

import math
from collections import Counter

import numpy as np

from bench import PROJECT, results, statistics
from bench.evaluation import evaluate
from bench.goals import unit_of
from bench.statistics import LIMIT_VOID, MET, MISSED, NO_CHANGE, OPEN, Bound

DOCUMENT = PROJECT / "docs" / "performance.md"
_VERDICTS = (MET, MISSED, OPEN, LIMIT_VOID)
_MARKS = {MISSED: "**missed**"}
_ALLOWED_GAIN = 1.05


def page(text, parts, directory):
    """Returns the text of the document with the tables of all parts that have a raw file in the directory."""
    for part in parts:
        file = directory / f"{part.name}.jsonl"
        if file.exists():
            begin, end = f"<!-- {part.name}: begin -->", f"<!-- {part.name}: end -->"
            before, rest = text.split(begin)
            _, after = rest.split(end)
            text = f"{before}{begin}\n{section(part, results.read(file))}\n{end}{after}"
    return text


def section(part, found):
    """Returns the heading and the tables of a part."""
    names = {run.group: None for run in found.runs}
    groups = {name: part.group(name) for name in part.groups if name in names}
    return "\n\n".join([heading(found), *tables(found, groups)])


def tables(found, groups):
    """Returns the table of all goals, that of A against A, and that of all measured values."""
    lines = [evaluate(found, name, goal) for name, group in groups.items() for goal in group.goals]
    lines = [line for line in lines if line]
    compared = [line for line in lines if line.goal.kind != "same"]
    counts = Counter(line.verdict for line in compared)
    return [
        line_table(compared),
        f"Of {len(compared)} lines, " + ", ".join(f"{counts[verdict]} are *{verdict}*" for verdict in _VERDICTS) + ".",
        _twins([line for line in lines if line.goal.kind == "same"]),
        figure_table(found, groups),
    ]


def line_table(lines):
    """Returns a table of evaluated lines."""
    columns = ("line", "ours", "peer", "ratio [98 % interval]", "rounds", "modes", "goal", "verdict")
    return _table(columns, map(_line, lines))


def figure_table(found, groups):
    """Returns a table of all values that the cells of the groups have measured."""
    figures = [figure for name, group in groups.items() for figure in _figures(found, name, group)]
    return _table(("figure", "geometric mean", "median [min - max]", "runs", "void"), figures)


def _line(line):
    """Returns the columns of an evaluated line."""
    goal, interval = line.goal, line.interval
    bound = "at least" if goal.bound.is_minimum else "at most"
    mark = _MARKS.get(line.verdict, line.verdict)
    if line.peer is None:
        value = _with_bounds(interval, lambda value: _figure(value, goal.unit))
        return goal.text, value, "", "", line.rounds, "", f"{bound} {goal.bound.value} {goal.unit}", mark
    ours, peer = (_figure(statistics.geometric_mean(side), goal.unit) for side in (line.ours, line.theirs))
    return (
        goal.text,
        ours,
        f"{line.peer}: {peer}",
        _with_bounds(interval, "{:.3g}".format),
        line.rounds,
        _modes(line),
        f"{bound} {goal.bound.value:.3g}x",
        mark,
    )


def _modes(line):
    """Returns the share and the mean of each mode of both sides, and the ratios inside the modes."""
    sides = zip(("ours", "peer"), line.modes, strict=True)
    texts = [f"{name} {_parts(modes, line.goal.unit)}" for name, modes in sides if modes]
    if not texts:
        return ""
    if ratios := line.ratios_in_modes():
        texts.append(f"ratio inside {', '.join(f'{ratio:.3g}' for ratio in ratios)}")
    return "; ".join([*texts, "as the probe" if line.follows_probe else "not as the probe"])


def _parts(modes, unit):
    runs = sum(map(len, modes))
    return ", ".join(f"{len(part) / runs:.0%} {_figure(statistics.geometric_mean(part), unit)}" for part in modes)


def _twins(lines):
    """Returns the table of the cells that were measured twice, and the counts that should be close to zero."""
    rows = [(line.goal.text, _with_bounds(line.interval, "{:.3f}".format), line.verdict) for line in lines]
    quiet = sum(line.verdict in (NO_CHANGE, OPEN) for line in lines)
    losses = sum(line.verdict == MISSED for line in lines)
    gains = sum(_gain(line) == MET for line in lines)
    counts = (
        f"Of {len(lines)} lines that compare a cell with itself, {quiet} are *no change* or *open*, {losses} are "
        f"*missed* against 1.00, and {gains} are *met* against a gain of 5 %."
    )
    return f"{_table(('line', 'ratio [98 % interval]', 'verdict'), rows)}\n\n{counts}"


def _with_bounds(interval, form):
    """Returns an estimate and its interval. A single round has no interval."""
    bounds = f" [{form(interval.low)} - {form(interval.high)}]" if math.isfinite(interval.high) else ""
    return form(interval.estimate) + bounds


def _gain(line):
    is_minimum = line.goal.bound.is_minimum
    return Bound(_ALLOWED_GAIN if is_minimum else 1 / _ALLOWED_GAIN, is_minimum).verdict(line.interval)


def _figures(found, name, group):
    for cell in group.cells:
        voids = found.voids(name, cell.name)
        for metric in dict.fromkeys(metric for run in found.of_cell(name, cell.name) for metric in run.values):
            if metric == "count":
                continue
            values, unit = np.array(found.values(name, cell.name, metric)), unit_of(metric, cell)
            label = cell.name if metric == "rate" else f"{cell.name}, {metric}"
            middle, low, high = (_figure(value, unit) for value in (np.median(values), values.min(), values.max()))
            mean = _figure(statistics.geometric_mean(values), unit) if (values > 0).all() else ""
            yield label, mean, f"{middle} [{low} - {high}]", len(values), voids


def _figure(value, unit):
    if unit in ("messages/s", "rows/s"):
        return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.1f} k/s"
    if unit == "ns":
        return f"{value / 1000:.2f} us"
    return f"{value:.2f} {unit}"


def _table(columns, rows):
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def heading(found):
    """Returns the text that says where, when and how the runs were measured."""
    about = found.heading
    probes = [value for run in found.runs for value in run.conditions["probe_ns"] or ()]
    loads = [run.conditions["load"] for run in found.runs]
    voids = sum(1 for run in found.runs if run.void)
    texts = [
        f"{about['date']}, commit {about['commit']}, {about['processor']}, {about['cores']} cores, "
        f"Linux {about['kernel']}, Rust {about['rust']}, {about['versions']}. Runs of {about['seconds']} s, "
        f"{voids} of {len(found.runs)} void.",
        f"Load average {min(loads, default=0):.1f} to {max(loads, default=0):.1f}.",
    ]
    if probes:
        texts.append(f"Round trip of a cache line {min(probes):.0f} to {max(probes):.0f} ns.")
    if about["may_be_busy"]:
        texts.append("**The machine was allowed to be busy: these figures only show that the benchmark works.**")
    return " ".join(texts)


def write(parts):
    """Writes the tables of all parts that have a raw file into the document."""
    DOCUMENT.write_text(page(DOCUMENT.read_text(), parts, results.DIRECTORY))

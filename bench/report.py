"""Tables of the results. For each goal they show our median, the best peer's median, and the ratio with its spread."""

import datetime
import statistics

from bench import PROJECT

DOCUMENT = PROJECT / "docs" / "performance.md"


def table(results):
    """Returns a table with a line for each goal, and a table of all measured values."""
    lines = [
        "| line | ours | peer | ratio of medians [of runs] | goal | |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_goal_line(goal, results) for group in results.groups for goal in group.goals if results.has(goal)]
    lines += ["", "| figure | median [min - max] | runs |", "|---|---|---|"]
    lines += [_figure_line(*figure) for figure in results.figures()]
    return "\n".join(lines)


def _goal_line(goal, results):
    ours = results.values(goal.ours, goal.metric)
    if goal.peers is None:
        value = statistics.median(ours)
        met = value <= goal.at_most
        return f"| {goal.text} | {_spread(ours, goal.unit)} | | | at most {goal.at_most} {goal.unit} | {_mark(met)} |"
    name = max(goal.peers, key=lambda peer: goal.sign * statistics.median(results.values(peer, goal.metric)))
    peer = results.values(name, goal.metric)
    ratio = statistics.median(ours) / statistics.median(peer)
    ratios = sorted(mine / theirs for mine, theirs in zip(ours, peer, strict=False))
    bound = f"at least {goal.at_least:.3g}x" if goal.at_least else f"at most {goal.at_most:.3g}x"
    met = ratio >= goal.at_least if goal.at_least else ratio <= goal.at_most
    return (
        f"| {goal.text} | {_spread(ours, goal.unit)} | {name}: {_spread(peer, goal.unit)} "
        f"| {ratio:.2f} [{ratios[0]:.2f} - {ratios[-1]:.2f}] | {bound} | {_mark(met)} |"
    )


def _figure_line(name, metric, unit, values):
    label = name if metric == "rate" else f"{name}, {metric}"
    return f"| {label} | {_spread(values, unit)} | {len(values)} |"


def _mark(met):
    return "met" if met else "**missed**"


def _spread(values, unit):
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{_figure(middle, unit)} [{_figure(low, unit)} - {_figure(high, unit)}]"


def _figure(value, unit):
    if unit in ("messages/s", "rows/s"):
        return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.1f} k/s"
    if unit == "ns":
        return f"{value / 1000:.2f} us"
    return f"{value:.2f} {unit}"


def write(part, results):
    """Writes the tables of a part into the document, between the two marks of that part."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    text = DOCUMENT.read_text()
    before, rest = text.split(begin)
    _, after = rest.split(end)
    DOCUMENT.write_text(f"{before}{begin}\n{heading(results)}\n\n{table(results)}\n{end}{after}")


def heading(results):
    about = results.machine
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (
        f"{today}, {about['processor']}, {about['cores']} cores, Linux {about['kernel']}, Rust {about['rust']}, "
        f"{results.versions}; {results.runs} runs of {results.seconds} s each, interleaved. Load average before: "
        f"{about['load']}."
    )

"""Decides one line: measures only its cells, or compares a cell of ours in two builds."""

from dataclasses import dataclass
from pathlib import Path

from bench import environments as env
from bench.goals import Group, same
from bench.placement import FREE


class LineError(Exception):
    """Reason why there is no such line, or why it cannot be decided."""


@dataclass
class OfBuild:
    """A cell that is measured with the programs of another build."""

    name: str
    cell: object
    build: Path

    @property
    def unit(self):
        return self.cell.unit

    @property
    def placement(self):
        return getattr(self.cell, "placement", FREE)

    def measure(self, seconds):
        with env.using(self.build):
            return self.cell.measure(seconds)


def find_line(parts, text):
    """Returns the part, the name of the group and the goal of a line. `text` is the text of the line or a part of it.

    Raises `LineError` if no line or more than one line has this text.
    """
    goals = [(part, name, goal) for part in parts for name in part.groups for goal in part.group(name).goals]
    found = [one for one in goals if one[2].text == text] or [one for one in goals if text in one[2].text]
    if len(found) != 1:
        names = "".join(f"\n  {goal.text}" for _, _, goal in found or goals)
        raise LineError(f"{len(found)} lines have the text {text!r}:{names}")
    return found[0]


def line_alone(part, name, goal):
    """Returns a group with the cells of one line."""
    group = part.group(name)
    return Group([group.cell(cell) for cell in (goal.ours, *(goal.peers or ()))], [goal], name)


def against(part, name, goal, build):
    """Returns a group that compares the cell of ours with the same cell of another build."""
    if part.runs_in_this_process:
        raise LineError(f"lines of {part.name} run in the process of the benchmark, so they cannot compare builds")
    cell = part.group(name).cell(goal.ours)
    other = OfBuild(f"{cell.name}, other build", cell, build)
    return Group([cell, other], [same(f"{goal.text}, compared with the other build", goal, other.name)], name)

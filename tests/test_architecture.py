"""Checks that the arrows in docs/architecture.md show the dependencies in the Cargo manifests."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent


def test_the_arrows_in_the_document_are_the_dependencies_in_the_cargo_manifests() -> None:
    text = (PROJECT / "docs" / "architecture.md").read_text()
    drawn = text.partition("<!-- arrows -->\n```\n")[2].partition("```")[0]
    assert drawn == arrows(), f"the block after '<!-- arrows -->' in docs/architecture.md must be:\n{arrows()}"


def arrows() -> str:
    """Returns a line for each crate: its folder, and the folders of the crates that it uses.

    The crate with the fewest direct and indirect dependencies comes first.
    """
    uses: dict[str, set[str]] = {}
    for folder in workspace()["members"]:
        manifest = tomllib.loads((PROJECT / folder / "Cargo.toml").read_text())
        used = manifest.get("dependencies", {}).keys() & folders().keys()
        uses[room(folder)] = {room(folders()[name]) for name in used}
    everything: dict[str, set[str]] = {}

    def reached(name: str) -> set[str]:
        if name not in everything:
            everything[name] = uses[name].union(*map(reached, uses[name]))
        return everything[name]

    lines = []
    for name in sorted(uses, key=lambda name: (len(reached(name)), name)):
        lines.append(f"{name:<14}──▶ {' '.join(sorted(uses[name]))}" if uses[name] else name)
    return "".join(f"{line}\n" for line in lines)


def workspace() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((PROJECT / "Cargo.toml").read_text())["workspace"]
    return found


def folders() -> dict[str, str]:
    """Returns the folder of each crate of the workspace, by crate name."""
    dependencies = workspace()["dependencies"].items()
    return {name: how["path"] for name, how in dependencies if isinstance(how, dict) and "path" in how}


def room(folder: str) -> str:
    """Returns the name of a crate in the arrows: its folder without ``rust/``."""
    return folder.removeprefix("rust/")

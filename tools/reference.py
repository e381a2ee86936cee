"""Writes the files that are derived from the native module: keywords of stubs, pages of settings and parameters.

The texts have one source: the doc comments and tables of the Rust crates. The native module contains them as
``__doc__`` and as tables. This script copies the texts to the files that the site reads. Build the module first:

    make quick && .venv/bin/python tools/reference.py

With ``--check`` the script writes nothing. It fails if a file differs from the text that it would write.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from aeron import _aeron
from stub_docstrings import Edit, edited

ROOT = Path(__file__).resolve().parent.parent
STUBS = ROOT / "python/aeron/_stubs"
KEYWORDS = ROOT / "rust/python/src/docs"
DOCS = ROOT / "docs"
WIDTH = 104

EMBEDDED_DIRECTORY = "a fresh directory beside the default one"


class Setting(NamedTuple):
    """One setting of a driver or archive, as the native module lists it."""

    name: str
    property_name: str
    variable: str
    kind: str
    default: bool | int | str
    embedded: bool | int | str
    limits: tuple[int, int] | None
    choices: list[str]
    meaning: str

    @property
    def unit(self) -> str:
        """The unit of a number."""
        for suffix, unit in (("_ns", "nanoseconds"), ("_ms", "milliseconds")):
            if self.name.endswith(suffix):
                return unit
        return {"size": "bytes", "duration": "nanoseconds"}.get(self.kind, "")

    @property
    def annotation(self) -> str:
        """The type of the keyword."""
        if self.choices:
            return "Literal[" + ", ".join(f'"{choice}"' for choice in self.choices) + "]"
        if self.kind == "str" and self.name.endswith(("dir", "_file")):
            return "str | PathLike[str]"
        return {"size": "int", "duration": "int"}.get(self.kind, self.kind)

    def stub_default(self) -> str:
        """The default value in the stub. It is `...` if there is no default, or if the default depends on the machine
        or a setting.
        """
        is_variable = self.name == "dir" or self.name in DEPENDENT_DEFAULTS
        if is_variable or (self.kind in ("size", "duration", "int") and self.embedded == ""):
            return "..."
        return f'"{self.embedded}"' if isinstance(self.embedded, str) else repr(self.embedded)


IDLE_PARK = (
    "Longest park of an idle agent in nanoseconds, after a second without work. 0 keeps the strategy's own limit."
)
AUTHENTICATOR = (
    "Function that decides about clients, `authenticator(session, credentials)`, with an `AuthenticatingSession` and "
    "bytes. It returns an `AuthenticationDecision`. A thread of the archive calls it for one client at a time, so the "
    "archive and other clients continue. After 5 s, or nine tenths of the connect timeout, the client is rejected. An "
    "exception rejects the client too: the error log gets its text. Default: `None`: the users in `users_file`, or "
    "everybody."
)
INCOMING_LOSS = (
    "For tests: a `RandomLoss`, `FixedLoss` or `MultiGapLoss`, or several of different kinds. Default: no loss."
)


# Defaults of an embedded archive that depend on other settings.
DEPENDENT_DEFAULTS = {"control_channel_enabled": "`True` if `control_channel` is set, otherwise `False`"}


def shown(value: bool | int | str) -> str:
    """Returns a value as Python source in backticks, or the word none for an empty text."""
    return "none" if value == "" else f"`{value!r}`"


def driver_settings() -> list[Setting]:
    """Returns the settings of a driver."""
    return [Setting(*row) for row in _aeron._driver_settings()]


def archive_settings() -> list[Setting]:
    """Returns the settings of an archive."""
    return [Setting(*row) for row in _aeron._archive_settings()]


def archive_keywords() -> list[Setting]:
    """Returns the settings of an archive that are keywords of `Archive`."""
    return [setting for setting in archive_settings() if setting.name not in ("aeron_dir", "archive_dir")]


def wrapped(name: str, text: str) -> str:
    """Returns an item of the section ``Args``, wrapped."""
    return textwrap.fill(
        f"{name}: {text}",
        WIDTH,
        initial_indent="    ",
        subsequent_indent="        ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def embedded_default(setting: Setting) -> str:
    """Returns the default of a driver or archive inside a Python process."""
    return DEPENDENT_DEFAULTS.get(setting.name, shown(setting.embedded))


def keyword_text(setting: Setting) -> str:
    """Returns meaning, choices, unit and default of a keyword as sentences."""
    parts = [setting.meaning if setting.meaning.endswith(".") else f"{setting.meaning}."]
    if setting.choices:
        parts.append("One of " + ", ".join(f"`{choice}`" for choice in setting.choices) + ".")
    default = EMBEDDED_DIRECTORY if setting.name == "dir" else embedded_default(setting)
    unit = f" {setting.unit}" if setting.unit and isinstance(setting.embedded, int) else ""
    parts.append(f"Default: {default}{unit}.")
    return " ".join(parts)


def driver_keywords() -> str:
    """Returns the section ``Args`` in the docstring of `MediaDriver`."""
    lines = ["Args:", *(wrapped(setting.name, keyword_text(setting)) for setting in driver_settings())]
    lines += [wrapped("max_idle_park_ns", f"{IDLE_PARK} Default: `10000000`."), wrapped("incoming_loss", INCOMING_LOSS)]
    return "\n".join(lines) + "\n"


def archive_keywords_text() -> str:
    """Returns the section ``Args`` in the docstring of `Archive`."""
    arguments = {
        "directory": "Directory of catalog and recordings.",
        "driver": "A `MediaDriver`, the directory of a driver, or `None` for the directory that `AERON_DIR` names. "
        "Without that variable, `None` stands for Aeron's default directory.",
    }
    lines = ["Args:", *(wrapped(name, text) for name, text in arguments.items())]
    lines += [wrapped(setting.name, keyword_text(setting)) for setting in archive_keywords()]
    lines.append(wrapped("max_idle_park_ns", f"{IDLE_PARK} Default: `10000000`."))
    lines.append(wrapped("authenticator", AUTHENTICATOR))
    return "\n".join(lines) + "\n"


# ---- pages -----------------------------------------------------------------------------------------------------------


def cell(text: str) -> str:
    """Returns a text for a cell of a Markdown table, with vertical bars escaped."""
    return text.replace("|", "\\|")


def page_default(setting: Setting) -> str:
    """Returns the default of a setting as the page shows it."""
    if setting.name in ("dir", "aeron_dir"):
        return "`/dev/shm/aeron-<user>`"
    default = shown(setting.default)
    if setting.embedded != setting.default:
        default += f" (embedded: {embedded_default(setting)})"
    return default


def table(settings: list[Setting]) -> Iterator[str]:
    """Yields the lines of a Markdown table of settings."""
    yield "| keyword | property and variable | default | unit | meaning |"
    yield "|---|---|---|---|---|"
    for setting in settings:
        meaning = setting.meaning
        if setting.choices:
            meaning += " One of " + ", ".join(f"`{choice}`" for choice in setting.choices) + "."
        yield (
            f"| `{setting.name}` | `{setting.property_name}`<br>`{setting.variable}` | {cell(page_default(setting))} "
            f"| {setting.unit} | {cell(meaning)} |"
        )


def settings_page() -> str:
    """Returns the text of ``docs/settings.md``."""
    lines = [
        "# Settings",
        "",
        "<!-- Generated by tools/reference.py from the tables of the Rust crates: do not edit. -->",
        "",
        "A setting is a keyword of `aeron.MediaDriver` or `aeron.Archive`, a property in a file or after `-D`,",
        "or an environment variable. A keyword has precedence over a variable. In texts, sizes may end in `k`,",
        "`m` or `g`, and durations in `ns`, `us`, `ms` or `s`. Keywords are integers in the unit of the table.",
        "",
        "*Embedded* is a driver or archive inside a Python process, whose defaults differ for some settings. Two",
        "keywords have no property: `max_idle_park_ns`, the longest park of an idle agent, and `incoming_loss` of",
        "the driver, for tests.",
        "",
        "## Media driver",
        "",
        *table(driver_settings()),
        "",
        "## Archive",
        "",
        "The directories are arguments of `aeron.Archive`: `directory` is `archive_dir`, `driver` is `aeron_dir`.",
        "",
        *table(archive_settings()),
    ]
    return "\n".join(lines) + "\n"


def parameters_page() -> str:
    """Returns the text of ``docs/channel-parameters.md``."""
    lines = [
        "# Channel parameters",
        "",
        "<!-- Generated by tools/reference.py from the tables of the Rust crates: do not edit. -->",
        "",
        "A channel is `aeron:ipc` or `aeron:udp`, followed by `?` and parameters that are separated by `|`. An",
        "example is `aeron:udp?endpoint=localhost:20121|term-length=64k`. A subscription whose channel has the prefix",
        "`aeron-spy:` reads the log of a publication on the same driver.",
        "",
        "As a keyword of `aeron.ChannelUriBuilder` a parameter has `_` in place of `-`. Sizes are bytes or end in `k`,",
        "`m` or `g`; durations are nanoseconds or end in `us`, `ms` or `s`. If a parameter is missing, the",
        "[setting](settings.md) of the driver applies.",
        "",
        "| parameter | keyword | meaning |",
        "|---|---|---|",
    ]
    for name, meaning in _aeron._channel_parameters():
        lines.append(f"| `{name}` | `{name.replace('-', '_')}` | {cell(meaning)} |")
    return "\n".join(lines) + "\n"


class CounterMeaning(NamedTuple):
    """A system counter or a type of counters, as the native module lists it."""

    type_id: int
    counter_id: int | None
    name: str
    kind: str | None
    unit: str | None
    meaning: str

    def row(self, id: int) -> str:
        """Returns the line of a table that begins with an id."""
        return f"| {id} | `{self.name}` | {self.kind or ''} | {self.unit or ''} | {cell(self.meaning)} |"


def counters_page() -> str:
    """Returns the text of ``docs/reference/counters.md``."""
    meanings = [CounterMeaning(*row) for row in _aeron._counter_meanings()]
    lines = [
        "# Counters",
        "",
        "<!-- Generated by tools/reference.py from the tables of the Rust crates: do not edit. -->",
        "",
        "Counters are numbers in shared memory, which every process on the machine can read. The properties `name`,",
        "`kind` and `unit` of a `CounterSnapshot` are in these tables. A counter of any other type has none of them.",
        "",
        "::: aeron.Counter",
        "",
        "::: aeron.CountersReader",
        "",
        "::: aeron.CounterSnapshot",
        "",
        "## System counters",
        "",
        "The type id is 0. The meaning is the beginning of the label.",
        "",
        "| counter id | name | kind | unit | meaning |",
        "|---|---|---|---|---|",
        *(each.row(each.counter_id) for each in meanings if each.counter_id is not None),
        "",
        "## Types of counters",
        "",
        "Types 200 to 241 belong to Aeron Cluster, and types from 20101 on to this project. Applications use types",
        "from 1000 on.",
        "",
        "| type id | name | kind | unit | meaning |",
        "|---|---|---|---|---|",
        *(each.row(each.type_id) for each in meanings if each.counter_id is None),
    ]
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Returns the text of ``docs/reference/exporter.md``."""
    exposition = _aeron._Exposition([], [], max_series=1, per_session=False, custom="")
    lines = [
        "# Metrics of the exporter",
        "",
        "<!-- Generated by tools/reference.py from the tables of the Rust crates: do not edit. -->",
        "",
        "`aeron exporter` and `aeron.metrics.Exporter` serve these metrics: see [Operate](../how-to/operate.md).",
        "Most of them are [counters](counters.md). A metric is shown if a driver or an archive has it.",
        "",
        "| metric | type | meaning |",
        "|---|---|---|",
        *(f"| `{name}` | {type} | {cell(help)} |" for name, type, help in sorted(exposition.families())),
    ]
    return "\n".join(lines) + "\n"


# ---- stubs -----------------------------------------------------------------------------------------------------------


CONSTRUCTORS: dict[str, Callable[[], list[Setting]]] = {"MediaDriver": driver_settings, "Archive": archive_keywords}


def keyword_edits(new: ast.FunctionDef, settings: list[Setting]) -> Iterator[Edit]:
    """Yields the edits for those keywords of a constructor that are settings."""
    known = {setting.name: setting for setting in settings}
    found = {argument.arg for argument in new.args.kwonlyargs}
    assert found >= known.keys(), f"line {new.lineno} has no keyword {', '.join(known.keys() - found)}"
    for argument in new.args.kwonlyargs:
        if (setting := known.get(argument.arg)) is not None:
            line = f"        {argument.arg}: {setting.annotation} = {setting.stub_default()},"
            yield Edit(argument.lineno - 1, argument.end_lineno or argument.lineno, [line])


def stub(path: Path) -> str:
    """Returns the text of a stub file, with the keywords of constructors that are settings."""
    source = path.read_text()
    edits: list[Edit] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and (settings := CONSTRUCTORS.get(node.name)):
            [new] = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__new__"]
            edits += keyword_edits(new, settings())
    return edited(source, edits)


def outputs() -> Iterator[tuple[Path, str]]:
    """Yields each derived file with its text."""
    yield KEYWORDS / "driver_keywords.txt", driver_keywords()
    yield KEYWORDS / "archive_keywords.txt", archive_keywords_text()
    yield DOCS / "settings.md", settings_page()
    yield DOCS / "channel-parameters.md", parameters_page()
    yield DOCS / "reference/counters.md", counters_page()
    yield DOCS / "reference/exporter.md", metrics_page()
    for path in sorted(STUBS.glob("*.pyi")):
        yield path, stub(path)


def main(arguments: list[str]) -> int:
    """Writes the files, or checks them with ``--check``. Returns the exit status."""
    stale = [(path, text) for path, text in outputs() if not path.exists() or path.read_text() != text]
    if arguments == ["--check"]:
        for path, _ in stale:
            print(f"{path.relative_to(ROOT)} differs from the native module: run make quick and tools/reference.py")
        return 1 if stale else 0
    for path, text in stale:
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

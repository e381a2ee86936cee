"""Writes the table of options in the Spark guide: ``python -m tests.spark.option_page`` makes the table from the
code.
"""

from __future__ import annotations

from pathlib import Path

from aeron.spark.option_table import OPTIONS, Option

OPTIONS_PAGE = Path(__file__).parents[2] / "docs" / "spark.md"

_BEGIN, _END = "<!-- options: made from python/aeron/spark/option_table.py -->\n", "<!-- end of options -->\n"


def options_table() -> str:
    """Returns the table, with the marks before and after it."""
    head = "| option | for | default | meaning | values |\n|---|---|---|---|---|\n"
    return _BEGIN + head + "".join(_line(option) for option in OPTIONS) + _END


def _line(option: Option) -> str:
    if option.required:
        default = "required"
    elif option.default is not None:
        default = f"`{option.default}`"
    else:
        default = option.default_text or ""
    values = option.expected.removeprefix("expected ")
    cells = [f"`{option.name}`", str(option.use), default, option.meaning, f"{values}; e.g. `{option.right}`"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def main() -> None:
    """Replaces the table in the page of the guide."""
    page = OPTIONS_PAGE.read_text()
    begin, end = page.index(_BEGIN), page.index(_END) + len(_END)
    OPTIONS_PAGE.write_text(page[:begin] + options_table() + page[end:])


if __name__ == "__main__":
    main()

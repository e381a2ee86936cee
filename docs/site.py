"""Hooks of the site. They create pages from files outside of `docs`, and change links so that they work on the site.

In the project, links lead from file to file. On the site, a link to a file becomes plain text if the site does not have
the file.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples/index.md",
}
PAGES |= {
    path.relative_to(ROOT).as_posix(): path.relative_to(ROOT).with_suffix(".md").as_posix()
    for path in sorted((ROOT / "examples").rglob("*.py"))
}
"""Files outside of the folder `docs` that have a page on the site, and the path of the page."""

COPIED = [
    path.relative_to(ROOT).as_posix()
    for folder in ("containers", "dashboards")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file()
]
"""Files outside of the folder `docs` that the site offers as they are."""

_FILES = {page: file for file, page in PAGES.items()}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```.*?^```[^\n]*\n?)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of files that are not in `docs`, and files that are no pages."""
    for file, page in PAGES.items():
        text = (ROOT / file).read_text()
        files.append(File.generated(config, page, content=_example(file, text) if file.endswith(".py") else text))
    for file in COPIED:
        files.append(File.generated(config, file, content=(ROOT / file).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Changes the links of a page so that they lead to pages. Code does not change."""
    here = page.file.src_uri
    file = PurePosixPath(_FILES.get(here, f"docs/{here}"))
    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(lambda link: _link(link, file, here), part) for part in parts[::2]]
    return "".join(parts)


def _example(name: str, program: str) -> str:
    """Returns the page of a program: what it does, and its text."""
    description = ast.get_docstring(ast.parse(program)) or ""
    return f"# {Path(name).name}\n\n{description}\n\n```python\n{program}```\n"


def _link(link: re.Match[str], file: PurePosixPath, here: str) -> str:
    text, target, anchor = link.groups(default="")
    path = os.path.normpath(file.parent / target)
    page = PAGES.get(path) or PAGES.get(f"{path}/README.md")
    if page is None and path in COPIED:
        page = path
    if page is None and path.startswith("docs/"):
        page = path.removeprefix("docs/")
    if page is not None:
        return f"[{text}]({os.path.relpath(page, PurePosixPath(here).parent)}{anchor})"
    return text if (ROOT / path).exists() else link.group()

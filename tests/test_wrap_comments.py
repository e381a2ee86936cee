"""Tests of `wrap_comments`. It wraps paragraphs with a line of more than 120 columns, but no other paragraphs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wrap_comments

LONG = "word " * 40
RUST = Path("code.rs")
PYTHON = Path("code.py")


def wrapped(path: Path, text: str) -> str:
    result = wrap_comments.wrapped(path, text)
    assert wrap_comments.wrapped(path, result) == result
    return result


@pytest.mark.parametrize("marker", ["//", "///", "//!"])
def test_a_long_paragraph_of_rust_is_wrapped(marker: str) -> None:
    result = wrapped(RUST, f"    {marker} First {LONG.strip()}.\n    {marker} Last line.\n    let x = 1;\n")
    *comments, code, end = result.split("\n")
    assert (code, end) == ("    let x = 1;", "")
    assert all(line.startswith(f"    {marker} ") and len(line) <= 120 for line in comments)
    assert all(len(line) > 110 for line in comments[:-1])
    assert " ".join(line.strip().removeprefix(f"{marker} ") for line in comments) == f"First {LONG.strip()}. Last line."


def test_short_paragraphs_stay_unchanged() -> None:
    text = "/// A short\n/// paragraph.\n///\n/// Another one.\n// A comment.\nfn f() {}\n"
    assert wrapped(RUST, text) == text


def test_only_the_paragraph_of_the_long_line_changes() -> None:
    result = wrapped(RUST, f"/// A short\n/// paragraph.\n///\n/// {LONG}\n///\n/// The\n/// end.\n")
    assert result.startswith("/// A short\n/// paragraph.\n///\n/// word")
    assert result.endswith("word\n///\n/// The\n/// end.\n")


def test_items_of_lists_keep_their_hanging_indent() -> None:
    result = wrapped(RUST, f"/// * {LONG}\n///   goes on\n/// * short\n/// 10. {LONG}\n")
    lines = result.split("\n")
    assert lines[0].startswith("/// * word")
    assert lines[1].startswith("///   word")
    assert lines[1].endswith("goes on")
    assert lines[2] == "/// * short"
    assert lines[3].startswith("/// 10. word")
    assert lines[4].startswith("///     word")


def test_sections_of_a_docstring_in_rust_keep_their_entries() -> None:
    entries = f"///     first: {LONG}\n///     second: Short.\n///     third: {LONG}\n///         goes on."
    text = f"/// Adds.\n///\n/// Args:\n{entries}\n"
    lines = wrapped(RUST, text).split("\n")
    assert lines[:3] == ["/// Adds.", "///", "/// Args:"]
    assert lines[3].startswith("///     first: word")
    assert lines[4].startswith("///         word")
    assert lines[5] == "///     second: Short."
    assert lines[6].startswith("///     third: word")
    assert lines[-2].endswith("word goes on.")


@pytest.mark.parametrize(
    "line",
    [
        f"/// | {LONG} |",
        f"/// # {LONG}",
        f"/// [`link`]: https://example.org/{'x' * 150}",
        f"// ---- title {'-' * 150}",
        f"/// ```\n/// {LONG}\n/// ```",
        f'let x = "{LONG}"; // {LONG}',
    ],
)
def test_tables_headings_links_rules_and_code_stay_unchanged(line: str) -> None:
    assert wrapped(RUST, line + "\n") == line + "\n"


@pytest.mark.parametrize("start", ["SAFETY:", "TODO:"])
def test_a_safety_comment_stays_a_separate_paragraph(start: str) -> None:
    lines = wrapped(RUST, f"// Short.\n// {start} {LONG}\n").split("\n")
    assert lines[0] == "// Short."
    assert lines[1].startswith(f"// {start} word")
    assert lines[2].startswith("// word")


def test_a_sign_that_would_start_a_list_is_not_moved_to_the_start_of_a_line() -> None:
    for length in range(100, 120):
        lines = wrapped(RUST, f"/// {'x' * length} - 3. {LONG}\n").split("\n")
        assert not any(line.startswith(("/// -", "/// 3.")) for line in lines)


def test_python_comments_are_wrapped_and_strings_directives_and_code_are_not() -> None:
    text = f'''
# {LONG}
# goes on
x = """
# {LONG}
"""  # {LONG}
# type: ignore[{"a, " * 60}]
'''
    lines = wrapped(PYTHON, text).split("\n")
    assert lines[1].startswith("# word")
    assert len(lines[1]) <= 120
    assert lines[2].endswith("word goes on")
    assert lines[3:] == text.split("\n")[3:]


def test_comments_of_a_makefile_are_wrapped() -> None:
    lines = wrapped(Path("Makefile"), f"# {LONG}\ngoal:\n\t@# {LONG}\n\tcommand {LONG}\n").split("\n")
    assert [line[:6] for line in lines] == ["# word", "# word", "goal:", "\t@# wo", "\t@# wo", "\tcomma", ""]


def test_docstrings_are_wrapped_and_keep_their_sections() -> None:
    text = f'''
class C:
    """A class. {LONG}

    Args:
        first: {LONG}
        second: Short.

    Returns:
        {LONG}
        goes on.

    ```
    {LONG}
    ```"""
'''
    result = wrapped(PYTHON, text)
    lines = result.split("\n")
    assert lines[2].startswith('    """A class. word')
    assert lines[3].startswith("    word")
    assert lines[5] == "    Args:"
    assert lines[6].startswith("        first: word")
    assert lines[7].startswith("            word")
    assert lines[8] == "        second: Short."
    assert lines[10] == "    Returns:"
    assert lines[12].endswith("word goes on.")
    assert lines[12].startswith("        word")
    assert [line for line in lines if len(line) > 120] == [f"    {LONG}"]
    assert ast.get_docstring(ast.parse(result).body[0]).split() == ast.get_docstring(ast.parse(text).body[0]).split()  # type: ignore[arg-type, union-attr]


WORDS = st.sampled_from(
    ["a", "word", "-", "*", "1.", "12)", "#", "`code`", "//", "SAFETY:", "TODO", "|", "longer" * 10, "x" * 130]
)


@given(
    st.lists(st.tuples(st.sampled_from(["", "", "  ", "* ", "- ", "1. "]), st.lists(WORDS, max_size=40)), max_size=6)
)
def test_any_comment_keeps_its_words_and_a_second_run_changes_nothing(lines: list[tuple[str, list[str]]]) -> None:
    text = [indent + " ".join(words) for indent, words in lines]
    result = wrap_comments.wrap(text, 116)
    assert " ".join(result).split() == " ".join(text).split()
    assert wrap_comments.wrap(result, 116) == result

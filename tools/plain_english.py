"""Finds the words and forms that docs/style.md replaces by plainer ones, in comments, documents and texts.

Usage: `python tools/plain_english.py [PATH ...]`. Reads the files that git lists: comments and string literals of Rust,
Python, C and Java, comments of TOML, YAML and the Makefile, and the prose of Markdown. Words in backticks and fenced
code are left out. Prints one line for each finding. If there is a finding, the exit status is 1.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

MAX_COLUMNS = 120

# The linter and its test quote the forms that the linter finds.
NOT_READ = {Path("tools/plain_english.py"), Path("tests/test_plain_english.py")}

# A sentence starts at the start of a paragraph or list item, and after one of the characters `.:;!?` and a space.
SENTENCE = r"(?:^|(?<=[.:;!?] )|(?<=\n\n)|(?<=\n- )|(?<=\n\* ))"
PERSON = (
    r"(?:user|reader|engineer|person|people|operator|attacker|contributor|maintainer|anyone|anybody|everyone|somebody"
    r"|someone|those|newcomer|author|team)s?"
)

# Each pattern has its advice for the writer. A question may start with a question word.
PATTERNS = [
    (SENTENCE + r"(?:Who|Whose|Whoever|What|Whatever)\b(?![^.?!]*\?)", "name the subject of the sentence"),
    (r"\bwho\b", "name the thing; 'who' only after a person"),
    (r"\b[Aa]nswers\b", "write 'returns', 'replies' or 'responses'"),
    (r"(?<!\b[Tt]here )\b(?:[Ii]s|[Aa]re|[Ww]as|[Ww]ere|be) none\b(?! of)", "write 'is not …' or 'is empty'"),
    (r"\b[Bb]ehind\b", "write 'after', or name the place"),
    (r"\b(?:became|becomes?) of\b", "write 'outcome' or 'result'"),
    (r"\b(?:[Hh]ands|[Hh]anded) (?!over\b|out\b)", "write 'passes', 'returns' or 'calls … with'"),
    (r"\b(?:is|are|was|were|be|been) given up\b", "write 'stops', 'is abandoned' or 'times out'"),
    (r"\b(?:of|to) whom?\b", "name the thing"),
    (r"\b(?:thereof|whereof|wherein|thereby|whence|thither|hither|lest)\b", "write a usual word"),
]
FORBIDDEN = [(re.compile(pattern, re.M), advice) for pattern, advice in PATTERNS]

# A person is "who", a stream lags behind, a kill leaves a file behind, and a host is behind a NAT.
ALLOWED = re.compile(
    rf"\b{PERSON}(?:\W+\w+){{0,3}}?\W+(?:who|whom)\b"
    r"|\b(?:falls?|fell|fallen|falling|lags?|lagging|far) behind\b|\b(?:leaves?|left|leaving)(?:\W+\w+){0,8}? behind\b"
    r"|\bbehind (?:a|an|the) (?:NAT|firewall|proxy|flag)\b",
    re.I,
)

# Comments and literals of Rust, C and Java. A character literal is matched so that its quote starts no string.
TOKEN = re.compile(
    r"""//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|\br(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)"""
    r"""|"(?P<text>(?:[^"\\]|\\.)*)"|'(?:[^'\\\n]|\\[^\n]*?)'""",
    re.S,
)


def comments_and_strings(text: str) -> Iterator[tuple[int, str]]:
    """Yields the line number and the text of each comment and string literal of Rust, C or Java.

    Comments with the same marker on consecutive lines without code are one block.
    """
    block: list[str] = []
    first = last = 0
    marker = ""
    for match in TOKEN.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        if match["line"] is None:
            content = match["text"] or match["raw"]
            if match["block"] is not None:
                yield number, re.sub(r"(?m)^\s*\* ?", "", match["block"]).strip()
            elif content and " " in content:
                yield number, re.sub(r"\\\n\s*", "", content).replace("\\n", "\n")
            continue
        found, line = re.match(r"([/!]?)(?: |$)?(.*)", match["line"]).groups()  # type: ignore[union-attr] # matches anything
        alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        if not (block and alone and number == last + 1 and found == marker):
            if block:
                yield first, "\n".join(block)
            block, first = [], number
        block.append(line)
        last, marker = (number, found) if alone else (0, "")
    if block:
        yield first, "\n".join(block)


def python_comments_and_strings(text: str) -> Iterator[tuple[int, str]]:
    """Yields the line number and the text of each block of comments, each docstring and each string with a space."""
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            number = token.start[0]
            alone = token.line.lstrip().startswith("#")
            if not (block and alone and number == last + 1):
                if block:
                    yield first, "\n".join(block)
                block, first = [], number
            block.append(re.sub(r"^#+ ?", "", token.string))
            last = number if alone else 0
    if block:
        yield first, "\n".join(block)
    nodes = list(ast.walk(ast.parse(text)))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            value = "".join(str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            value = node.value
        else:
            continue
        if " " in value.strip():
            yield node.lineno, "\n".join(line.strip() for line in value.splitlines())


def hash_comments(text: str) -> Iterator[tuple[int, str]]:
    """Yields one text with the comments of a Makefile, TOML or YAML file. Each line without a comment is empty."""
    comments = (re.search(r"(?:^|\s)@?# (.*)", line) for line in text.splitlines())
    yield 1, "\n".join(comment[1] if comment else "" for comment in comments)


def markdown_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yields one text with the prose of a Markdown file. Each line of fenced code is empty."""
    fence = ""
    lines = []
    for line in text.splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        lines.append("" if fence or mark else line)
        if mark:
            fence = mark[1] if not fence else "" if mark[1].startswith(fence) else fence
    yield 1, "\n".join(lines)


READERS: dict[str, Callable[[str], Iterator[tuple[int, str]]]] = {
    **dict.fromkeys((".rs", ".c", ".h", ".java"), comments_and_strings),
    **dict.fromkeys((".py", ".pyi"), python_comments_and_strings),
    **dict.fromkeys((".toml", ".yml"), hash_comments),
    ".md": markdown_prose,
}


def findings_in_prose(prose: str) -> Iterator[tuple[int, str]]:
    """Yields the offset of the line, from 0, and the message of each finding in one comment, string or document."""
    code = re.sub(r"(?ms)^\s*```.*?^\s*```", lambda match: re.sub(r"[^\n]", " ", match[0]), prose)
    code = re.sub(r"(`+)[^`].*?(?<!`)\1(?!`)", lambda match: re.sub(r"[^\n]", "`", match[0]), code)
    # A sentence may continue on the next line, but not in the next paragraph, list item, table row or heading.
    flat = re.sub(r"(?<!\n)\n(?!\n|\s*[-*+] |\s*\d+\. |\s*\||#)", " ", code)
    allowed = [match.span() for match in ALLOWED.finditer(flat)]
    for pattern, advice in FORBIDDEN:
        for match in pattern.finditer(flat):
            if not any(start <= match.start() and match.end() <= end for start, end in allowed):
                yield prose.count("\n", 0, match.start()), f"{match[0].strip()!r}: {advice}"


def reader(path: Path) -> Callable[[str], Iterator[tuple[int, str]]] | None:
    """Returns the function that reads the prose of a file, or `None` if the linter does not read the file."""
    if path in NOT_READ or not path.exists():
        return None
    return hash_comments if path.name == "Makefile" else READERS.get(path.suffix)


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line number and the message of each finding in a file. Files of an unknown kind are not read."""
    read = reader(path)
    if read is None:
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        marker = re.compile(r"\s*#" if read in (python_comments_and_strings, hash_comments) else r"\s*//(?!/ \|)")
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > MAX_COLUMNS and marker.match(line):
                yield number, f"{len(line)} columns: at most {MAX_COLUMNS} for a comment"
    for first, prose in read(text):
        for offset, message in findings_in_prose(prose):
            yield first + offset, message


def main(arguments: list[str]) -> int:
    """Prints the findings in the given paths, or in all files of the repository. Returns the exit status."""
    listed = subprocess.run(["git", "ls-files", "-z", *arguments], capture_output=True, text=True, check=True).stdout
    count = 0
    for path in map(Path, filter(None, listed.split("\0"))):
        for number, message in sorted(findings(path)):
            print(f"{path}:{number}: {message}")
            count += 1
    print(f"{count} findings", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

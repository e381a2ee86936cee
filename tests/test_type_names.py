"""Tests that no two Rust types of a crate share a name, and that no two public types of any crates share a name."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

RUST = Path(__file__).parent.parent / "rust"

# Names that two types of a crate may share, with the reason.
SAME_IN_A_CRATE = {
    ("driver", "Received"): "two declarations, for Linux and for other systems; a build contains one of them",
}

# Names that public types of several crates may share, with the reason.
SAME_IN_EACH_CRATE = {
    "Result": "Rust's idiom: an alias of the standard `Result` with the error type of the crate",
}

VISIBILITY = r"(?:pub(?:\([a-z: ]+\))? )?"
DECLARATION = re.compile(
    r" *(?P<visibility>pub(?:\([a-z: ]+\))? )?(?:unsafe )?(?:struct|enum|trait|union|type) (?P<name>[A-Z]\w*)"
)
OPENING = re.compile(rf" *{VISIBILITY}mod \w+ {{$")
TEST_ONLY = re.compile(r"#\[cfg\((?:all\()?test\b")
TEST_MODULE = re.compile(rf"#\[cfg\((?:all\()?test\b[^\n]*\n(?: *#\[[^\n]*\n)*{VISIBILITY}mod (\w+);")


class Type(NamedTuple):
    """A declaration of a type."""

    name: str
    crate: str
    public: bool
    place: str


def declared_types() -> list[Type]:
    """Returns the types that the crates' sources declare outside of tests."""
    types = []
    for source in sorted(RUST.glob("*/src")):
        tests = modules_of_tests(source)
        folders = {test.parent if test.name == "mod.rs" else test.with_suffix("") for test in tests}
        for file in sorted(source.rglob("*.rs")):
            if file not in tests and not folders.intersection(file.parents):
                types += types_of(file, source.parent.name)
    return types


def modules_of_tests(source: Path) -> set[Path]:
    """Returns the possible files of the modules that are compiled only for tests."""
    found = set()
    for file in source.rglob("*.rs"):
        folder = file.parent if file.stem in ("lib", "main", "mod") else file.with_suffix("")
        for name in TEST_MODULE.findall(file.read_text()):
            found |= {folder / f"{name}.rs", folder / name / "mod.rs"}
    return found


def types_of(file: Path, crate: str) -> list[Type]:
    """Returns the types that a file declares at the level of a module. The scan relies on rustfmt's indentation."""
    types = []
    modules: list[int] = []  # indentations of the inline modules that contain the line
    skipped: int | None = None  # indentation of the test module that contains the line
    is_test = False  # whether an attribute before the line marks the item on the line as test code
    for number, line in enumerate(file.read_text().splitlines(), 1):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if skipped is not None:
            if text.startswith("}") and indent == skipped:
                skipped = None
        elif modules and text == "}" and indent == modules[-1]:
            modules.pop()
        elif TEST_ONLY.match(text):
            is_test = True
        elif not text or text.startswith(("#[", "//")):
            continue
        elif is_test:
            is_test = False
            if text.endswith("{"):
                skipped = indent
        elif OPENING.match(line):
            modules.append(indent)
        elif (found := DECLARATION.match(line)) and indent == (modules[-1] + 4 if modules else 0):
            place = f"{file.relative_to(RUST)}:{number}"
            types.append(Type(found["name"], crate, found["visibility"] == "pub ", place))
    return types


def listing(types: list[Type]) -> str:
    return f"{types[0].name}: " + ", ".join(kind.place for kind in types)


def shared_names(types: Iterable[Type]) -> Iterator[list[Type]]:
    """Yields lists of types that share a name."""
    named: dict[str, list[Type]] = defaultdict(list)
    for kind in types:
        named[kind.name].append(kind)
    return (same for _, same in sorted(named.items()) if len(same) > 1)


def test_no_two_types_of_a_crate_share_a_name() -> None:
    crates: dict[str, list[Type]] = defaultdict(list)
    for kind in declared_types():
        crates[kind.crate].append(kind)
    assert len(crates) >= 11
    found = [
        listing(same)
        for crate, types in sorted(crates.items())
        for same in shared_names(types)
        if (crate, same[0].name) not in SAME_IN_A_CRATE
    ]
    assert not found, "types of one crate share a name:\n" + "\n".join(found)


def test_no_two_public_types_share_a_name() -> None:
    found = [
        listing(same)
        for same in shared_names(kind for kind in declared_types() if kind.public)
        if len({kind.crate for kind in same}) > 1 and same[0].name not in SAME_IN_EACH_CRATE
    ]
    assert not found, "public types of two crates share a name:\n" + "\n".join(found)


def test_each_name_in_the_lists_of_exceptions_is_shared() -> None:
    types = declared_types()
    for (crate, name), reason in SAME_IN_A_CRATE.items():
        assert len([kind for kind in types if (kind.crate, kind.name) == (crate, name)]) > 1, (
            f"{name} is not shared ({reason}): remove it from the list"
        )
    for name, reason in SAME_IN_EACH_CRATE.items():
        assert len({kind.crate for kind in types if kind.public and kind.name == name}) > 1, (
            f"{name} is not shared ({reason}): remove it from the list"
        )


def test_the_scan_finds_all_types_except_those_of_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "sample" / "src"
    (source / "deep").mkdir(parents=True)
    (source / "lib.rs").write_text(
        "mod deep;\n#[cfg(test)]\nmod tests;\n\npub struct Plain;\n\nmod inline {\n    pub(super) enum Nested {\n"
        "        Variant,\n    }\n}\n\nimpl Iterator for Plain {\n    type Item = u8;\n}\n\n#[cfg(test)]\n"
        "mod more_tests {\n    struct Tested;\n}\n"
    )
    (source / "tests.rs").write_text("struct AlsoTested;\n")
    (source / "deep" / "mod.rs").write_text("pub(crate) type Plain = u8;\n")
    monkeypatch.setattr(sys.modules[__name__], "RUST", tmp_path)
    types = declared_types()
    assert sorted((kind.name, kind.public) for kind in types) == [("Nested", False), ("Plain", False), ("Plain", True)]
    assert [listing(same) for same in shared_names(types)] == ["Plain: sample/src/deep/mod.rs:1, sample/src/lib.rs:5"]

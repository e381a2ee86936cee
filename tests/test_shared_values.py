"""Tests that docs/shared-values.md lists every value that threads share, and that the models in it exist.

Rust shares only values whose types are `Sync`. Such a value never changes, or it contains one of these: a type of
`std::sync` or of another library's module for sharing, words of shared memory, or a type with an `unsafe impl Sync`.
The test finds all of them in the sources. `Cell` and `RefCell` are not `Sync`, so they stay in one thread.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "shared-values.md"
MODELS = ROOT / "rust" / "memory" / "tests"

# Modules whose types let threads share a value that changes.
MODULES = ("std::sync", "tokio::sync", "spin", "rtrb", "pyo3::sync", "core::sync", "crossbeam", "parking_lot")
# Names of these modules that share nothing themselves: references, guards, errors and functions.
HARMLESS = {"self", "Arc", "Weak", "Ordering", "fence", "PushError", "mpsc", "atomic"}
HARMLESS_ENDS = ("Guard", "Error", "Result")
# Types of this project that threads share, and that other files use.
OWN = {"Loans", "Waiters", "Snapshot", "QueueProducer", "QueueConsumer"}
# Functions that create the ends of a channel or a queue.
CREATORS = {"channel", "sync_channel", "request_channel", "queue"}

# Words of shared memory: the calls that change them.
WORDS = re.compile(
    r"\.(?:store_(?:u8|u16|i32|i64|i64s)_(?:relaxed|release)|fetch_add_i(?:32|64)|compare_exchange_i(?:32|64)"
    r"|copy_in|copy_in_relaxed|fill_zero)\("
)
UNSAFE = re.compile(r"unsafe impl(?:<[^>]*>)? (Send|Sync) for (\w+)")

_LEXEMES = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']*|[^'\\])'""", re.DOTALL
)
_TEST_ITEM = re.compile(
    r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?"
    r"(?:mod|impl|fn|struct|use|static|const|enum|type)\b"
)
_FIELD = re.compile(r"\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?(?:\w+\s*:(?!:)|[A-Z]\w*\s*[({])")
_USE = re.compile(r"\buse ([^;]+);")


def test_the_page_lists_each_shared_value() -> None:
    found, listed = shared_values(), listed_values()
    missing = [f"{path}: {name}" for path in sorted(found) for name in sorted(found[path] - listed[path])]
    assert not missing, "add these to docs/shared-values.md, with a model or a reason:\n" + "\n".join(missing)


def test_the_page_names_no_value_that_does_not_exist() -> None:
    found, listed = shared_values(), listed_values()
    gone = [f"{path}: {name}" for path in sorted(listed) for name in sorted(listed[path] - found[path])]
    assert not gone, "docs/shared-values.md names values that the sources do not have:\n" + "\n".join(gone)


def test_each_row_of_the_page_has_a_reason_or_a_model_that_exists() -> None:
    models = {
        name for path in MODELS.glob("loom_*/*.rs") for name in re.findall(r"^fn (\w+)\(\) \{", path.read_text(), re.M)
    }
    models |= set(re.findall(r"^fn (\w+)\(\) \{", (MODELS / "loom_log.rs").read_text(), re.M))
    listed = list(rows())
    assert len(listed) > 100
    for path, names, why in listed:
        is_explained = "model `" in why or len(why.split()) >= 3
        assert is_explained, f"{path} {names}: say which model shows it, or why it needs none"
        for model in re.findall(r"model `(\w+)`", why):
            assert model in models, f"{path} {names}: there is no model {model}"


def test_the_finder_finds_all_kinds_of_shared_values() -> None:
    text = """
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::sync::mpsc::{Receiver as Queue, channel};
        use std::sync::{Arc, Mutex, MutexGuard};
        use aeron_memory::Waiters;
        static OPEN: Mutex<Vec<u8>> = Mutex::new(Vec::new()); // Mutex<u8>
        type Function = Arc<Mutex<Option<u8>>>;
        struct Pool(Mutex<Vec<u8>>);
        pub struct Shared<T> {
            /// Whether "AtomicBool" is a text.
            pub(crate) is_over: Arc<AtomicBool>,
            queue: std::sync::RwLock<
                u8,
            >,
            commands: Queue<u8>, waiters: Waiters,
            name: &'static str,
        }
        enum Source { Running(Queue<u8>), Idle }
        fn lock(mutex: &Mutex<u8>) -> MutexGuard<'_, u8> { mutex.lock() }
        fn start() {
            let (sender, receiver) = channel::<u8>();
            let is_done = Arc::new(AtomicBool::new(false));
            words.store_i64_release(0, 1);
        }
        unsafe impl Sync for Memory {}
        #[cfg(test)]
        mod tests { static TURN: Mutex<()> = Mutex::new(()); }
    """
    assert values_in(text) == {
        "OPEN",
        "Function",
        "Pool",
        "is_over",
        "queue",
        "commands",
        "waiters",
        "Source",
        "sender",
        "receiver",
        "is_done",
        "words",
        "unsafe impl Sync for Memory",
    }


@functools.cache
def shared_values() -> dict[str, set[str]]:
    """Returns the names of the shared values of each file, by the path of the file below `rust`."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(ROOT.glob("rust/*/src/**/*.rs")):
        name = path.relative_to(ROOT / "rust").as_posix()
        if name.startswith("simulator/") or re.search(r"/(?:tests|algorithm_tests)(?:/|\.rs)", name):
            continue
        if values := values_in(path.read_text()):
            found[name] = values
    return found


def rows() -> Iterator[tuple[str, list[str], str]]:
    """Returns file, names and reason of each row of the tables. An empty first cell means the file of the row above."""
    path = ""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| ") or len(cells) != 3 or cells[0] == "file":
            continue
        path = cells[0].strip("`") or path
        yield path, re.findall(r"`([^`]+)`", cells[1]), cells[2]


def listed_values() -> dict[str, set[str]]:
    listed: dict[str, set[str]] = defaultdict(set)
    for path, names, _ in rows():
        assert not listed[path] & set(names), f"{path}: {listed[path] & set(names)} is listed twice"
        listed[path] |= set(names)
    return listed


def values_in(text: str) -> set[str]:
    """Returns the names of the values in a source that several threads may change or see changed."""
    text = without_tests(_LEXEMES.sub(lambda lexeme: re.sub(r"[^\n]", " ", lexeme[0]), text))
    types = imported_types(text)
    body = _USE.sub(lambda use: " " * len(use[0]), text)
    values = {f"unsafe impl {found[1]} for {found[2]}" for found in UNSAFE.finditer(body)}
    if WORDS.search(body):
        values.add("words")
    kinds = "|".join(sorted(map(re.escape, types), reverse=True))
    use = rf"(?<![\w:])(?:{kinds})(?=\s*(?:<|>|,|;|\)|::(?:new|default)\b|\s=))|" if kinds else ""
    shared = re.compile(rf"{use}\b(?:std|tokio|core)::sync::(?:\w+::)*(?!Arc\b|Weak\b)[A-Z]\w*")
    for found in shared.finditer(body):
        if name := name_of(body, found.start()):
            values.add(name)
    creators = "|".join(CREATORS & (created_here(text)))
    if creators:
        for pair in re.finditer(rf"\blet \(([^)]*)\) =\s*(?:{creators})\b", body):
            values |= {name.strip().removeprefix("mut ") for name in pair[1].split(",")}
    return values


def imported_types(text: str) -> set[str]:
    """Returns the names under which a file uses types that share a value."""
    types = {name for name in OWN if re.search(rf"\buse [^;]*\b{name}\b", text)}
    for use in _USE.finditer(text):
        for path, alias in leaves(use[1]):
            module, _, name = path.rpartition("::")
            is_shared = module.startswith(MODULES) and name not in HARMLESS and not name.endswith(HARMLESS_ENDS)
            if is_shared and name[0].isupper():
                types.add(alias)
    return types


def created_here(text: str) -> set[str]:
    """Returns the names under which a file imports functions that create channels."""
    return {alias for use in _USE.finditer(text) for _, alias in leaves(use[1])} | {"queue"}


def leaves(tree: str) -> Iterator[tuple[str, str]]:
    """Returns the path and the local name of each import in a tree such as `std::{cell::Cell, sync::Arc as A}`."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        yield path.strip(), (alias.strip() or path.rpartition("::")[2].strip())
        return
    depth, start = 0, 0
    inner = rest[: rest.rindex("}")]
    for at, letter in enumerate([*inner, ","]):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if part := inner[start:at].strip():
                yield from leaves(head.strip() + part)
            start = at + 1


def name_of(text: str, at: int) -> str | None:
    """Returns the name of the value or type in whose declaration the type at this place is.

    Returns `None` for a parameter or a result of a function, and for a reference: its value is declared elsewhere.
    """
    begin = at
    depth = 0
    while begin > 0:
        letter = text[begin - 1]
        if letter in ")]>" and text[begin - 2 : begin] not in ("->", "=>"):
            depth += 1
        elif letter in "([<" and depth > 0:
            depth -= 1
        elif letter in "{};" or (letter == "," and depth <= 0 and is_field_end(text, begin)):
            break
        begin -= 1
    declaration = " ".join(text[begin:at].split())
    patterns = (
        r"\bstatic (?:mut )?(\w+)\s*:",
        r"\bstruct (\w+)(?:<.*?>)?\s*\(",
        r"\btype (\w+)(?:<.*?>)?\s*=",
        r"\blet (?:mut )?(\w+)\s*(?::.*)?=(?!=)",
        r"^(?:#\[[^\]]*\] )*(?:pub(?:\([^)]*\))? )?(\w+):(?!:)(?! ?&)",
    )
    is_reference = re.search(r"&(?:'\w+ ?)?(?:mut ?)?(?:\w+<)*$", declaration)
    if is_reference or re.search(r"\bfn \w+", declaration):
        return None
    for pattern in patterns:
        if found := re.search(pattern, declaration):
            return found[1]
    if re.match(r"^[A-Z]\w* ?\($", declaration):
        return enum_around(text, begin)
    return None


def is_field_end(text: str, at: int) -> bool:
    """Whether the comma before `at` ends a field or a variant: the text after it looks like the next one."""
    return _FIELD.match(text, at) is not None


def enum_around(text: str, at: int) -> str | None:
    """Returns the name of the enum in whose variants the place is."""
    before = text[:at]
    enums = list(re.finditer(r"\benum (\w+)[^{;]*\{", before))
    if not enums:
        return None
    inside = before[enums[-1].end() :]
    return enums[-1][1] if inside.count("{") >= inside.count("}") else None


def without_tests(text: str) -> str:
    """Blanks the items that are compiled only for tests."""
    for found in list(_TEST_ITEM.finditer(text)):
        end = found.end()
        while end < len(text) and text[end] not in "{;":
            end += 1
        depth = 0
        while end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                break
            end += 1
        blank = re.sub(r"[^\n]", " ", text[found.start() : end + 1])
        text = text[: found.start()] + blank + text[end + 1 :]
    return text

"""Types of the messages of an SBE schema for editors and type checkers."""

from __future__ import annotations

import keyword
import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from aeron._sbe_records import DecodedEntry, DecodedMessage, attributes_of

if TYPE_CHECKING:
    from aeron.sbe import Schema

_HEAD = '''"""Messages of the SBE schema '{package}', id {id}, version {version}. Written by `aeron.sbe.Schema.stub`."""

from decimal import Decimal
from typing import Any

from aeron.sbe import DecodedEntry, DecodedGroup, DecodedMessage
'''


class _Element(NamedTuple):
    """A row of the description of a template."""

    depth: int
    name: str
    kind: str
    offset: int | None
    presence: str
    since_version: int


def stub_of(schema: Schema) -> str:
    """Returns the text of a ``.pyi`` file with a class for each message, and for the entries of each group."""
    package = re.sub(r"[^\w.:-]", "?", schema.package)
    blocks = [_HEAD.format(package=package, id=schema.id, version=schema.version)]
    for template in schema.values():
        name = f"{template.name}_" if keyword.iskeyword(template.name) else template.name
        # A name that is no name in Python cannot be used in a program.
        if name.isidentifier():
            elements = [_Element(*element) for element in template._elements]
            blocks += _classes(elements, 0, name, DecodedMessage)
    return "\n\n".join(blocks) + "\n"


def _classes(elements: list[_Element], depth: int, name: str, base: type[DecodedMessage | DecodedEntry]) -> list[str]:
    """Returns the classes of the entries of the groups of a block, and after them the class of the block."""
    classes: list[str] = []
    types: dict[str, str] = {}
    for index, element in enumerate(elements):
        if element.depth != depth:
            continue
        if element.kind != "group":
            types[element.name] = _type(element)
            continue
        below = list(takewhile(lambda inner: inner.depth > depth, elements[index + 1 :]))
        entry = name + "_" + re.sub(r"\W", "_", element.name)
        classes += _classes(below, depth + 1, entry, DecodedEntry)
        types[element.name] = f"DecodedGroup[{entry}]"
    lines = [f"class {name}({base.__name__}):"]
    for attribute, element_name in attributes_of(list(types), base).items():
        if attribute.isidentifier():
            lines += ["    @property", f"    def {attribute}(self) -> {types[element_name]}: ..."]
    return [*classes, "\n".join(lines if len(lines) > 1 else [*lines, "    pass"])]


def _type(element: _Element) -> str:
    """Returns the type of a value of a decoded message."""
    type_ = _type_of_kind(element.kind)
    may_be_null = element.presence == "optional" or element.since_version > 0
    return f"{type_} | None" if may_be_null else type_


def _type_of_kind(kind: str) -> str:
    first, _, rest = kind.partition(" ")
    if first == "data":
        return "str" if rest else "bytes"
    named = {"enum": "str | int", "set": "list[str]", "decimal": "Decimal", "composite": "dict[str, Any]"}
    if first in named:
        return named[first]
    primitive, _, count = first.partition("[")
    if primitive == "char":
        return "str"
    if primitive == "uint8" and count:
        return "bytes"
    number = "float" if primitive in ("float", "double") else "int"
    return f"list[{number}]" if count else number

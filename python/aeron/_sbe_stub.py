"""Types of the messages of an SBE schema for editors and type checkers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aeron.sbe import Schema, Template

_HEAD = '''"""Messages of the SBE schema '{package}', id {id}, version {version}. Written by `aeron.sbe.Schema.stub`."""

from decimal import Decimal
from typing import Any, TypedDict

from aeron.sbe import DecodedMessage
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
    """Returns the text of a ``.pyi`` file with a class for each message, and a dict type for each group."""
    package = re.sub(r"[^\w.:-]", "?", schema.package)
    blocks = [_HEAD.format(package=package, id=schema.id, version=schema.version)]
    for template in schema.values():
        # A name that is no name in Python cannot be used in a program.
        if template._class_name.isidentifier():
            blocks.append("\n".join(_class(template)))
    return "\n\n".join(blocks) + "\n"


def _class(template: Template) -> list[str]:
    elements = [_Element(*element) for element in template._elements]
    groups: list[str] = []
    types = _types(elements, 0, template._class_name, groups)
    lines = [*groups, f"class {template._class_name}(DecodedMessage):"]
    for attribute, name in template._attributes.items():
        if attribute.isidentifier():
            lines += ["    @property", f"    def {attribute}(self) -> {types[name]}: ..."]
    return lines if len(lines) > len(groups) + 1 else [*lines, "    pass"]


def _types(elements: list[_Element], depth: int, path: str, groups: list[str]) -> dict[str, str]:
    """Returns the types of the elements of a block by name. Adds the dict types of its groups to `groups`."""
    types: dict[str, str] = {}
    for index, element in enumerate(elements):
        if element.depth != depth:
            continue
        if element.kind != "group":
            types[element.name] = _type(element)
            continue
        below: list[_Element] = []
        for inner in elements[index + 1 :]:
            if inner.depth <= depth:
                break
            below.append(inner)
        name = path + "_" + re.sub(r"\W", "_", element.name)
        entry = _types(below, depth + 1, name, groups)
        members = ", ".join(f"{member!r}: {type_}" for member, type_ in entry.items())
        groups.append(f'{name} = TypedDict("{name}", {{{members}}})\n')
        types[element.name] = f"list[{name}]"
    return types


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

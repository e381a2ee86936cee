"""Decoded SBE messages, their groups and entries, and the classes of a template."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from aeron._pipeline import _SbeBlock, _SbeEntries, _SbeRecord

if TYPE_CHECKING:
    from aeron.sbe import Template

Entry_co = TypeVar("Entry_co", bound="DecodedEntry", covariant=True)


class _Record(_SbeRecord):
    """Elements by attribute and by name: the part that messages and entries share."""

    __slots__ = ()
    _attributes: ClassVar[dict[str, str]] = {}
    """Names of the elements by the names of their attributes."""
    _of_elements: ClassVar[dict[str, str]] = {}
    """Names of the attributes by the names of their elements."""

    # Without this line, Python would iterate over an object with `__getitem__` by integers.
    __iter__ = None

    def __getattr__(self, name: str) -> Any:
        """Raises an error that names the attributes: each of them is found before."""
        known = ", ".join(self._attributes)
        raise AttributeError(f"a {type(self).__name__} has no '{name}'{known and f': it has {known}'}")

    def __getitem__(self, name: str) -> Any:
        """Returns the value of the element with this name in the schema."""
        attribute = self._of_elements.get(name)
        if attribute is None:
            known = ", ".join(self._of_elements)
            raise KeyError(f"a {type(self).__name__} has no element '{name}'{known and f': it has {known}'}")
        return getattr(self, attribute)

    def __repr__(self) -> str:
        """Returns the values as a text, or the reason why they cannot be read."""
        name = type(self).__name__
        try:
            values = self.as_dict()
        except Exception as error:
            return f"<{name}, not readable: {error}>"
        return f"{name}({', '.join(f'{element}={value!r}' for element, value in values.items())})"


class DecodedEntry(_Record):
    """An entry of a group of a decoded message, which reads its values as a `DecodedMessage` does.

    Each field, group and data is an attribute, and ``entry["price"]`` returns the value of a name in the schema. An
    entry is equal to a dict of the same values.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Callable[..., DecodedEntry], tuple[Any, int]]:
        """Pickles the group and the index."""
        return _entry_of, (self._group, self._index)

    def __eq__(self, other: object) -> bool:
        """Compares names of groups and all values, or all values with a dict."""
        if isinstance(other, DecodedEntry):
            return type(self).__name__ == type(other).__name__ and self.as_dict() == other.as_dict()
        return self.as_dict() == other if isinstance(other, dict) else NotImplemented


class DecodedGroup(_SbeEntries, Sequence[Entry_co], Generic[Entry_co]):
    """A group of a decoded message: a sequence of `DecodedEntry`. A slice is a list.

    A group is equal to a list of equal entries.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Callable[..., DecodedGroup[Any]], tuple[Any, str]]:
        """Pickles the message or entry with this group, and the name of the group."""
        return _group_of, (self._record, self._name)

    def __eq__(self, other: object) -> bool:
        """Compares all entries."""
        return list(self) == list(other) if isinstance(other, list | DecodedGroup) else NotImplemented

    def __repr__(self) -> str:
        """Returns the entries as a text, or the reason why they cannot be read."""
        try:
            return repr(list(self))
        except Exception as error:
            return f"<group '{self._name}', not readable: {error}>"


class DecodedMessage(_Record):
    """A message that reads its values from its bytes when they are used.

    Each field, group and data is an attribute. A name that is a keyword of Python, or that this class needs itself,
    gets a ``_`` at its end: ``class_``. ``message["class"]`` returns the value of a name in the schema. An enum is its
    name, or its number if the schema does not know it; a set is a list of names; a time is an integer in the unit of
    its field; a group is a `DecodedGroup`. A null is `None`.

    The message is valid as long as its buffer: after a handler has returned, the payload that it got is released, and
    each attribute raises `ValueError`. Bytes are kept. If the buffer has other bytes now, an attribute returns their
    value, or raises `InvalidArgumentError`. `as_dict` returns a copy of all values. Thread-safe.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    template: Template
    """The template of the message."""

    def __reduce__(self) -> tuple[Callable[..., DecodedMessage], tuple[Template, bytes]]:
        """Pickles the template and the bytes of the message."""
        return _message_of, (self.template, self._message())

    def __eq__(self, other: object) -> bool:
        """Compares templates by name, and all values."""
        if not isinstance(other, DecodedMessage):
            return NotImplemented
        return self.template.name == other.template.name and self.as_dict() == other.as_dict()


def message_class(block: _SbeBlock, template: Template) -> type[DecodedMessage]:
    """Returns the class of the messages of a template."""
    return type(block.name, (DecodedMessage,), {"template": template, **_members(block, DecodedMessage)})


def _entry_class(block: _SbeBlock) -> type[DecodedEntry]:
    return type(block.name, (DecodedEntry,), _members(block, DecodedEntry))


def _members(block: _SbeBlock, base: type[_Record]) -> dict[str, Any]:
    """Returns the members of the class of a block: a descriptor for each element, and the maps of names."""
    names = block.names
    attributes = attributes_of(names, base)
    groups = {group.name: (index, DecodedGroup, _entry_class(group)) for index, group in enumerate(block.groups)}
    indexes = {name: index for index, name in enumerate(names)}
    descriptors = {
        attribute: block.group(*groups[name]) if name in groups else block.value(indexes[name])
        for attribute, name in attributes.items()
    }
    of_elements = {name: attribute for attribute, name in attributes.items()}
    return {"__slots__": (), "_attributes": attributes, "_of_elements": of_elements, **descriptors}


def attributes_of(names: Sequence[str], base: type[_Record]) -> dict[str, str]:
    """Returns the names of elements by the names of their attributes. No element hides another, or a name of `base`."""
    reserved = {"template", *dir(base)}

    def is_free(name: str) -> bool:
        return not keyword.iskeyword(name) and not name.startswith("__") and name not in reserved

    attributes = {name: name for name in names if is_free(name)}
    for name in names:
        if not is_free(name):
            attribute = f"{name}_"
            while attribute in attributes:
                attribute += "_"
            attributes[attribute] = name
    return attributes


def _message_of(template: Template, message: bytes) -> DecodedMessage:
    return template.decode(message)


def _group_of(record: _Record, name: str) -> DecodedGroup[Any]:
    group: DecodedGroup[Any] = record[name]
    return group


def _entry_of(group: DecodedGroup[Any], index: int) -> DecodedEntry:
    entry: DecodedEntry = group[index]
    return entry

"""Shows native classes and functions on the site: their docstrings, which the stubs do not have, and the arguments of
constructors. The stubs declare `__new__`, but the site reads only `__init__`.
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe

from aeron import _aeron


class Native(griffe.Extension):
    """Takes docstrings from the native module, and uses `__new__` as `__init__`."""

    def on_instance(self, *, obj: griffe.Object, agent: Any, **_: object) -> None:
        """Sets the docstring of a class, function, method or property in a stub."""
        if "._stubs." not in obj.path or obj.docstring is not None or obj.name.startswith("_") or obj.is_module:
            return
        owner = getattr(_aeron, obj.parent.name, None) if obj.parent.is_class else _aeron
        native = getattr(owner, obj.name, None)
        has_own_text = inspect.isclass(native) or inspect.isroutine(native) or inspect.isgetsetdescriptor(native)
        if has_own_text and (text := native.__doc__):
            obj.docstring = griffe.Docstring(
                inspect.cleandoc(text),
                parent=obj,
                parser=agent.docstring_parser,
                parser_options=agent.docstring_options,
            )

    def on_class_members(self, *, cls: griffe.Class, **_: object) -> None:
        """Adds `__init__` to a class that only has `__new__`."""
        if "__new__" in cls.members and "__init__" not in cls.members:
            cls.set_member("__init__", cls.members["__new__"])

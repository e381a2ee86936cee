"""Shows the arguments of native classes on the site. Their stubs declare `__new__`, but the site reads only
`__init__`."""

from __future__ import annotations

import griffe


class Constructors(griffe.Extension):
    """Uses `__new__` as `__init__` in classes that only have `__new__`."""

    def on_class_members(self, *, cls: griffe.Class, **_: object) -> None:
        """Adds `__init__` to a class."""
        if "__new__" in cls.members and "__init__" not in cls.members:
            cls.set_member("__init__", cls.members["__new__"])

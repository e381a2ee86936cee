"""Results of an offer that sent nothing. They are integers with Aeron's result codes, and are false in a condition.

``while not publication.offer(data): idle()`` retries after each of the three results. A comparison such as ``==
aeron.BACK_PRESSURED`` distinguishes them. A position is never false: a stream's position after a message is at
least 32.
"""

__all__ = ["ADMIN_ACTION", "BACK_PRESSURED", "NOT_CONNECTED", "NotSent"]


class NotSent(int):
    """A result of Aeron that means "not sent, try again": a negative integer that is false. Immutable.

    Programs use the three constants `NOT_CONNECTED`, `BACK_PRESSURED` and `ADMIN_ACTION`.

    Args:
        code: Aeron's result code.
        name: Name of the constant.
    """

    name: str

    def __new__(cls, code: int, name: str) -> "NotSent":
        """Creates a constant of this module."""
        self = super().__new__(cls, code)
        self.name = name
        return self

    def __bool__(self) -> bool:
        """Returns ``False``."""
        return False

    def __repr__(self) -> str:
        """Returns the name of the constant."""
        return self.name

    __str__ = __repr__

    def __reduce__(self) -> str:
        """Pickles the constant by its name, so that unpickling returns the same object."""
        return self.name


# Users import the class from `aeron`, so reprs and pickles name that module.
NotSent.__module__ = "aeron"


NOT_CONNECTED = NotSent(-1, "NOT_CONNECTED")
"""No subscriber is connected."""

BACK_PRESSURED = NotSent(-2, "BACK_PRESSURED")
"""The position limit is reached: the slowest subscriber must consume messages first."""

ADMIN_ACTION = NotSent(-3, "ADMIN_ACTION")
"""The log is rotating to its next term: try again at once."""

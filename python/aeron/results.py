"""What an offer answers when nothing was sent: false integers, equal to Aeron's result codes.

``while not publication.offer(data): idle()`` retries on all three; ``== aeron.BACK_PRESSURED`` tells them apart. A
position is never false: a stream's position after a message is at least 32.
"""

__all__ = ["ADMIN_ACTION", "BACK_PRESSURED", "NOT_CONNECTED", "NotSent"]


class NotSent(int):
    """An Aeron result code that means "not sent, try again": a negative integer that is false."""

    name: str

    def __new__(cls, code: int, name: str) -> "NotSent":
        """Only the three constants of this module exist."""
        self = super().__new__(cls, code)
        self.name = name
        return self

    def __bool__(self) -> bool:
        """Never true."""
        return False

    def __repr__(self) -> str:
        """The constant's name."""
        return self.name

    __str__ = __repr__

    def __reduce__(self) -> str:
        """Pickled by name, so that identity survives."""
        return self.name


NOT_CONNECTED = NotSent(-1, "NOT_CONNECTED")
"""No subscriber is connected."""

BACK_PRESSURED = NotSent(-2, "BACK_PRESSURED")
"""The slowest subscriber is a window behind."""

ADMIN_ACTION = NotSent(-3, "ADMIN_ACTION")
"""The log is rotating to its next term: try again at once."""

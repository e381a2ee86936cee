"""What goes wrong between Spark and Aeron: one line each, complete in itself, with what to do.

Spark prints an error's text at the end of a long trace, sent from another process. So every class here can be pickled,
says all that it knows in its message, and carries no chain of causes. :attr:`AeronSparkError.code` is for programs.
"""

from __future__ import annotations

from typing import Any

from aeron.exceptions import AeronError, DriverTimeoutError

__all__ = [
    "AeronBackPressureError",
    "AeronDataLossError",
    "AeronDriverTimeout",
    "AeronNoSubscriberError",
    "AeronOptionError",
    "AeronRecordError",
    "AeronSparkError",
    "spark_error",
]


LONGEST = 2000
"""Characters of a message: values in it may be of any length, and Spark repeats the text."""


class AeronSparkError(AeronError, RuntimeError):
    """The root of what ``format("aeron")`` raises.

    Attributes:
        code: what kind of error it is, in capitals, stable over versions.
    """

    code: str = "AERON"

    def __init__(self, message: str, code: str | None = None) -> None:
        """A message becomes one line; one of more than :data:`LONGEST` characters loses its middle."""
        line = " ".join(message.split())
        if len(line) > LONGEST:
            half = LONGEST // 2 - len(" ... ")
            line = f"{line[:half]} ... {line[-half:]}"
        super().__init__(line)
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles text and code."""
        return type(self), (str(self), self.code)


class AeronOptionError(AeronSparkError, ValueError):
    """An option, a layout or a schema is wrong; nothing was opened."""

    code = "OPTION"


class AeronDataLossError(AeronSparkError):
    """Messages that the query needs are gone; ``failOnDataLoss=false`` counts them instead."""

    code = "DATA_LOSS"


class AeronBackPressureError(AeronSparkError, TimeoutError):
    """Subscribers made no room for ``offerTimeoutMs``."""

    code = "BACK_PRESSURE"


class AeronNoSubscriberError(AeronSparkError, TimeoutError):
    """No subscriber was there for ``connectTimeoutMs``."""

    code = "NO_SUBSCRIBER"


class AeronRecordError(AeronSparkError, ValueError):
    """A message or a row does not fit the layout, the stream or the schema."""

    code = "RECORD"


class AeronDriverTimeout(AeronSparkError, DriverTimeoutError):
    """No media driver is there, or it stopped."""

    code = "DRIVER_TIMEOUT"


_BY_CODE = {kind.code: kind for kind in AeronSparkError.__subclasses__()}


def spark_error(code: str, message: str) -> AeronSparkError:
    """The exception of a code; one without a class of its own is an :class:`AeronSparkError` with that code."""
    return _BY_CODE.get(code, AeronSparkError)(message, code)

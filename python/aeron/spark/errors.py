"""Errors of ``format("aeron")``. The text of an error is one line that says what to do.

Spark prints the text of an error at the end of a long traceback from another process. So each class in this module can
be pickled, and the text of an error is complete without the chain of causes. Programs use
:attr:`AeronSparkError.code`."""

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
"""Longest message in characters. Values in a message may have any length, and Spark repeats the text."""


class AeronSparkError(AeronError, RuntimeError):
    """Base class of the errors of ``format("aeron")``.

    Attributes:
        code: Kind of the error, in capital letters. It is the same in all versions of this package.
    """

    code: str = "AERON"

    def __init__(self, message: str, code: str | None = None) -> None:
        """Joins the lines of a message to one line. If it is longer than :data:`LONGEST` characters, leaves out its
        middle.
        """
        line = " ".join(message.split())
        if len(line) > LONGEST:
            half = LONGEST // 2 - len(" ... ")
            line = f"{line[:half]} ... {line[-half:]}"
        super().__init__(line)
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the text and the code for pickling."""
        return type(self), (str(self), self.code)


class AeronOptionError(AeronSparkError, ValueError):
    """An option, a layout or a schema is wrong. Nothing was opened.

    The text names the option and the permitted values. Correct the option, and start the query again.
    """

    code = "OPTION"


class AeronDataLossError(AeronSparkError):
    """Messages that the query needs were deleted. With ``failOnDataLoss=false``, the query counts the lost bytes
    instead.
    """

    code = "DATA_LOSS"


class AeronBackPressureError(AeronSparkError, TimeoutError):
    """Back pressure lasted longer than ``offerTimeoutMs``.

    Make the subscribers faster, or raise ``offerTimeoutMs``.
    """

    code = "BACK_PRESSURE"


class AeronNoSubscriberError(AeronSparkError, TimeoutError):
    """No subscriber connected within ``connectTimeoutMs``.

    Start a subscriber, check channel and stream id on both sides, or raise ``connectTimeoutMs``.
    """

    code = "NO_SUBSCRIBER"


class AeronRecordError(AeronSparkError, ValueError):
    """A message or a row does not fit the layout, the stream or the schema.

    Correct the layout, the schema or the data.
    """

    code = "RECORD"


class AeronDriverTimeout(AeronSparkError, DriverTimeoutError):
    """No media driver runs, or the media driver has ended.

    Start the driver, or correct the option ``aeron.dir``.
    """

    code = "DRIVER_TIMEOUT"


_BY_CODE = {kind.code: kind for kind in AeronSparkError.__subclasses__()}


def spark_error(code: str, message: str) -> AeronSparkError:
    """Returns the exception for a code. If the code has no class, the exception is an :class:`AeronSparkError`."""
    return _BY_CODE.get(code, AeronSparkError)(message, code)

"""The log of ``format("aeron")`` in the processes that Spark starts, where nobody configures Python's logging.

Their standard error goes to the log of the Spark driver or executor. Python's own fallback prints the bare text there.
"""

from __future__ import annotations

import logging

__all__ = ["logger"]

_FORMAT = "%(asctime)s %(levelname)s aeron.spark: %(message)s"
_DATE_FORMAT = "%y/%m/%d %H:%M:%S"


class _FallbackHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Prints with time and level, as Spark's log does, until somebody gives the root logger a handler."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints a record unless the root logger has handlers of its own."""
        if not logging.getLogger().handlers:
            super().emit(record)


def logger() -> logging.Logger:
    """Returns the logger ``aeron.spark``."""
    log = logging.getLogger("aeron.spark")
    if not any(isinstance(handler, _FallbackHandler) for handler in log.handlers):
        handler = _FallbackHandler()
        handler.setFormatter(logging.Formatter(_FORMAT, _DATE_FORMAT))
        log.addHandler(handler)
    return log

"""The log of ``format("aeron")``.

In processes that Spark starts, Python's logging is not configured. The standard error of these processes goes to the
log of the Spark driver or executor. Without a handler, Python would print only the text of a record, without time and
level."""

from __future__ import annotations

import logging

__all__ = ["logger"]

_FORMAT = "%(asctime)s %(levelname)s aeron.spark: %(message)s"
_DATE_FORMAT = "%y/%m/%d %H:%M:%S"


class _FallbackHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Prints log records with time and level, as Spark's log does, while the root logger has no handler."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints a record unless the root logger has handlers."""
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

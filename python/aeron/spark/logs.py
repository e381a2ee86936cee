"""The log of ``format("aeron")`` in processes that Spark starts, in which Python's logging is not configured.

Their standard error goes to the log of the Spark driver or executor. Python's default handler prints only the text
there."""

from __future__ import annotations

import logging

__all__ = ["logger"]

_FORMAT = "%(asctime)s %(levelname)s aeron.spark: %(message)s"
_DATE_FORMAT = "%y/%m/%d %H:%M:%S"


class _FallbackHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Prints with time and level like Spark's log, until the root logger has a handler."""

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

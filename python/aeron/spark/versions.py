"""Which PySpark serves."""

from __future__ import annotations

import re

__all__ = ["OLDEST_PYSPARK", "check_pyspark"]

OLDEST_PYSPARK = (4, 2)
"""Before it a source was not told where a query had stopped, so it could not know its archive after a restart."""


def check_pyspark(version: str) -> None:
    """Refuses a PySpark that is too old.

    Raises :class:`~aeron.spark.errors.AeronSparkError`.
    """
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_PYSPARK:
        from aeron.spark.errors import AeronSparkError

        raise AeronSparkError(f"format aeron needs PySpark 4.2 or newer, found {version}", "VERSION")

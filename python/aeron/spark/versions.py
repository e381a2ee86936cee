"""The oldest supported version of PySpark, and the check of the version."""

from __future__ import annotations

import re

__all__ = ["OLDEST_PYSPARK", "check_pyspark"]

OLDEST_PYSPARK = (4, 2)
"""Oldest supported version. Older versions of Spark do not pass the last offset to a source, so after a restart the
source could not find its archive."""


def check_pyspark(version: str) -> None:
    """Refuses a PySpark that is too old.

    Raises :class:`~aeron.spark.errors.AeronSparkError`.
    """
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_PYSPARK:
        from aeron.spark.errors import AeronSparkError

        raise AeronSparkError(f"format aeron needs PySpark 4.2 or newer, found {version}", "VERSION")

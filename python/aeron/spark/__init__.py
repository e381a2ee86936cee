"""Aeron streams in and out of Spark, in columns: ``format("aeron")``.

>>> aeron.spark.register(spark)                                                                   # doctest: +SKIP
>>> trades = spark.readStream.format("aeron").option("channel", "aeron:ipc").option("streamId", "1001").load()

An installed package is found by Spark without :func:`register`; with it a broken module of somebody else's cannot get
in the way (:func:`check` finds such modules). Importing this package loads neither PySpark nor pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron.spark.checks import Check, check
from aeron.spark.errors import (
    AeronBackPressureError,
    AeronDataLossError,
    AeronDriverTimeout,
    AeronNoSubscriberError,
    AeronOptionError,
    AeronRecordError,
    AeronSparkError,
)
from aeron.spark.interpreters import use_this_python
from aeron.spark.layouts import layout
from aeron.spark.progress import Gap, Progress, progress
from aeron.spark.versions import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "AeronBackPressureError",
    "AeronDataLossError",
    "AeronDriverTimeout",
    "AeronNoSubscriberError",
    "AeronOptionError",
    "AeronRecordError",
    "AeronSparkError",
    "Check",
    "Gap",
    "Progress",
    "check",
    "layout",
    "progress",
    "register",
]


def register(spark: SparkSession) -> None:
    """Makes ``format("aeron")`` known to a session; may be repeated, and wins over a module found by Spark.

    Spark starts ``PYSPARK_PYTHON`` for its sources and workers, else the first ``python3`` on the path. If neither the
    variable nor ``spark.pyspark.python`` is set, a local session starts the Python of the caller from now on.

    Raises :class:`~aeron.spark.errors.AeronSparkError` for a PySpark that is too old.
    """
    import pyspark

    check_pyspark(pyspark.__version__)
    use_this_python(spark)
    from aeron.spark.source import AeronDataSource  # of modules that an old PySpark does not have

    spark.dataSource.register(AeronDataSource)

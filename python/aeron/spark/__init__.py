"""Spark's source and sink for Aeron streams: ``format("aeron")``.

>>> aeron.spark.register(spark)                                                                   # doctest: +SKIP
>>> trades = spark.readStream.format("aeron").option("channel", "aeron:ipc").option("streamId", "1001").load()

Spark finds the format of the installed package without `register`. But if another package has a broken module, Spark
may not find the format. `check` finds such modules, and `register` makes the format independent of them. Importing this
package loads neither PySpark nor pyarrow.
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
    """Registers ``format("aeron")`` with a session. Replaces another format with this name. Idempotent.

    For its sources and workers, Spark starts ``PYSPARK_PYTHON``, or else the first ``python3`` on the path. This call
    changes a local session if neither that variable nor ``spark.pyspark.python`` is set: the session then starts the
    Python of the caller.

    Args:
        spark: The session.

    Raises:
        AeronSparkError: If PySpark is too old.
    """
    import pyspark

    check_pyspark(pyspark.__version__)
    use_this_python(spark)
    from aeron.spark.source import AeronDataSource  # an old PySpark lacks these modules

    spark.dataSource.register(AeronDataSource)

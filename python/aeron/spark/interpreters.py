"""Which Python Spark starts for its sources and workers.

Spark takes ``PYSPARK_PYTHON``, else the first ``python3`` on the path. A job that was started as
``.venv/bin/python job.py`` then gets workers of another Python, in which this package is missing.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_this_python", "spark_python", "use_this_python"]

_VARIABLE = "PYSPARK_PYTHON"
_SETTINGS = ("spark.pyspark.python", "spark.pyspark.driver.python")
_DEFAULT = "python3"


def spark_python() -> str:
    """Returns what Spark starts if nobody says otherwise: ``PYSPARK_PYTHON``, else ``python3``."""
    return os.environ.get(_VARIABLE, _DEFAULT)


def is_this_python(command: str) -> bool:
    """Whether a command starts the Python that runs now, with the same packages."""
    found = shutil.which(command)
    # A link to an interpreter is not resolved: its own place decides which packages it has.
    return found is not None and os.path.abspath(found) == os.path.abspath(sys.executable)


def use_this_python(spark: SparkSession) -> None:
    """Makes a session start this Python, if it is a local one and the user has not said which one.

    Executors on other machines may have no Python at this path, and a session of Spark Connect has its own on the
    server: both are left as they are.
    """
    context = getattr(spark, "_sc", None)
    if context is None or not context.master.startswith("local"):
        return
    configured = [name for name in _SETTINGS if context.getConf().contains(name)]
    if _VARIABLE in os.environ or configured or context.pythonExec != _DEFAULT:
        return
    if sys.executable and not is_this_python(_DEFAULT):
        context.pythonExec = sys.executable

"""Finds and sets the Python that Spark starts for its sources and workers.

Spark starts ``PYSPARK_PYTHON``, or the first ``python3`` on the path. So if a job is started as ``.venv/bin/python
job.py``, its workers may run in another Python that does not have this package."""

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
    """Returns the command that Spark starts by default: ``PYSPARK_PYTHON``, or ``python3``."""
    return os.environ.get(_VARIABLE, _DEFAULT)


def is_this_python(command: str) -> bool:
    """Returns whether a command starts the Python of this process, with the same packages."""
    found = shutil.which(command)
    # A link to an interpreter is not resolved: the directory of the link determines the packages.
    return found is not None and os.path.abspath(found) == os.path.abspath(sys.executable)


def use_this_python(spark: SparkSession) -> None:
    """Makes a local session start the Python of this process, if the user has not chosen a Python.

    Other sessions are not changed: executors on other machines may have no Python at this path, and Spark Connect uses
    the Python of its server.
    """
    context = getattr(spark, "_sc", None)
    if context is None or not context.master.startswith("local"):
        return
    configured = [name for name in _SETTINGS if context.getConf().contains(name)]
    if _VARIABLE in os.environ or configured or context.pythonExec != _DEFAULT:
        return
    if sys.executable and not is_this_python(_DEFAULT):
        context.pythonExec = sys.executable

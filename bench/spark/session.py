"""The Spark session of all cases, the directories of a case, and the CPU time of the processes of a case."""

import atexit
import functools
import os
import shutil
import sys
import tempfile
import uuid
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

import psutil

from bench import PROJECT
from bench.measure import SHARED
from bench.spark import kafka_broker
from interop import toolchain
from interop.drivers import Driver

NO_LIMIT = 2**31 - 1
"""Value of `spark.sql.execution.arrow.maxBytesPerBatch` for no limit. With any lower value, the JVM computes the size
of every written row."""
BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
DEFAULT_BYTES_PER_BATCH = 64 * 1024 * 1024

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}


@functools.cache
def session():
    """Returns the session. The formats of the peers are registered in it. The session ends with the process."""
    from pyspark.sql import SparkSession

    import aeron.spark
    from bench.spark import peers

    # Workers run the same Python, and must be able to import the peers.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("aeron bench")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with suppress(toolchain.Unavailable):  # without Maven, Kafka is not measured
        if jars := kafka_broker.connector_jars():
            builder = builder.config("spark.jars", ",".join(map(str, jars)))
    spark = builder.getOrCreate()
    atexit.register(spark.stop)
    spark.sparkContext.setLogLevel("OFF")
    aeron.spark.register(spark)
    for source in peers.FORMATS:
        spark.dataSource.register(source)
    return spark


def versions(packages=("pyspark", "pyarrow", "pyzmq")):
    """Returns the versions of the given packages and of Java."""
    java = next(check.found for check in _checks() if check.what == "Java")
    return (
        *(f"{name}=={metadata.version(name)}" for name in packages),
        f"Java {java.split()[0]}",
    )


def missing():
    """Returns the programs that Spark needs and this machine lacks, each with the remedy. The text is empty if the
    machine has all of them."""
    return "; ".join(f"{check.what}: {check.found}; {check.remedy}" for check in _checks() if not check.ok)


def _checks():
    from aeron.spark import check

    return [line for line in check() if line.what in ("Java", "PySpark", "pyarrow")]


@contextmanager
def place(parent="/dev/shm"):
    """Yields a directory that is deleted after the block."""
    with tempfile.TemporaryDirectory(prefix="aeron-bench-spark-", dir=parent) as path:
        yield Path(path)


@contextmanager
def media_driver():
    """Runs our driver in a separate process. Yields its directory and its process."""
    directory = Path("/dev/shm") / f"aeron-bench-{uuid.uuid4().hex[:12]}"
    program = Path(sys.executable).parent / "aeronmd"
    with tempfile.TemporaryDirectory() as logs:
        driver = Driver("ours", directory, Path(logs) / "driver.txt", SHARED, program)
        try:
            yield driver.directory, driver.process
        finally:
            driver.remove()
            shutil.rmtree(directory, ignore_errors=True)


def used(**others):
    """Returns the CPU seconds that the JVM, its Python processes and `others` have used. `others` are process ids.

    Ended Python processes count too.
    """
    jvm = psutil.Process(session().sparkContext._gateway.proc.pid)
    own, python = jvm.cpu_times(), 0.0
    for child in jvm.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            python += sum(child.cpu_times())
    spark = {"JVM": own.user + own.system, "Python": python + own.children_user + own.children_system}
    return {**spark, **{name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in others.items()}}


def source_process():
    """Returns the Python process of the source in the only running query."""
    jvm = psutil.Process(session().sparkContext._gateway.proc.pid)
    [found] = [child for child in jvm.children() if any("streaming_source_runner" in word for word in child.cmdline())]
    return found

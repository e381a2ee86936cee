"""Quick starts of Spark's JVM in tests: options that save processor time, and an archive of loaded classes.

A JVM compiles Spark for a peak rate that no test needs, and loads some 15,000 classes at each start. With these options
a start takes a quarter of the processor time. ``python tests/spark/jvm.py`` makes the archive of classes for the JDK
and the PySpark of this environment. Without the archive, tests run with the other options alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_CACHE = Path(__file__).parents[2] / ".cache"
_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_ENOUGH_BATCHES = 3


def start_quickly() -> None:
    """Sets environment variables, with which the JVMs of Spark in this process and its children start quickly."""
    os.environ["SPARK_LAUNCHER_OPTS"] = _OPTIONS
    os.environ["SPARK_SUBMIT_OPTS"] = _OPTIONS
    archive = _archive()
    if archive is not None and archive.exists():
        # A JVM with another class path would print a warning to the standard output, and start without the archive.
        os.environ["SPARK_SUBMIT_OPTS"] += f" -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:class+path=off"


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


def _archive() -> Path | None:
    """Returns the path of the archive of classes. Returns None without a JDK or PySpark."""
    java, pyspark = _java(), importlib.util.find_spec("pyspark")
    if java is None or pyspark is None or pyspark.origin is None:
        return None
    version = subprocess.run([java, "-version"], capture_output=True, check=False).stderr
    key = hashlib.sha256(version + os.path.realpath(java).encode() + pyspark.origin.encode())
    return _CACHE / f"spark-classes-{key.hexdigest()[:16]}.jsa"


def _make_archive() -> None:
    """Runs a query in a JVM. When the JVM ends, it writes its loaded classes to the archive."""
    archive = _archive()
    if archive is None or archive.exists():
        return
    archive.parent.mkdir(exist_ok=True)
    unfinished = archive.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_OPTIONS} -XX:ArchiveClassesAtExit={unfinished} -Xlog:cds=off"
    with tempfile.TemporaryDirectory() as place:
        _load_classes(Path(place))
    if unfinished.exists():
        unfinished.rename(archive)


def _load_classes(place: Path) -> None:
    """Runs a stream to Parquet files with a checkpoint, and reads the files."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.host", "localhost").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    rows = session.readStream.format("rate").load()
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").start(str(place / "rows"))
    while query.isActive and (query.lastProgress or {"batchId": 0})["batchId"] < _ENOUGH_BATCHES:
        time.sleep(0.05)
    query.stop()
    session.read.parquet(str(place / "rows")).groupBy("value").count().collect()
    jvm = session.sparkContext._gateway.proc
    session.stop()
    jvm.stdin.close()
    jvm.wait(300)


if __name__ == "__main__":
    _make_archive()

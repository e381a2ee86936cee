"""Fixtures for tests with a real Spark. Each module has one session and one media driver.

Without a JDK, these tests are skipped. If the environment variable `CI` is set, they fail instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.publishing import Reader

import aeron
import aeron.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARED_MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.driver.memory": "1g",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raises the time limit of the tests, because a session starts slowly on a busy machine. Each wait in a test has
    its own, shorter limit.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(240))


def _without_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None:
        return "no JDK: Spark needs Java 17 or 21"
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "PySpark is not installed"
    works = subprocess.run([java, "-version"], capture_output=True, check=False).returncode == 0
    return None if works else f"{java} does not run"


@pytest.fixture(scope="session")
def java() -> None:
    """Checks the requirements of Spark. If a requirement is missing, the test is skipped. In CI, it fails."""
    reason = _without_java()
    if reason is None:
        return
    if os.environ.get("CI"):
        pytest.fail(f"tests with Spark must not be skipped in CI: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def spark_settings() -> dict[str, str]:
    """Returns settings of the session. A module may override this fixture, for example for another ``spark.master``."""
    return {}


@pytest.fixture(scope="module")
def spark(
    java: None, spark_settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Yields the session of a module: two cores, UTC, no byte limit for written batches."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    place = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2]").appName("aeron tests")
    builder = builder.config("spark.sql.warehouse.dir", str(place / "warehouse")).config("spark.local.dir", str(place))
    for name, value in {**SETTINGS, **spark_settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def shared_memory() -> Iterator[Path]:
    """Yields a directory in shared memory that is deleted after the test."""
    path = _SHARED_MEMORY / f"aeron-spark-tests-{uuid.uuid4().hex[:12]}"
    path.mkdir(mode=0o700)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def media_driver() -> Iterator[aeron.MediaDriver]:
    """Yields the media driver of a module. Its logs are small."""
    directory = _SHARED_MEMORY / f"aeron-spark-driver-{uuid.uuid4().hex[:12]}"
    with aeron.MediaDriver(
        dir=directory,
        ipc_term_buffer_length=1 << 20,
        term_buffer_length=1 << 20,
        timer_interval_ns=100_000_000,
    ) as driver:
        yield driver
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def publisher(media_driver: aeron.MediaDriver) -> Iterator[Callable[..., aeron.ExclusivePublication]]:
    """Yields `publisher(stream_id, channel="aeron:ipc")`, which adds a publication. The publication is closed after the
    test.
    """
    with aeron.connect(media_driver) as client:

        def publish(stream_id: int, channel: str = "aeron:ipc") -> aeron.ExclusivePublication:
            return client.add_exclusive_publication(channel, stream_id)

        yield publish


@pytest.fixture
def reader(media_driver: aeron.MediaDriver) -> Iterator[Callable[..., Reader]]:
    """Yields `reader(stream_id)`, which starts a subscriber that collects messages of ``aeron:ipc``."""
    readers: list[Reader] = []
    with aeron.connect(media_driver) as client:

        def start(stream_id: int, **how: float) -> Reader:
            readers.append(Reader(client, stream_id, **how))
            return readers[-1]

        yield start
        for each in readers:
            each.end()


@pytest.fixture
def sink_options(media_driver: aeron.MediaDriver, spark: SparkSession) -> dict[str, str]:
    """Returns the options of a write to the module's driver over ``aeron:ipc``, without the stream."""
    aeron.spark.register(spark)
    return {"channel": "aeron:ipc", "aeron.dir": str(media_driver.dir)}


@pytest.fixture
def live(spark: SparkSession, media_driver: aeron.MediaDriver, shared_memory: Path) -> Callable[..., DataFrame]:
    """Returns `live(stream_id, schema=None, **options)`, which loads a stream of the driver. Its archive is in the
    test's directory.
    """

    def load(stream_id: object, schema: str | None = None, format: str = "aeron", **options: Any) -> DataFrame:
        defaults = {
            "channel": "aeron:ipc",
            "streamId": str(stream_id),
            "aeron.dir": str(media_driver.dir),
            "archiveDir": str(shared_memory / "archives"),
        }
        texts = {name: str(value) for name, value in options.items()}
        reader = spark.readStream.format(format).options(**{**defaults, **texts})
        return (reader.schema(schema) if schema else reader).load()

    return load

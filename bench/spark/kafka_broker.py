"""Runs one Kafka broker, with its controller in the same process and its logs in memory, and finds Spark's source for
Kafka."""

import atexit
import functools
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bench.hosts import free_tcp_ports
from interop import toolchain
from interop.processes import Process

SPARK = "4.2"
"""The newest version of Spark that has a source for Kafka."""
BROKER = "org.apache.kafka:kafka_2.13:3.9.1"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}.0"
CLIENT = "confluent-kafka==2.16.1"
VERSIONS = (BROKER, CONNECTOR, CLIENT)

_LOGGING = "org.slf4j:slf4j-reload4j:1.7.36"
_SPARK_HAS = ("org.apache.hadoop:*", "org.scala-lang:*", "org.slf4j:*", "org.apache.spark:spark-tags_2.13")
_START_TIMEOUT_S = 60
# The options of Kafka's own start script.
_JVM = ("-server", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
# The kernel kills the broker when the benchmark ends, even if the benchmark is killed.
_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
_WARNINGS_TO_STDERR = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%p %c %m%n
"""
_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True)
class Broker:
    """The address of the broker, and its process."""

    address: str
    pid: int


def missing():
    """Returns the reason why the comparison with Kafka cannot run here, or `None` if it can."""
    if not _connector_exists():
        return (
            f"Spark's source for Kafka exists for PySpark {SPARK}, and this is {metadata.version('pyspark')}: "
            "`make bench` measures it with PySpark 4.2"
        )
    try:
        _java("none")
        connector_jars()
        client()
    except toolchain.Unavailable as reason:
        return str(reason)
    return None


def connector_jars():
    """Returns the jars of Spark's source for Kafka. The list is empty if no source exists for this PySpark."""
    if not _connector_exists():
        return []
    return toolchain.libraries("kafka-connector", CONNECTOR, without=_SPARK_HAS)


def _connector_exists():
    return metadata.version("pyspark").startswith(f"{SPARK}.")


@functools.cache
def client():
    """Returns the path of a Python with a Kafka client."""
    return toolchain.environment("bench-kafka", CLIENT, "numpy")


@functools.cache
def broker():
    """Returns the broker. The first call starts it, and it ends with this process."""
    kept = ExitStack()
    atexit.register(kept.close)
    return kept.enter_context(_running_broker())


@contextmanager
def _running_broker():
    with tempfile.TemporaryDirectory(prefix="aeron-bench-kafka-", dir="/dev/shm") as home:
        port, controller = free_tcp_ports(2)
        place, log = Path(home), Path(home) / "errors.txt"
        (place / "log4j.properties").write_text(_WARNINGS_TO_STDERR)
        settings = place / "server.properties"
        settings.write_text(broker_settings(port, controller, place / "logs"))
        options = (*_JVM, f"-Dlog4j.configuration=file:{place / 'log4j.properties'}")
        _format(options, settings)
        command = (*_WITH_PARENT, *_java("kafka.Kafka", settings, options=options))
        process = Process(command, log=log, stdout=subprocess.DEVNULL)
        try:
            _await_port(process, port)
            yield Broker(f"127.0.0.1:{port}", process.pid)
        finally:
            process.kill()


def broker_settings(port, controller_port, logs):
    """Returns the `server.properties` of a node that is broker and controller. Other settings have their defaults."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "offsets.topic.replication.factor": 1,
        "log.dirs": logs,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _format(options, settings):
    command = _java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", settings, options=options)
    subprocess.run([str(part) for part in command], check=True, capture_output=True, timeout=_START_TIMEOUT_S)


def _java(main, *arguments, options=()):
    return toolchain.java_program(toolchain.libraries("kafka-broker", BROKER, _LOGGING), options, main, *arguments)


def _await_port(process, port):
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.exit_code is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the broker did not start within {_START_TIMEOUT_S} s\n{process.output()}")

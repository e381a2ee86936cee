"""Fetches the real Aeron: the jar from Maven Central, and the C client and driver from the `pyaeron` wheel.

Also compiles the Java classes and Rust examples of the tests. All files except the Rust examples are made once, below
`.cache/interop` of the project. If a file cannot be made, the functions raise `Unavailable` with the reason. The
fixtures then skip the test, or fail it if `CI` is set.
"""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

JAR = "io.aeron:aeron-all:1.51.0"
WHEEL = "pyaeron==0.1.0"
WHEEL_VERSION_TEXT = "1.53.0-SNAPSHOT"
# The older version of this package in `upgrades.py`, a commit of the main branch. The Makefile builds it.
OLD_COMMIT = "a8990472"

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
CACHE = PROJECT / ".cache" / "interop"

_WHEEL_PYTHONS = ("3.13", "3.12", "3.14", "3.15")
_DOWNLOAD_TIMEOUT_S = 300
_JAVA = (
    "java",
    "--add-opens",
    "java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens",
    "java.base/java.util.zip=ALL-UNNAMED",  # for checksums of the archive
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
)


class Unavailable(Exception):
    """A tool that the tests need does not exist on this machine."""


@functools.cache
def jar():
    """Returns the path of the real Aeron's jar."""
    _, artifact, version = JAR.split(":")
    path = CACHE / f"{artifact}-{version}.jar"
    with _made_once(path) as missing:
        if missing:
            _need("mvn", "Maven")
            _run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={JAR}", f"-DoutputDirectory={CACHE}")
    return path


@functools.cache
def java_peer_command(program="JavaPeer"):
    """Returns the command of a Java class of the tests or of the jar. Compiles the test classes if they have
    changed."""
    _need("javac", "a JDK")
    sources = sorted((HERE / "java").glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = CACHE / f"java-peer-{digest}"
    aeron = jar()  # `jar` takes the same lock, so it is called before the lock below is taken.
    with _made_once(classes / "JavaPeer.class") as missing:
        if missing:
            _run("javac", "-cp", aeron, "-d", classes, *sources)
    return (*_JAVA, *_with_loaded_classes(), "-cp", f"{aeron}:{classes}", program)


def java_command(properties, main, *arguments):
    """Returns the command of a program in Aeron's jar, with these system properties."""
    _need("java", "a JDK")
    return (*_JAVA, *_with_loaded_classes(), *_settings(properties), "-cp", str(jar()), main, *arguments)


@functools.cache
def _with_loaded_classes():
    """Returns options with which a JVM takes the classes of Aeron from an archive. The first call makes the archive.

    Tests start hundreds of JVMs. With the archive, a start takes 40 % less processor time.
    """
    version = subprocess.run(["java", "-version"], check=False, capture_output=True).stderr
    path = CACHE / f"java-classes-{hashlib.sha256(version + str(jar()).encode()).hexdigest()[:16]}.jsa"
    with _made_once(path) as missing:
        if missing:
            _archive_classes(path)
    # A JVM that cannot use the archive starts without it, and would print a warning to the standard output.
    return f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:class+path=off"


def _archive_classes(path):
    """Runs a driver with an archive. At its end, the JVM writes the classes that it has loaded."""
    with tempfile.TemporaryDirectory() as place:
        properties = {
            "aeron.dir": f"{place}/driver",
            "aeron.archive.dir": f"{place}/archive",
            "aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0",
            "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
            "aeron.threading.mode": "SHARED",
            "aeron.archive.threading.mode": "SHARED",
        }
        dump = (f"-XX:ArchiveClassesAtExit={path}", "-Xlog:cds=off")
        main = "io.aeron.archive.ArchivingMediaDriver"
        process = subprocess.Popen(
            (*_JAVA, *dump, *_settings(properties), "-cp", str(jar()), main),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _await(Path(place) / "archive" / "archive-mark.dat", process)
        finally:
            process.terminate()
            process.wait(_DOWNLOAD_TIMEOUT_S)


def _await(path, process):
    """Waits until a process has made a file, and one more second."""
    deadline = time.monotonic() + _DOWNLOAD_TIMEOUT_S
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Unavailable(f"the real Aeron did not make {path.name}")
        time.sleep(0.1)
    time.sleep(1)


def _settings(properties):
    return [f"-D{name}={value}" for name, value in properties.items()]


def java_program(jars, options, main, *arguments):
    """Returns the command of a program in jars other than Aeron's."""
    _need("java", "a JDK")
    return ("java", *options, "-cp", ":".join(map(str, jars)), main, *arguments)


@functools.cache
def libraries(name, *artifacts, without=()):
    """Returns the jars of these artifacts and their dependencies, except for those with group and name in `without`."""
    project = _maven_project(artifacts, without)
    home = CACHE / f"{name}-{hashlib.sha256(project.encode()).hexdigest()[:16]}"
    with _made_once(home / "made") as missing:
        if missing:
            _need("mvn", "Maven")
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            (home / "pom.xml").write_text(project)
            copy = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={home}")
            _run("mvn", "-q", "-B", "-f", home / "pom.xml", *copy)
            (home / "made").touch()
    return sorted(home.glob("*.jar"))


def _maven_project(artifacts, without):
    """Returns a Maven project that has only dependencies."""
    dependencies = "".join(_maven_dependency(artifact, without) for artifact in artifacts)
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>none</groupId><artifactId>none</artifactId>"
        f"<version>0</version><dependencies>{dependencies}</dependencies></project>"
    )


def _maven_dependency(artifact, without):
    group, name, version = artifact.split(":")
    exclusions = "".join(f"<exclusion>{_maven_names(*left_out.split(':'))}</exclusion>" for left_out in without)
    names = _maven_names(group, name)
    return f"<dependency>{names}<version>{version}</version><exclusions>{exclusions}</exclusions></dependency>"


def _maven_names(group, name):
    return f"<groupId>{group}</groupId><artifactId>{name}</artifactId>"


@functools.cache
def old_package():
    """Returns the directory with the installed package of `OLD_COMMIT`."""
    place = PROJECT / ".cache" / f"old-{OLD_COMMIT}"
    if (place / "made").exists():
        return place / "package"
    known = subprocess.run(
        ("git", "-C", PROJECT, "cat-file", "-e", f"{OLD_COMMIT}^{{commit}}"), check=False, capture_output=True
    )
    if known.returncode != 0:
        raise Unavailable(f"commit {OLD_COMMIT} is not in this clone: if it is shallow, run `git fetch --unshallow`")
    raise Unavailable(f"the package of commit {OLD_COMMIT} is not built: run `make old-package`")


def python_environment(kind):
    """Returns the variables with which Python finds the package of the kind `ours` or `old`."""
    if not kind.startswith("old"):
        return {}
    return {"PYTHONPATH": f"{old_package()}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


@functools.cache
def rust_example(name):
    """Builds an example program of one of our crates. Returns its path.

    It is built for the whole workspace: `cargo test --workspace` has already built it. For a single package with its
    own features, cargo would build the crates again.
    """
    _need("cargo", "a Rust toolchain")
    _run("cargo", "build", "-q", "--manifest-path", PROJECT / "Cargo.toml", "--workspace", "--example", name)
    target = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target"))
    return target / "debug" / "examples" / name


@functools.cache
def wheel_python():
    """Returns the interpreter of the environment with the wheel."""
    return environment("c-peer", WHEEL)


def environment(name, *requirements):
    """Returns the interpreter of a virtual environment with these packages, on a Python that the wheel supports."""
    home = CACHE / name
    python = home / "bin" / "python"
    digest = hashlib.sha256(" ".join(map(str, requirements)).encode()).hexdigest()[:16]
    with _made_once(home / f"installed-{digest}") as missing:
        if missing:
            shutil.rmtree(home, ignore_errors=True)
            _run(_python_for_the_wheel(), "-m", "venv", home)
            _run(python, "-m", "pip", "install", "-q", *requirements)
            (home / f"installed-{digest}").touch()
    return python


def wheel_module():
    """Returns the file of the wheel's extension module, which contains the C client and driver."""
    [module] = (CACHE / "c-peer" / "lib").glob("python3.*/site-packages/pyaeron/_pyaeron.*.so")
    return module


def _python_for_the_wheel():
    current = f"{sys.version_info.major}.{sys.version_info.minor}"
    if current in _WHEEL_PYTHONS:
        return sys.executable
    for version in _WHEEL_PYTHONS:
        found = shutil.which(f"python{version}")
        if found and _works(found):
            return found
        if path := _from_pyenv(version):
            return path
    raise Unavailable(f"the wheel {WHEEL} needs CPython {' or '.join(_WHEEL_PYTHONS)}, and none is on this machine")


def _from_pyenv(version):
    if not shutil.which("pyenv"):
        return None
    prefix = subprocess.run(["pyenv", "prefix", version], check=False, capture_output=True, text=True, timeout=60)
    return Path(prefix.stdout.strip()) / "bin" / "python" if prefix.returncode == 0 else None


def _works(python):
    """Returns whether a command runs. On the path, there may be a shim that fails because its version is not
    selected."""
    return subprocess.run([python, "-c", ""], check=False, capture_output=True, timeout=60).returncode == 0


def _need(program, name):
    if not shutil.which(program):
        raise Unavailable(f"{name} is needed, but there is no `{program}` on the path")


@contextmanager
def _made_once(path):
    """Yields whether `path` is missing. Holds a lock meanwhile, so that only one process makes the file."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not path.exists()


def _run(*command):
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    result = subprocess.run(
        [str(part) for part in command],
        check=False,
        capture_output=True,
        text=True,
        timeout=_DOWNLOAD_TIMEOUT_S,
        env=environment,
    )
    if result.returncode != 0:
        raise Unavailable(f"`{' '.join(map(str, command))}` failed: {(result.stderr or result.stdout).strip()[-2000:]}")

"""``aeron.spark.check()`` and ``aeron doctor spark``: check the requirements of ``format("aeron")`` on this machine."""

from __future__ import annotations

import os
import pkgutil
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import aeron
from aeron import _pipeline
from aeron.spark.interpreters import is_this_python, spark_python
from aeron.spark.versions import check_pyspark

__all__ = ["Check", "check", "default_archive_directory"]

_OLDEST_JAVA = 17
_OLDEST_PYARROW = 18
_TIMEOUT_S = 60
_SPARKS_PYTHON = "Python of Spark"
_ROOM = (1 << 30) + (128 << 20)
"""Free bytes that a private archive with the default ``maxRetainedBytes`` needs."""


@dataclass(frozen=True)
class Check:
    """Result of checking one requirement: whether the requirement is met, what was found, and a remedy. Immutable."""

    what: str
    ok: bool
    found: str
    remedy: str = ""


def check(aeron_dir: str | None = None, archive_dir: str | None = None) -> list[Check]:
    """Checks all requirements of ``format("aeron")``.

    The check starts ``java -version``, and Python processes that import modules. It changes nothing.

    Args:
        aeron_dir: Directory of the media driver. ``None`` stands for the default of the option ``aeron.dir``.
        archive_dir: Parent directory of private archives. ``None`` stands for the default of the option
            ``archiveDir``.

    Returns:
        A list with one `Check` for each requirement. Then follow notes about files that dead drivers and ended queries
        have left.
    """
    return [
        _java(),
        _pyspark(),
        _pyarrow(),
        _spark_python(),
        *_modules(),
        _driver(aeron_dir or os.environ.get("AERON_DIR") or str(aeron.default_directory())),
        _archive_directory(Path(archive_dir or default_archive_directory())),
        *_left_directories(),
        *_ended_archives(Path(archive_dir or default_archive_directory())),
    ]


def default_archive_directory() -> Path:
    """Returns the default parent directory of private archives: in shared memory if there is enough room, else in the
    temporary directory."""
    places = [Path("/dev/shm"), Path(tempfile.gettempdir())]
    place = next((place for place in places if place.is_dir() and _free(place) >= _ROOM), places[-1])
    return place / f"aeron-spark-{os.geteuid()}"


# ---- Java and packages ----------------------------------------------------------------------------------------------


def _java() -> Check:
    remedy = "install a JDK 17 or 21, e.g. apt install openjdk-17-jre-headless, or set JAVA_HOME"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None:
        return Check("Java", False, f"none in JAVA_HOME {home}" if home else "none on the PATH", remedy)
    try:
        done = _run(java, "-version")
    except (OSError, subprocess.SubprocessError) as error:
        return Check("Java", False, f"{java}: {error}", remedy)
    version = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', done.stderr)
    if done.returncode != 0 or version is None:
        return Check("Java", False, f"{java} tells no version, it ends with status {done.returncode}", remedy)
    return Check("Java", int(version.group(2)) >= _OLDEST_JAVA, f"{version.group(1)} at {java}", remedy)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )


def _pyspark() -> Check:
    return _package("PySpark", "pyspark", check_pyspark)


def _pyarrow() -> Check:
    def check_pyarrow(version: str) -> None:
        if int(version.partition(".")[0]) < _OLDEST_PYARROW:
            raise ValueError(f"format aeron needs pyarrow {_OLDEST_PYARROW} or newer, found {version}")

    return _package("pyarrow", "pyarrow", check_pyarrow)


def _package(what: str, module: str, check_version: Callable[[str], None]) -> Check:
    """Checks a package. Imports it, because the package may come from ``SPARK_HOME`` or be incomplete."""
    remedy = "pip install 'aeron-py[spark]'"
    try:
        version = str(import_module(module).__version__)
    except Exception as error:
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == module
        return Check(what, False, "not installed" if is_missing else f"{type(error).__name__}: {error}", remedy)
    try:
        check_version(version)
    except (aeron.AeronError, ValueError) as error:
        return Check(what, False, str(error), remedy)
    return Check(what, True, version)


def _spark_python() -> Check:
    """Checks the Python that Spark starts. It may be another one than the Python of this process."""
    command = spark_python()
    remedy = f"export PYSPARK_PYTHON={sys.executable}, or call aeron.spark.register(spark) in a local session"
    if is_this_python(command):
        return Check(_SPARKS_PYTHON, True, command)
    if shutil.which(command) is None:
        return Check(_SPARKS_PYTHON, False, f"{command} is not on the path", remedy)
    try:
        done = _run(command, "-c", "import pyspark, pyarrow, aeron.spark, sys; print(sys.executable)")
    except (OSError, subprocess.SubprocessError) as error:
        return Check(_SPARKS_PYTHON, False, f"{command}: {error}", remedy)
    said = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    found = f"{command}: {said[-1] if said else f'ends with status {done.returncode}'}"
    return Check(_SPARKS_PYTHON, done.returncode == 0, found, remedy)


# ---- modules that Spark imports to find formats ----------------------------------------------------------------------

_IMPORT = """
import sys
from importlib import import_module
source = getattr(import_module(sys.argv[1]), "DefaultSource", None)
print("\\n" + ("no format in it" if source is None else "format " + source.name()))
"""


def _modules() -> Iterator[Check]:
    """Imports each top-level module ``pyspark_*`` in a separate process. A module that raises would hide all
    formats."""
    names = sorted({module.name for module in pkgutil.iter_modules() if module.name.startswith("pyspark_")})
    if "pyspark_aeron" not in names:
        yield Check("pyspark_aeron", False, "not importable", "pip install aeron-py into the Python that Spark uses")
    for name in names:
        yield _module(name)


def _module(name: str) -> Check:
    remedy = f"repair or uninstall {name}: until then use aeron.spark.register(spark)"
    try:
        done = _run(sys.executable, "-c", _IMPORT, name)
    except subprocess.TimeoutExpired:
        return Check(name, False, f"not imported within {_TIMEOUT_S} s", remedy)
    said = [line for line in (done.stderr if done.returncode else done.stdout).splitlines() if line.strip()]
    if done.returncode == 0 and said and said[-1].startswith(("format ", "no format")):
        if said[-1].lower() == "format aeron" and name != "pyspark_aeron":
            return Check(name, False, "claims the format aeron too", remedy)
        return Check(name, True, said[-1])
    found = said[-1] if done.returncode and said else f"ends Python with status {done.returncode}"
    return Check(name, False, found, remedy)


# ---- driver and directory --------------------------------------------------------------------------------------------


def _driver(directory: str) -> Check:
    remedy = f'start one with "aeron driver --dir {directory}", or set embeddedDriver=true for a UDP source'
    try:
        if aeron.is_driver_active(directory):
            return Check("media driver", True, directory)
    except (aeron.AeronError, OSError) as error:
        return Check("media driver", False, str(error), remedy)
    return Check("media driver", False, f"none in {directory}", remedy)


def _left_directories() -> Iterator[Check]:
    """Yields the directories of killed drivers beside the default directory."""
    for path, size, is_removed_next in _pipeline._left_directories():
        advice = (
            "the next embedded driver removes it"
            if is_removed_next
            else f"remove it by: rm -r {shlex.quote(str(path))}"
        )
        yield Check("directory of a dead driver", True, f"{path}, {size >> 20} MiB: {advice}")


def _ended_archives(directory: Path) -> Iterator[Check]:
    """Yields one line about the private archives of ended queries, if there are any."""
    ended = _pipeline._ended_archives(directory)
    if ended:
        size = sum(size for _, size in ended)
        found = (
            f"{len(ended)} in {directory}, {size >> 20} MiB: a query that starts there removes those older than a day"
        )
        yield Check("archives of ended queries", True, found)


def _archive_directory(directory: Path) -> Check:
    remedy = "set archiveDir to a directory of your own that others cannot write to, best in shared memory"
    problem = _directory_problem(directory)
    if problem is not None:
        return Check("archive directory", False, f"{directory} {problem}", remedy)
    free = _free(_existing(directory))
    return Check(
        "archive directory",
        free >= _ROOM,
        f"{directory}, {free >> 20} MiB free",
        "make room, set maxRetainedBytes to less than is free, or archiveDir to a larger file system",
    )


def _free(directory: Path) -> int:
    return shutil.disk_usage(directory).free


def _existing(directory: Path) -> Path:
    """Returns the directory, or its nearest parent that exists."""
    return next(path for path in (directory, *directory.parents) if os.path.exists(path))


def _directory_problem(directory: Path) -> str | None:
    if not directory.is_absolute():
        return "is not an absolute path"
    try:
        status = directory.lstat()
    except FileNotFoundError:
        parent = _existing(directory)
        return None if parent.is_dir() and os.access(parent, os.W_OK) else f"cannot be made in {parent}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    problems = {
        "is a symbolic link": stat.S_ISLNK(status.st_mode),
        "is no directory": not stat.S_ISDIR(status.st_mode),
        f"belongs to user {status.st_uid}": status.st_uid != os.geteuid(),
        "can be written to by everybody": bool(status.st_mode & stat.S_IWOTH),
        "cannot be written to": not os.access(directory, os.W_OK),
    }
    return next((problem for problem, is_so in problems.items() if is_so), None)

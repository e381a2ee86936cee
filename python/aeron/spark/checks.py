"""``aeron.spark.check()`` and ``aeron doctor``: whether this machine can run ``format("aeron")``; what to do if not."""

from __future__ import annotations

import importlib.metadata
import os
import pkgutil
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aeron
from aeron.spark.versions import check_pyspark

__all__ = ["Check", "check", "default_archive_directory"]

_OLDEST_JAVA = 17
_OLDEST_PYARROW = 18
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Check:
    """What was looked at, whether it serves, what was found, and what to do if it does not serve. Immutable."""

    what: str
    ok: bool
    found: str
    remedy: str = ""


def check(aeron_dir: str | None = None, archive_dir: str | None = None) -> list[Check]:
    """Looks at all that ``format("aeron")`` needs; starts nothing but ``java -version`` and the imports of modules.

    `aeron_dir` is the directory of the media driver, `archive_dir` where private archives are made; both as the options
    of these names, with their defaults.
    """
    return [
        _java(),
        _pyspark(),
        _pyarrow(),
        *_modules(),
        _driver(aeron_dir or os.environ.get("AERON_DIR") or str(aeron.default_directory())),
        _archive_directory(Path(archive_dir or default_archive_directory())),
    ]


def default_archive_directory() -> Path:
    """Where private archives are made on this machine when ``archiveDir`` is not given and shared memory has room."""
    shared_memory = Path("/dev/shm")
    parent = shared_memory if shared_memory.is_dir() else Path(tempfile.gettempdir())
    return parent / f"aeron-spark-{os.getuid()}"


# ---- Java and packages ----------------------------------------------------------------------------------------------


def _java() -> Check:
    remedy = "install a JDK 17 or 21, e.g. apt install openjdk-17-jre-headless, or set JAVA_HOME"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None:
        return Check("Java", False, f"none in JAVA_HOME {home}" if home else "none on the PATH", remedy)
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Check("Java", False, f"{java}: {error}", remedy)
    version = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', answer.stderr)
    if version is None:
        return Check("Java", False, f"{java} tells no version", remedy)
    return Check("Java", int(version.group(2)) >= _OLDEST_JAVA, f"{version.group(1)} at {java}", remedy)


def _pyspark() -> Check:
    remedy = "pip install 'aeron-py[spark]'"
    version = _installed("pyspark")
    if version is None:
        return Check("PySpark", False, "not installed", remedy)
    try:
        check_pyspark(version)
    except aeron.AeronError as error:
        return Check("PySpark", False, str(error), remedy)
    return Check("PySpark", True, version)


def _pyarrow() -> Check:
    remedy = "pip install 'aeron-py[spark]'"
    version = _installed("pyarrow")
    if version is None:
        return Check("pyarrow", False, "not installed", remedy)
    return Check("pyarrow", int(version.partition(".")[0]) >= _OLDEST_PYARROW, version, f"{remedy} (18 or newer)")


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


# ---- modules that Spark imports to find formats ----------------------------------------------------------------------

_IMPORT = """
import sys
from importlib import import_module
source = getattr(import_module(sys.argv[1]), "DefaultSource", None)
print("\\n" + ("no format" if source is None else source.name()))
"""


def _modules() -> Iterator[Check]:
    """Each top-level module ``pyspark_*``, imported in a process of its own: one that raises hides all formats."""
    names = sorted({module.name for module in pkgutil.iter_modules() if module.name.startswith("pyspark_")})
    if "pyspark_aeron" not in names:
        yield Check("pyspark_aeron", False, "not importable", "pip install aeron-py into the Python that Spark uses")
    for name in names:
        yield _module(name)


def _module(name: str) -> Check:
    remedy = f"repair or uninstall {name}: until then use aeron.spark.register(spark)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT, name], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Check(name, False, f"not imported within {_TIMEOUT_S} s", remedy)
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    if done.returncode != 0:
        return Check(name, False, lines[-1] if lines else f"ended with status {done.returncode}", remedy)
    if lines[-1] == "aeron" and name != "pyspark_aeron":
        return Check(name, False, "claims the format aeron too", remedy)
    return Check(name, True, f"format {lines[-1]}" if lines[-1] != "no format" else "no format in it")


# ---- driver and directory --------------------------------------------------------------------------------------------


def _driver(directory: str) -> Check:
    remedy = f'start one with "aeron driver --dir {directory}", or set embeddedDriver=true for a UDP source'
    try:
        if aeron.is_driver_active(directory):
            return Check("media driver", True, directory)
    except (aeron.AeronError, OSError) as error:
        return Check("media driver", False, str(error), remedy)
    return Check("media driver", False, f"none in {directory}", remedy)


def _archive_directory(directory: Path) -> Check:
    remedy = "set archiveDir to a directory of your own that others cannot write to, best in shared memory"
    problem = _directory_problem(directory)
    if problem is not None:
        return Check("archive directory", False, f"{directory} {problem}", remedy)
    free = shutil.disk_usage(directory if directory.exists() else directory.parent).free
    enough = free >= (1 << 30) + (128 << 20)
    return Check(
        "archive directory",
        enough,
        f"{directory}, {free >> 20} MiB free",
        "" if enough else "make room, set maxRetainedBytes to less than is free, or archiveDir to a larger file system",
    )


def _directory_problem(directory: Path) -> str | None:
    try:
        status = directory.lstat()
    except FileNotFoundError:
        parent = directory.parent
        return None if parent.is_dir() and os.access(parent, os.W_OK) else f"cannot be made in {parent}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    problems = {
        "is a symbolic link": stat.S_ISLNK(status.st_mode),
        "is no directory": not stat.S_ISDIR(status.st_mode),
        f"belongs to user {status.st_uid}": status.st_uid != os.getuid(),
        "can be written to by everybody": bool(status.st_mode & stat.S_IWOTH),
        "cannot be written to": not os.access(directory, os.W_OK),
    }
    return next((problem for problem, is_so in problems.items() if is_so), None)

"""``aeron report``: one file with what a bug report needs, without payloads and secrets."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from importlib import metadata
from itertools import islice
from pathlib import Path

import click

import aeron
from aeron._pipeline import _read_archive_mark
from aeron.cli.options import directory_option
from aeron.export_output import OutputFile

_TIMEOUT_S = 60
"""Time limit of one part."""
_MAX_FILES = 10_000
"""Number of files of a directory that are listed."""
_SECRET = re.compile(r"pass|secret|credential|token|key|auth", re.IGNORECASE)
"""Words in the names of settings with secret values."""
_LEFT_OUT = "(left out)"
_PACKAGES = ("aeron-py", "numpy", "pyarrow", "pyspark", "pandas", "polars")
_LIMITS = ("RLIMIT_NOFILE", "RLIMIT_MEMLOCK", "RLIMIT_AS", "RLIMIT_CORE")
_KERNEL = (
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/rmem_default",
    "vm/overcommit_memory",
    "vm/max_map_count",
)
_DRIVER_PARTS = {
    "info.txt": ("info",),
    "health.json": ("health", "--json"),
    "counters.json": ("stat", "--json"),
    "streams.json": ("streams", "--json"),
    "errors.json": ("errors", "--json"),
    "losses.json": ("loss", "--json"),
}
_ARCHIVE_PARTS = {
    "catalog.json": ("archive", "describe-all", "--json"),
    "errors.txt": ("archive", "errors"),
}


@click.command("report")
@directory_option
@click.option("--archive", type=click.Path(path_type=Path), help="Directory of an archive to report on too.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File to create, a .tar.gz.")
def command(*, directory: str, archive: Path | None, output: Path) -> None:
    """Write versions, settings, counters, errors, losses, the catalog and facts about this machine into one file.

    The file has no payloads of messages. Values of settings whose names look like secrets are left out. The command
    only reads, except for the output, which must not exist. A part that fails is named, and the others are written.
    """
    try:
        with OutputFile(output, overwrite=False) as place:
            # Settings and paths are for nobody else to read.
            descriptor = os.open(place.new_file("tar.gz"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archived:
                problems = _write(archived, directory, archive)
    except OSError as error:
        reason = "File exists" if isinstance(error, FileExistsError) and os.path.lexists(output) else error.strerror
        raise click.ClickException(f"{output} cannot be created: {reason}") from error
    for problem in problems:
        click.echo(f"left out: {problem}", err=True)
    click.echo(f"wrote {output}, {output.stat().st_size} bytes")


def _write(archived: tarfile.TarFile, directory: str, archive: Path | None) -> list[str]:
    """Writes all parts. Returns the reasons why parts are missing."""
    problems: list[str] = []
    for name, arguments in _DRIVER_PARTS.items():
        _add_output(archived, f"driver/{name}", (*arguments, "--dir", directory), problems)
    _add_json(archived, "driver/files.json", _files(Path(directory)))
    processes = [_driver_pid(directory)]
    if archive is not None:
        for name, (*group, last) in _ARCHIVE_PARTS.items():
            arguments = (*group, str(archive), last) if last.startswith("--") else (*group, last, str(archive))
            _add_output(archived, f"archive/{name}", arguments, problems)
        _add_json(archived, "archive/files.json", _files(archive))
        processes.append(_archive_pid(archive))
    for pid in sorted({pid for pid in processes if pid}):
        _add_json(archived, f"processes/{pid}.json", _process(pid))
    _add_json(archived, "host.json", _host([directory, *([str(archive)] if archive else [])]))
    _add_json(archived, "problems.json", problems)
    return problems


def _add_output(archived: tarfile.TarFile, name: str, arguments: tuple[str, ...], problems: list[str]) -> None:
    """Adds what a command prints. A process of its own can neither end this one nor block it for ever."""
    command = [sys.executable, "-m", "aeron", *arguments]
    try:
        # `aeron health` exits with status 1 if the driver is not ready, and prints the result all the same.
        ended = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        problems.append(f"{name}: 'aeron {' '.join(arguments)}' did not end within {_TIMEOUT_S} s")
        return
    if ended.stdout:
        _add(archived, name, ended.stdout)
    if ended.returncode != 0 and not ended.stdout:
        reason = ended.stderr.decode(errors="replace").strip() or f"exit status {ended.returncode}"
        problems.append(f"{name}: {reason}")


def _add_json(archived: tarfile.TarFile, name: str, value: object) -> None:
    _add(archived, name, json.dumps(value, indent=2).encode() + b"\n")


def _add(archived: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(f"aeron-report/{name}")
    entry.size, entry.mode, entry.mtime = len(content), 0o600, int(time.time())
    archived.addfile(entry, io.BytesIO(content))


def _files(directory: Path) -> list[dict[str, object]]:
    """Returns names, lengths and times of the files below a directory, without their contents."""
    return [
        {
            "name": str(path.relative_to(directory)),
            "length": found.st_size,
            "allocated": found.st_blocks * 512,
            "modified_ms": found.st_mtime_ns // 1_000_000,
        }
        for path, found in islice(_walk(directory), _MAX_FILES)
    ]


def _walk(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            yield path, path.lstat()


def _driver_pid(directory: str) -> int | None:
    with contextlib.suppress(aeron.AeronError), aeron.CncFile(directory, timeout_ms=0) as cnc:
        return cnc.pid
    return None


def _archive_pid(directory: Path) -> int | None:
    with contextlib.suppress(aeron.AeronError):
        mark = _read_archive_mark(directory)
        return None if mark is None else mark.pid
    return None


def _process(pid: int) -> dict[str, object]:
    """Returns command line, Aeron's variables, limits and memory of a process, as far as this user may read them."""
    place = Path(f"/proc/{pid}")
    found: dict[str, object] = {}
    with contextlib.suppress(OSError):
        found["command"] = [_without_secret(each) for each in _texts(place / "cmdline")]
    with contextlib.suppress(OSError):
        found["environment"] = [
            _without_secret(each) for each in _texts(place / "environ") if each.startswith("AERON_")
        ]
    for name in ("status", "limits"):
        with contextlib.suppress(OSError):
            found[name] = (place / name).read_text().splitlines()
    return found


def _texts(path: Path) -> list[str]:
    return [each.decode(errors="replace") for each in path.read_bytes().split(b"\0") if each]


def _without_secret(setting: str) -> str:
    """Returns ``name=value``, without the value if it may be a secret."""
    name, separator, _ = setting.partition("=")
    if separator and _SECRET.search(name):
        return f"{name}={_LEFT_OUT}"
    return re.sub(r"//[^/@\s]*@", f"//{_LEFT_OUT}@", setting)  # a name and password in a URL


def _host(directories: list[str]) -> dict[str, object]:
    """Returns facts about this machine and this Python."""
    return {
        "time_ms": time.time_ns() // 1_000_000,
        "python": sys.version,
        "platform": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "packages": {name: _version(name) for name in _PACKAGES},
        "environment": [
            _without_secret(f"{name}={text}") for name, text in sorted(os.environ.items()) if "AERON" in name
        ],
        "processors": os.cpu_count(),
        "memory": _lines("/proc/meminfo")[:3],
        "cgroup_memory_max": _lines("/sys/fs/cgroup/memory.max"),
        "kernel": {name: _lines(f"/proc/sys/{name}") for name in _KERNEL},
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS},
        "file_systems": {path: _space(path) for path in ["/dev/shm", *directories]},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _space(path: str) -> dict[str, int] | None:
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return {"bytes": found.f_blocks * found.f_frsize, "free_bytes": found.f_bavail * found.f_frsize}

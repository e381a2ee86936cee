"""Tests of the driver's directory: takeover, refusal, and the directories of killed drivers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from aeron import _aeron
from commands import driver_directory

_RUN = """
import sys, aeron
driver = aeron.MediaDriver(**eval(sys.argv[1]))
print(driver.dir, flush=True)
sys.stdin.read()
"""


def start(default: Path, *, prefix: tuple[str, ...] = (), **settings: object) -> tuple[subprocess.Popen[str], Path]:
    """Starts a process with a driver. Returns the process and the driver's directory.

    The default directory of the process is `default`, because the process has the matching user name.
    """
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", _RUN, repr(settings)],
        env={**os.environ, "USER": default.name.removeprefix("aeron-")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yields the default directory of a user name that only this test uses."""
    monkeypatch.delenv("AERON_DIR", raising=False)
    monkeypatch.setenv("USER", f"test{os.getpid()}")
    default = aeron.default_directory()
    yield default
    for path in default.parent.glob(default.name + "-*"):
        shutil.rmtree(path)


@pytest.mark.parametrize("dir_delete_on_start", [False, True])
def test_a_directory_with_a_file_of_the_user_is_refused_and_nothing_is_deleted(
    tmp_path: Path, dir_delete_on_start: bool
) -> None:
    source = tmp_path / "main.py"
    source.write_text("precious")
    with pytest.raises(aeron.DriverError, match=r"main\.py is not a file of a media driver.*name another directory"):
        aeron.MediaDriver(dir=tmp_path, dir_delete_on_start=dir_delete_on_start)
    assert source.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [source]


def test_the_programs_aeronmd_and_aeron_driver_refuse_a_directory_with_a_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("precious")
    for module in ("from aeron._aeron import aeronmd_main as main", "from aeron.cli import main"):
        command = f"{module}; raise SystemExit(main())"
        arguments = ["driver"] if "cli" in module else []
        done = subprocess.run(
            [sys.executable, "-c", command, *arguments, "--dir", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 1
        assert "main.py is not a file of a media driver" in done.stderr
    assert (tmp_path / "main.py").read_text() == "precious"


def test_a_driver_uses_an_empty_directory_and_the_directory_of_a_closed_driver(tmp_path: Path) -> None:
    for _ in range(2):
        aeron.MediaDriver(dir=tmp_path, dir_delete_on_shutdown=False).close()
    aeron.MediaDriver(dir=tmp_path).close()
    assert not tmp_path.exists()


@pytest.mark.parametrize("dir_delete_on_start", [False, True])
def test_a_second_driver_refuses_the_directory_of_a_live_driver(
    driver: aeron.MediaDriver, dir_delete_on_start: bool
) -> None:
    with pytest.raises(aeron.DriverActiveError, match="Active media driver detected"):
        aeron.MediaDriver(dir=driver.dir, dir_delete_on_start=dir_delete_on_start)
    with aeron.connect(driver) as client:
        assert client.add_publication("aeron:ipc", 1).channel == "aeron:ipc"


def test_the_next_driver_takes_over_the_directory_of_a_killed_driver_immediately(default: Path) -> None:
    with driver_directory() as directory:
        process, found = start(default, dir=str(directory))
        assert found == Path(directory)
        kill(process)
        with aeron.MediaDriver(dir=directory) as driver, aeron.connect(driver) as client:
            assert client.client_id


def test_a_forked_child_does_not_prevent_the_takeover_of_its_killed_parents_directory(default: Path) -> None:
    forks = """
import os, sys, aeron
driver = aeron.MediaDriver(dir=sys.argv[1])
child = os.fork()
if child == 0:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
sys.stdin.read()
"""
    with driver_directory() as directory:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", forks, str(directory)], stdin=-1, stdout=-1, text=True
        )
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.kill(child, 0)
        aeron.MediaDriver(dir=directory).close()
        process.communicate()


def test_an_embedded_driver_removes_directories_of_killed_drivers_but_not_of_live_drivers(default: Path) -> None:
    killed, killed_directory = start(default)
    live, live_directory = start(default)
    named, named_directory = start(default, dir=f"{default}-named")
    kill(killed)
    kill(named)
    assert killed_directory.name.startswith(default.name + "-")
    assert (killed_directory / "cnc.dat").exists()
    aeron.MediaDriver().close()
    assert not killed_directory.exists()
    assert (live_directory / "cnc.dat").exists()
    assert (named_directory / "cnc.dat").exists(), "the driver removed a directory that the user had named"
    live.communicate()
    assert live.returncode == 0
    eventually(lambda: not live_directory.exists())


def has_pid_namespaces() -> bool:
    unshare = shutil.which("unshare")
    return unshare is not None and subprocess.run([unshare, "--pid", "--fork", "true"], check=False).returncode == 0


@pytest.mark.skipif(not has_pid_namespaces(), reason="needs the right to make pid namespaces")
def test_only_the_lock_shows_that_an_embedded_driver_of_another_pid_namespace_is_alive(default: Path) -> None:
    """Processes in different namespaces have the same small ids, so a process id does not identify an owner."""
    namespace = ("unshare", "--pid", "--fork", "--kill-child")
    (first, first_directory), (second, second_directory) = (start(default, prefix=namespace) for _ in range(2))
    assert first_directory != second_directory
    aeron.MediaDriver().close()
    assert (first_directory / "cnc.dat").exists()
    assert (second_directory / "cnc.dat").exists()
    kill(first)
    # The kernel ends the driver in the namespace some time after its parent `unshare` was killed.
    eventually(lambda: not is_held(first_directory))
    third, third_directory = start(default, prefix=namespace)
    assert not first_directory.exists()
    assert (second_directory / "cnc.dat").exists()
    second.communicate()
    third.communicate()
    assert not third_directory.exists()


def is_held(directory: Path) -> bool:
    return str(directory) not in [str(path) for path, _, _ in _aeron._left_directories()]


def test_directories_of_dead_drivers_are_listed_with_their_sizes(default: Path) -> None:
    process, embedded = start(default)
    assert _aeron._left_directories() == []
    kill(process)
    without_lock = default.with_name(default.name + "-old")
    shutil.copytree(embedded, without_lock)
    (without_lock / "aeron-driver.lock").unlink()
    os.utime(without_lock)
    [(path, size, is_removed_next)] = _aeron._left_directories()
    assert (path, is_removed_next) == (embedded, True)
    assert size > 8 << 20
    with driver_directory() as directory:
        aeron.MediaDriver(dir=directory, dir_delete_on_shutdown=False).close()
        shutil.copy(Path(directory) / "cnc.dat", without_lock / "cnc.dat")
    listed = [(path, is_removed_next) for path, _, is_removed_next in _aeron._left_directories()]
    assert listed == [(embedded, True), (without_lock, False)]
    aeron.MediaDriver().close()
    assert [path for path, _, _ in _aeron._left_directories()] == [without_lock]

"""``aeron.spark.check()`` and ``aeron doctor``: what is missing is named with what to do about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import aeron
from aeron.spark.checks import Check, check
from commands import run


def named(checks: list[Check], what: str) -> Check:
    return next(line for line in checks if line.what == what)


def test_what_is_there_is_found(media_driver: aeron.MediaDriver, shared_memory: Path) -> None:
    checks = check(str(media_driver.dir), str(shared_memory))
    assert named(checks, "media driver").ok
    assert named(checks, "archive directory").ok
    assert named(checks, "pyspark_aeron").found == "format aeron"
    assert named(checks, "PySpark").found[0].isdigit()


def test_a_missing_driver_is_told_with_how_to_start_one(shared_memory: Path) -> None:
    driver = named(check(str(shared_memory / "none"), str(shared_memory)), "media driver")
    assert not driver.ok
    assert driver.remedy.startswith(f'start one with "aeron driver --dir {shared_memory}/none"')


def test_java_is_looked_for_in_java_home(monkeypatch: pytest.MonkeyPatch, shared_memory: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(shared_memory))
    java = named(check(archive_dir=str(shared_memory)), "Java")
    assert not java.ok
    assert str(shared_memory) in java.found
    assert "JAVA_HOME" in java.remedy


def test_a_broken_module_of_somebody_else_is_named(monkeypatch: pytest.MonkeyPatch, shared_memory: Path) -> None:
    (shared_memory / "pyspark_broken.py").write_text("raise ValueError('half installed')")
    (shared_memory / "pyspark_twin.py").write_text("class DefaultSource:\n    name = staticmethod(lambda: 'aeron')")
    monkeypatch.syspath_prepend(shared_memory)
    monkeypatch.setenv("PYTHONPATH", str(shared_memory))
    checks = check(archive_dir=str(shared_memory))
    assert not named(checks, "pyspark_broken").ok
    assert named(checks, "pyspark_broken").found == "ValueError: half installed"
    assert "uninstall pyspark_broken" in named(checks, "pyspark_broken").remedy
    assert named(checks, "pyspark_twin").found == "claims the format aeron too"
    assert named(checks, "pyspark_aeron").ok


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_directory_that_is_not_safe_is_refused(kind: str, shared_memory: Path) -> None:
    place = shared_memory / "place"
    if kind == "link":
        place.symlink_to(shared_memory)
    elif kind == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777)
    found = named(check(archive_dir=str(place)), "archive directory")
    assert not found.ok
    assert str(place) in found.found
    assert "set archiveDir to a directory of your own" in found.remedy


def test_doctor_prints_a_remedy_for_each_thing_missing(shared_memory: Path) -> None:
    result = run("doctor", "--dir", shared_memory / "none", "--archive-dir", shared_memory, COLUMNS="200")
    assert result.exit_code == 1
    line = next(line for line in result.stdout.splitlines() if "media driver" in line)
    assert line.startswith("no")
    assert "aeron driver --dir" in line


def test_doctor_ends_well_where_all_is_there(java: None, media_driver: aeron.MediaDriver, shared_memory: Path) -> None:
    result = run("doctor", "--dir", media_driver.dir, "--archive-dir", shared_memory, COLUMNS="200")
    assert result.exit_code == 0, result.stdout


HIDE = "import sys; sys.modules['aeron._aeron'] = None; "


def in_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_module_that_spark_finds_is_light_and_starts_nothing() -> None:
    """08-2"""
    pytest.importorskip("pyspark")
    code = """
import sys, time, threading
import pyspark.sql.datasource
begin = time.perf_counter()
import pyspark_aeron
duration = time.perf_counter() - begin
assert threading.active_count() == 1
assert not {"pandas", "numpy", "pyarrow"} & set(sys.modules), sys.modules.keys()
print(pyspark_aeron.DefaultSource.name(), duration)
"""
    runs = [in_python(code).split() for _ in range(3)]
    assert {name for name, _ in runs} == {"aeron"}
    assert min(float(duration) for _, duration in runs) < 0.1


def test_without_the_native_module_the_format_is_there_and_says_why() -> None:
    """08-2"""
    pytest.importorskip("pyspark")
    code = """
import pyspark_aeron
assert pyspark_aeron.DefaultSource.name() == "aeron"
try:
    pyspark_aeron.DefaultSource({}).schema()
except ImportError as error:
    print(error)
"""
    assert in_python(HIDE + code).startswith("format aeron cannot be loaded: ")


def test_the_module_never_raises_even_without_pyspark() -> None:
    """08-2"""
    in_python("import sys; sys.modules['pyspark'] = None; import pyspark_aeron")
    in_python(HIDE + "sys.modules['pyspark'] = None; import pyspark_aeron")


def test_import_aeron_imports_neither_pyspark_nor_pyarrow() -> None:
    """08-3"""
    code = "import sys, aeron, aeron.spark; print(sorted({'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)))"
    assert in_python(code) == "[]"


@pytest.mark.parametrize("version", ["4.1.3", "4.0.0", "3.5.8"])
def test_an_older_pyspark_is_refused_in_one_line(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """08-12"""
    pyspark = pytest.importorskip("pyspark")
    from aeron.spark.source import AeronDataSource

    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(aeron.AeronError, match=f"^format aeron needs PySpark 4.2 or newer, found {version}$"):
        AeronDataSource({})

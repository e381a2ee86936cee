"""``aeron.spark.check()`` and ``aeron doctor spark``: they name missing requirements and remedies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aeron
from aeron.spark.checks import Check, check
from aeron.spark.versions import check_pyspark
from commands import run


def named(checks: list[Check], what: str) -> Check:
    return next(line for line in checks if line.what == what)


def test_existing_installations_are_found(media_driver: aeron.MediaDriver, shared_memory: Path) -> None:
    checks = check(str(media_driver.dir), str(shared_memory))
    assert named(checks, "media driver").ok
    assert named(checks, "archive directory").ok
    assert named(checks, "pyspark_aeron").found == "format aeron"
    assert named(checks, "PySpark").found[0].isdigit()


def test_the_error_for_a_missing_driver_says_how_to_start_one(shared_memory: Path) -> None:
    driver = named(check(str(shared_memory / "none"), str(shared_memory)), "media driver")
    assert not driver.ok
    assert driver.remedy.startswith(f'start one with "aeron driver --dir {shared_memory}/none"')


def test_files_of_dead_drivers_and_ended_queries_are_reported_and_are_not_a_failure(
    shared_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AERON_DIR", str(shared_memory / "aeron"))
    left = shared_memory / "aeron-named"
    aeron.MediaDriver(dir=left, dir_delete_on_shutdown=False).close()
    archive = shared_memory / "archives" / "9f0c000000000000000000000000beef"
    archive.mkdir(parents=True)
    (archive / "private.lock").touch()
    checks = check(archive_dir=str(shared_memory / "archives"))
    directory = named(checks, "directory of a dead driver")
    assert directory.ok
    assert directory.found.startswith(str(left))
    assert directory.found.endswith(f"remove it by: rm -r {left}")
    archives = named(checks, "archives of ended queries")
    assert archives.ok
    assert archives.found.startswith(f"1 in {shared_memory}/archives, 0 MiB")


def test_a_spark_python_without_this_package_is_reported(monkeypatch: pytest.MonkeyPatch, shared_memory: Path) -> None:
    """This is the environment of ``.venv/bin/python job.py`` without activation."""
    other = shared_memory / "python3"
    other.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'aeron'\" >&2; exit 1\n")
    other.chmod(0o700)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(shared_memory))
    line = named(check(archive_dir=str(shared_memory)), "Python of Spark")
    assert not line.ok
    assert line.found == "python3: ModuleNotFoundError: No module named 'aeron'"
    assert f"export PYSPARK_PYTHON={sys.executable}" in line.remedy
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert named(check(archive_dir=str(shared_memory)), "Python of Spark").ok
    monkeypatch.setenv("PYSPARK_PYTHON", "python-that-is-not-there")
    line = named(check(archive_dir=str(shared_memory)), "Python of Spark")
    assert (line.ok, line.found) == (False, "python-that-is-not-there is not on the path")


JOB = """
import sys
from pyspark.sql import SparkSession
import aeron.spark
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
aeron.spark.register(spark)
frame = spark.readStream.format("aeron").options(channel="aeron:ipc", streamId="1").load()
print(frame.columns[0], spark.sparkContext.pythonExec == sys.executable)
"""


def test_a_job_uses_the_python_of_its_environment_without_activation(java: None, shared_memory: Path) -> None:
    other = shared_memory / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o700)
    job = shared_memory / "job.py"
    job.write_text(JOB)
    environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
    environment["PATH"] = f"{shared_memory}:{environment['PATH']}"
    command = [sys.executable, str(job)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["value", "True"], done.stderr
    environment["PYSPARK_PYTHON"] = str(other)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode != 0, "the job did not use the Python that the user chose"


def test_java_is_searched_in_java_home(monkeypatch: pytest.MonkeyPatch, shared_memory: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(shared_memory))
    java = named(check(archive_dir=str(shared_memory)), "Java")
    assert not java.ok
    assert str(shared_memory) in java.found
    assert "JAVA_HOME" in java.remedy


def test_a_broken_module_of_another_package_is_named(monkeypatch: pytest.MonkeyPatch, shared_memory: Path) -> None:
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


def test_a_module_that_ends_python_or_prints_binary_output_is_named_too(
    monkeypatch: pytest.MonkeyPatch, shared_memory: Path
) -> None:
    (shared_memory / "pyspark_ending.py").write_text("print('hello'); raise SystemExit")
    (shared_memory / "pyspark_silent.py").write_text("import os; os._exit(0)")
    noise = "import sys; sys.stdout.buffer.write(b'\\xff\\n')"
    (shared_memory / "pyspark_noisy.py").write_text(f"{noise}; input()")
    (shared_memory / "pyspark_capital.py").write_text("class DefaultSource:\n    name = staticmethod(lambda: 'Aeron')")
    monkeypatch.syspath_prepend(shared_memory)
    monkeypatch.setenv("PYTHONPATH", str(shared_memory))
    checks = check(archive_dir=str(shared_memory))
    for name in ("pyspark_ending", "pyspark_silent"):
        assert not named(checks, name).ok
        assert named(checks, name).found == "ends Python with status 0"
    assert named(checks, "pyspark_noisy").found == "EOFError: EOF when reading a line"
    assert named(checks, "pyspark_capital").found == "claims the format aeron too"


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("printf 'openjdk version \"11.0.2\"\\n' >&2", "11.0.2 at "),
        ("printf '\\377\\376 version \"21.0.2\"\\n' >&2; exit 3", "tells no version, it ends with status 3"),
        ("printf 'something else\\n' >&2", "tells no version, it ends with status 0"),
    ],
)
def test_an_unsuitable_java_is_reported(
    script: str, found: str, monkeypatch: pytest.MonkeyPatch, shared_memory: Path
) -> None:
    java = shared_memory / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(shared_memory))
    line = named(check(archive_dir=str(shared_memory)), "Java")
    assert not line.ok
    assert found in line.found


def test_a_pyspark_without_package_metadata_is_found_and_a_broken_one_is_reported(
    monkeypatch: pytest.MonkeyPatch, shared_memory: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    package = shared_memory / "pyspark" / "__init__.py"
    package.parent.mkdir()
    monkeypatch.syspath_prepend(shared_memory)
    for text, ok, found in (
        ("__version__ = '4.2.9'", True, "4.2.9"),
        ("__version__ = '4.1.0'", False, "format aeron needs PySpark 4.2 or newer, found 4.1.0"),
        ("import py4j_that_is_not_there", False, "ModuleNotFoundError: No module named 'py4j_that_is_not_there'"),
    ):
        package.write_text(text)
        shutil.rmtree(package.parent / "__pycache__", ignore_errors=True)
        monkeypatch.delitem(sys.modules, "pyspark", raising=False)
        line = named(check(archive_dir=str(shared_memory)), "PySpark")
        assert (line.ok, line.found) == (ok, found)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert named(check(archive_dir=str(shared_memory)), "PySpark").found == "not installed"


def test_the_reported_archive_directory_is_the_one_that_a_source_uses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    free = {"/dev/shm": 64 << 20}
    monkeypatch.setattr("aeron.spark.checks._free", lambda path: free.get(str(path), 1 << 40))
    line = named(check(), "archive directory")
    assert line.ok
    assert line.found.startswith(f"{tmp_path}/aeron-spark-{os.geteuid()}, ")
    deeper = named(check(archive_dir=str(tmp_path / "not" / "yet" / "there")), "archive directory")
    assert deeper.ok
    assert named(check(archive_dir="here"), "archive directory").found == "here is not an absolute path"


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


def test_doctor_prints_a_remedy_for_each_missing_requirement(shared_memory: Path) -> None:
    result = run("doctor", "spark", "--dir", shared_memory / "none", "--archive-dir", shared_memory, COLUMNS="200")
    assert result.exit_code == 1
    line = next(line for line in result.stdout.splitlines() if "media driver" in line)
    assert line.startswith("no")
    assert "aeron driver --dir" in line


def test_doctor_prints_brackets_in_texts_unchanged(
    monkeypatch: pytest.MonkeyPatch, media_driver: aeron.MediaDriver, shared_memory: Path
) -> None:
    monkeypatch.setattr("aeron.spark.checks.check_pyspark", lambda version: check_pyspark("4.1.0"))
    result = run("doctor", "spark", "--dir", shared_memory / "[/no]", "--archive-dir", shared_memory, COLUMNS="200")
    assert "pip install 'aeron-py[spark]'" in result.stdout
    assert f"none in {shared_memory}/[/no]" in result.stdout


def test_doctor_exits_with_0_if_all_requirements_are_met(
    java: None, media_driver: aeron.MediaDriver, shared_memory: Path
) -> None:
    result = run(
        "doctor",
        "spark",
        "--dir",
        media_driver.dir,
        "--archive-dir",
        shared_memory,
        COLUMNS="200",
        PYSPARK_PYTHON=sys.executable,
    )
    assert result.exit_code == 0, result.stdout


HIDE = "import sys; sys.modules['aeron._aeron'] = None; "


def in_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_module_that_spark_finds_is_imported_fast_and_starts_no_thread() -> None:
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


def test_without_the_native_module_the_format_raises_an_error_with_the_reason() -> None:
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


def test_the_import_of_the_module_never_raises_even_without_pyspark() -> None:
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
    # PySpark 3.5 does not have this module. The error must still name the version.
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    monkeypatch.delitem(sys.modules, "aeron.spark.source")
    with pytest.raises(aeron.AeronError, match=f"^format aeron needs PySpark 4.2 or newer, found {version}$"):
        aeron.spark.register(None)  # type: ignore[arg-type]

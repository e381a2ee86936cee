"""The measured programs. Ours are the package and binaries of a release; the peers have a separate environment."""

import functools
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from bench import PROJECT
from interop import sbe_codecs, toolchain

PEER_PACKAGES = ("pyaeron==0.1.0", "pyzmq==27.3.0", "iceoryx2==0.10.0", "uvloop==0.23.0", "numpy")
_BUILD_TIMEOUT_S = 1800
PEERS = PROJECT / "bench" / "peers"


@functools.cache
def peers():
    """Returns the path of a Python with the peers' packages."""
    return toolchain.environment("bench-peers", *PEER_PACKAGES)


_chosen = []


@contextmanager
def using(build):
    """Makes the benchmarks use the programs of a build: an environment that `made_build` has made. `None` chooses the
    build of this checkout."""
    _chosen.append(build)
    try:
        yield
    finally:
        _chosen.pop()


@functools.cache
def made_build():
    """Builds the release wheel and the native program of this checkout. Returns the environment that contains both.

    The version of Python is that of `peers`.
    """
    wheels = toolchain.CACHE / "bench-wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    _run(sys.executable, "-m", "maturin", "build", "--release", "--quiet", "--out", wheels)
    [wheel] = wheels.glob("*.whl")
    python = toolchain.environment("bench-ours", "numpy", "pyarrow", "uvloop==0.23.0", "click", "rich")
    _run(python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", wheel)
    _run("cargo", "build", "--release", "--quiet", "-p", "aeron-bench")
    target = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target"))
    shutil.copy(target / "release" / "aeron-bench", python.parent)
    return python.parent.parent


def _program(name):
    build = (_chosen and _chosen[-1]) or made_build()
    return Path(build).resolve() / "bin" / name


def ours():
    """Returns the path of a Python with our package."""
    return _program("python")


def native():
    """Returns the path of the program with our Rust client."""
    return _program("aeron-bench")


def aeronmd():
    """Returns the path of our driver."""
    return _program("aeronmd")


def aeronarchive():
    """Returns the path of our archive."""
    return _program("aeronarchive")


def java(main, classes=None):
    """Returns the command of a Java program on Aeron's jar. The program uses the full JIT compiler, unlike in tests."""
    command = [part for part in toolchain.java_command({}, main) if "TieredStopAtLevel" not in part]
    return tuple(command) if classes is None else (*command[:-2], f"{command[-2]}:{classes}", main)


@functools.cache
def java_lister():
    """Returns the command of the Java program that lists recordings with the real client."""
    classes = toolchain.CACHE / "bench-java"
    _run("javac", "-cp", toolchain.jar(), "-d", classes, PEERS / "ListRecordings.java")
    return java("ListRecordings", classes)


@functools.cache
def java_sbe():
    """Returns the command of the Java program that reads SBE messages with the reference implementation."""
    home = toolchain.CACHE / "bench-java-sbe"
    sbe_codecs.generate_codecs(home, [PEERS / "sbe.xml"])
    jars = toolchain.libraries("sbe", sbe_codecs.SBE_TOOL)
    sources = [PEERS / "DecodeSbe.java", *(home / "codecs").rglob("*.java")]
    _run("javac", "-nowarn", "-cp", ":".join(map(str, jars)), "-d", home / "classes", *sources)
    options = ("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED")
    return toolchain.java_program([home / "classes", *jars], options, "DecodeSbe")


@functools.cache
def sbe_messages(role):
    """Returns the path of a file with messages that our package has encoded."""
    file = toolchain.CACHE / f"bench-sbe-{role}"
    _run(ours(), PEERS / "ours_sbe.py", f"write-{role}", "-", f"files={file}")
    return file


@functools.cache
def c_client():
    """Returns the path of the program with the C client, linked against the module of the pyaeron wheel."""
    toolchain.wheel_python()
    program = toolchain.CACHE / "c_client"
    lenient = ("-Wl,--allow-shlib-undefined", "-Wl,--export-dynamic", "-Wl,-z,lazy")
    _run("cc", "-O2", "-o", program, PEERS / "c_client.c", toolchain.wheel_module(), *lenient)
    return program


def _run(*command):
    subprocess.run([str(part) for part in command], check=True, cwd=PROJECT, timeout=_BUILD_TIMEOUT_S)

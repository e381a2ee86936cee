"""Tests of `import aeron`, of docstrings, and of subinterpreters."""

import subprocess
import sys

import pytest

import aeron


def test_the_version_has_three_numbers() -> None:
    assert aeron.__version__.count(".") == 2


def test_import_aeron_imports_no_heavy_libraries() -> None:
    heavy = {"numpy", "pyarrow", "pyspark", "click", "rich", "asyncio"}
    code = f"import sys, aeron; print(sorted({heavy!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_docstring_of_every_public_class_mentions_threads_or_immutability() -> None:
    for name in aeron.__all__:
        thing = getattr(aeron, name)
        if isinstance(thing, type) and not issubclass(thing, (BaseException, int)):
            assert thing.__doc__, name
            assert "thread" in thing.__doc__.lower() or "immutable" in thing.__doc__.lower(), name


def test_every_public_method_and_property_has_a_docstring() -> None:
    missing = [
        f"{name}.{member}"
        for name in aeron.__all__
        if isinstance(thing := getattr(aeron, name), type) and not issubclass(thing, BaseException)
        for member, value in vars(thing).items()
        if not member.startswith("_") and type(value) not in (int, str, type(None), thing)
        if not value.__doc__
    ]
    assert missing == []


_SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
if sys.argv[1] == "main":
    import aeron
interpreter = interpreters.create()
for _ in range(2):
    result = interpreters.run_string(interpreter, '''
try:
    import aeron
except ImportError as error:
    assert "does not support loading in subinterpreters" in str(error), error
else:
    raise AssertionError("imported")
''')
    assert result is None, result
interpreters.destroy(interpreter)
import aeron
try:
    aeron.connect("/no/such/directory", driver_timeout_ms=1)
except aeron.DriverTimeoutError:
    print("caught")
"""


@pytest.mark.parametrize("first", ["main", "subinterpreter"])
def test_a_subinterpreter_cannot_import_aeron_and_the_main_interpreter_can_still_catch_exceptions_of_aeron(
    first: str,
) -> None:
    command = [sys.executable, "-c", _SUBINTERPRETER, first]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "caught\n"), done.stderr


_HANDLER = """
import os, signal, sys
import aeron

def handle(*_):
    try:
        aeron.ShutdownSignalBarrier
    except AttributeError as error:
        print(error)

def trace(frame, event, _):
    if event == "line" and frame.f_globals.get("__name__") == "aeron.barrier":
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGUSR1)
    return trace

signal.signal(signal.SIGUSR1, handle)
sys.settrace(trace)
print(aeron.ShutdownSignalBarrier.__name__)
handle()
"""


def test_a_signal_handler_during_the_first_use_of_a_name_gets_a_clear_error() -> None:
    done = subprocess.run([sys.executable, "-c", _HANDLER], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    error, name = done.stdout.splitlines()
    assert error.startswith("aeron.ShutdownSignalBarrier is not loaded yet, and this code runs in a signal handler")
    assert name == "ShutdownSignalBarrier"

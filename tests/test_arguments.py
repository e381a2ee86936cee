"""Tests of wrong arguments. The error of every public call names the parameter, the wrong value and the valid
values."""

from __future__ import annotations

import ast
import asyncio
import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Stream

import aeron
from aeron import _aeron


class Wrong:
    """A value of a type that no parameter accepts."""

    def __repr__(self) -> str:
        return "<wrong>"


ANYTHING = {"object", "Any"}
"""Annotations of parameters that accept any value."""
VALID: dict[str, Any] = {
    "aeron_dir": "/nowhere",
    "block": b"",
    "block_length_limit": 4096,
    "channel": "aeron:ipc",
    "correlation_id": 1,
    "directory": "/nowhere/archive",
    "current": 1,
    "data": b"",
    "delta": 1,
    "destination": "aeron:udp?endpoint=localhost:1",
    "dtype": "V1",
    "flags": 0,
    "handler": print,
    "handler_id": 1,
    "id": 0,
    "index": 0,
    "initial_term_id": 0,
    "key": b"",
    "label": "a label",
    "length": 8,
    "limit": 10,
    "limit_position": 0,
    "live_destination": "aeron:udp?endpoint=localhost:2",
    "message": b"",
    "messages": [b""],
    "name": "mtu",
    "new": 1,
    "parts": [b""],
    "partition": 0,
    "path": "/nowhere",
    "position": 0,
    "proposed": 1,
    "reason": "a reason",
    "replay_channel": "aeron:udp?session-id=1",
    "replay_destination": "aeron:udp?endpoint=localhost:0",
    "registration_id": 1,
    "session_id": 1,
    "signal": "START",
    "source_address": None,
    "src_control_channel": "aeron:ipc",
    "stop_position": None,
    "stop_timestamp_ms": None,
    "stream_id": 1,
    "term_id": 0,
    "term_length": 65536,
    "term_offset": 0,
    "text": "1k",
    "timeout": 0.0,
    "token": b"",
    "type_id": 1001,
    "value": 1,
}
"""Valid arguments by parameter name. A call gets them for all required parameters except the tested one."""
NEEDED = {
    "archive": "AeronArchive",
    "client": "Aeron",
    "publication": "Publication",
    "recorded": "Publication",
    "subscription": "Subscription",
}
"""Parameters that accept an object of this package, and the class of the object that a call gets. The fixture `objects`
has an object of each class."""
VALID_BY_TYPE: dict[str, Any] = {
    "bool": True,
    "int": 1,
    "str": "a text",
    "bytes": b"",
    "LogFrame": aeron.LogFrame(0, 0, ""),
}


@functools.cache
def stub() -> list[ast.stmt]:
    """Returns the statements of all stub files. Parsing them takes a second."""
    files = (Path(_aeron.__file__).parent / "_stubs").glob("*.pyi")
    return [node for file in sorted(files) for node in ast.parse(file.read_text()).body]


def parameters(function: ast.FunctionDef) -> dict[str, tuple[str, bool]]:
    """Returns the annotation of each parameter except `self` and `cls`, and whether the parameter is required."""
    arguments = function.args
    positional = arguments.args
    required = len(positional) - len(arguments.defaults)
    found = {
        argument.arg: (ast.unparse(argument.annotation) if argument.annotation else "", number < required)
        for number, argument in enumerate(positional)
    }
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found[argument.arg] = (ast.unparse(argument.annotation) if argument.annotation else "", default is None)
    found.pop("self", None)
    found.pop("cls", None)
    return found


def calls() -> Iterator[tuple[str, str, str]]:
    """Yields class, method and parameter of all public calls. The class of a function is empty."""
    for node in stub():
        if isinstance(node, ast.FunctionDef) and node.name in aeron.__all__:
            yield from ((("", node.name, parameter)) for parameter in checked(node))
        if isinstance(node, ast.ClassDef) and node.name in aeron.__all__:
            for method in node.body:
                if not isinstance(method, ast.FunctionDef):
                    continue
                if method.name == "__new__" or not method.name.startswith("_"):
                    yield from ((node.name, method.name, parameter) for parameter in checked(method))


def checked(function: ast.FunctionDef) -> list[str]:
    return [name for name, (annotation, _) in parameters(function).items() if annotation not in ANYTHING]


def function_of(kind: str, method: str) -> ast.FunctionDef:
    for node in stub():
        if isinstance(node, ast.FunctionDef) and not kind and node.name == method:
            return node
        if isinstance(node, ast.ClassDef) and node.name == kind:
            for child in node.body:
                if isinstance(child, ast.FunctionDef) and child.name == method:
                    return child
    raise AssertionError(f"{kind}.{method} is not in the stub")


@pytest.fixture
def objects(stream: Stream, driver: aeron.MediaDriver, tmp_path: Path) -> Iterator[dict[str, Any]]:
    stream.publication.publish(b"x")
    claim = stream.publication.claim(8)
    batch = stream.subscription.poll_batch()
    log = next((Path(driver.dir) / "publications").iterdir())
    server = aeron.Archive(tmp_path, driver=driver)
    archive = aeron.connect_archive(stream.client)
    manual = stream.client.add_subscription("aeron:udp?control-mode=manual", stream.stream_id)
    channels = [VALID[name] for name in ("replay_channel", "replay_destination", "live_destination")]
    found = [
        archive.persistent_subscription(recording_id=0, live_channel="aeron:ipc", live_stream_id=1),
        archive.recorded_publisher("aeron:ipc", stream.stream_id + 1_000_000),
        driver,
        server,
        archive,
        stream.client,
        stream.publication,
        stream.subscription,
        stream.subscription.images[0],
        batch,
        claim,
        stream.client.add_publication("aeron:ipc", stream.stream_id),
        stream.client.add_counter(1001, "a counter"),
        stream.client.counters_reader,
        stream.client.async_next_session_id(1),
        aeron.ChannelUriBuilder("udp"),
        aeron.CncFile(driver.dir),
        aeron.LogFile(log),
        aeron.FragmentAssembler(print),
        aeron.IdleStrategy.parse("noop"),
        aeron.ReplayMerge(manual, archive, *channels, recording_id=0),
    ]
    yield {type(thing).__name__: thing for thing in found}
    archive.close()
    server.close()


def call_with(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    outcome = function(**arguments)
    if inspect.iscoroutine(outcome):
        asyncio.run(asyncio.wait_for(outcome, 5))


def test_the_error_for_a_value_of_a_wrong_type_names_the_parameter(objects: dict[str, Any]) -> None:
    silent: list[str] = []
    count = 0
    for kind, method, parameter in calls():
        owner = objects.get(kind, getattr(aeron, kind)) if kind and method != "__new__" else _aeron
        function = getattr(aeron, kind) if method == "__new__" else getattr(owner, method)
        arguments = {
            name: VALID.get(name, VALID_BY_TYPE.get(annotation))
            for name, (annotation, is_required) in parameters(function_of(kind, method)).items()
            if is_required
        }
        arguments.update((name, objects[each]) for name, each in NEEDED.items() if name in arguments)
        if parameter == "offsets":
            arguments["messages"] = b"abc"
        arguments[parameter] = Wrong()
        count += 1
        named = "mtu" if (method, parameter) == ("put", "value") else parameter
        try:
            call_with(function, arguments)
        except aeron.AeronError as error:
            # Data may be large, so its error names only its type.
            begin = "data is of type " if method == "offer_arrow" and named == "data" else f"{named}=<wrong> is not "
            if not (isinstance(error, TypeError) and str(error).startswith(begin)):
                silent.append(f"{kind}.{method}({parameter}): {type(error).__name__}: {error}")
        except Exception as error:
            silent.append(f"{kind}.{method}({parameter}): {type(error).__name__}: {error}")
        else:
            silent.append(f"{kind}.{method}({parameter}) accepted a wrong value")
    objects["BufferClaim"].abort()
    assert not silent, "\n".join(silent)
    assert count > 250


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aeron.connect(client_name=5), "client_name=5 is not a str"),
        (lambda: aeron.connect(pre_touch_mapped_memory=5), "pre_touch_mapped_memory=5 is not True or False"),
        (
            lambda: aeron.connect(use_conductor_agent_invoker="x"),
            "use_conductor_agent_invoker='x' is not True or False",
        ),
        (lambda: aeron.ChannelUriBuilder("tcp"), 'media=\'?"?tcp"?\'? is not "ipc" or "udp"'),
        (lambda: aeron.ChannelUriBuilder(mtu=1.5), "mtu=1.5 is not a str, an integer or a bool"),
        (lambda: aeron.RandomLoss("a"), "rate='a' is not a number from 0 to 1"),
        (lambda: aeron.RandomLoss(0.5, frame_types=5), "frame_types=5 is not an iterable of aeron.FrameType"),
        (lambda: aeron.parse_size([0] * 100), r"text=\[0, 0, .*\.\.\. is not a str"),
    ],
)
def test_the_error_for_a_wrong_value_shows_the_value_and_the_valid_values(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(aeron.AeronError, match=f"^{message}") as raised:
        call()
    assert "\n" not in str(raised.value)


def test_the_error_for_a_wrong_item_of_a_list_names_its_index(stream: Stream) -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match=r"^messages\[1\]=5 is not bytes-like"):
        stream.publication.offer_batch([bytearray(1), wrong])
    with pytest.raises(TypeError, match=r"^parts\[1\]=5 is not bytes-like"):
        stream.publication.offer_parts([b"a", wrong])
    with pytest.raises(TypeError, match=r"^offsets='a' is not an integer"):
        stream.publication.offer_batch(b"abc", offsets=["a", "b"])  # type: ignore[list-item]
    assert stream.subscription.poll_batch().to_list() == []


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
def test_a_negative_timeout_and_a_timeout_of_nan_are_refused(stream: Stream, timeout: float) -> None:
    with pytest.raises(ValueError, match=r"^timeout=(-1|NaN) is not a number of seconds from 0 on"):
        stream.publication.publish(b"x", timeout)


@pytest.mark.parametrize("timeout", [10**400, -(10**400)], ids=["positive", "negative"])
def test_the_error_for_an_integer_beyond_the_range_of_a_float_shows_the_range(stream: Stream, timeout: int) -> None:
    message = r"^timeout=-?10+\.\.\. is not within -1\.7976931348623157e308 to 1\.7976931348623157e308"
    with pytest.raises(aeron.ArgumentRangeError, match=message):
        stream.publication.publish(b"x", timeout)

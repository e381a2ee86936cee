"""Tests of requests to a driver that does not respond.

One driver is stopped, and every request of the Python package that waits for a driver is made. Each request ends at the
driver timeout with an error that names the timeout. When the driver continues, nothing of these requests is left.
"""

from __future__ import annotations

import ast
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually
from tests.frozen import archive_process, driver_process, frozen

import aeron
from ports import free_port

pytestmark = pytest.mark.slow

DRIVER_TIMEOUT_MS = 400
# A request ends at the driver timeout, and also if the client is closed because the driver's heartbeat is too old.
LIMIT = re.compile(
    r"no response from MediaDriver within 400ms|MediaDriver keepalive: age=\d+ms > timeout=400ms"
    r"|no driver heartbeat detected after [45]\d\d ms"
)
# The driver timeout, and the time that a busy machine may need in addition.
SLOW_S = 2.5
MANUAL = "aeron:udp?control-mode=manual"
STATIC_COUNTER_TYPE, HEARTBEAT_TYPE = 1999, 11
DRIVER_SETTINGS = {
    "AERON_CLIENT_LIVENESS_TIMEOUT": "1500ms",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
    "AERON_IPC_TERM_BUFFER_LENGTH": "64k",
}
STUBS = Path(aeron.__file__).parent / "_stubs"


class Scene:
    """A client with a short driver timeout, and resources of this client for one request."""

    def __init__(self, directory: str, number: int) -> None:
        self.directory = directory
        self.stream_id = 2000 + number
        self.channel = f"aeron:udp?endpoint=localhost:{free_port()}"
        self.client = aeron.connect(
            directory, driver_timeout_ms=DRIVER_TIMEOUT_MS, keepalive_interval_ns=50_000_000, error_handler=ignore
        )

    def publication(self) -> aeron.Publication:
        return self.client.add_publication(MANUAL, self.stream_id)

    def exclusive_publication(self) -> aeron.ExclusivePublication:
        return self.client.add_exclusive_publication(MANUAL, self.stream_id)

    def subscription(self) -> aeron.Subscription:
        return self.client.add_subscription(MANUAL, self.stream_id)

    def image(self) -> aeron.Image:
        self.publisher = self.client.add_publication("aeron:ipc", self.stream_id)
        self.subscriber = self.client.add_subscription("aeron:ipc", self.stream_id)
        self.subscriber.wait_connected(timeout=5)
        return self.subscriber.images[0]

    def archive(self) -> aeron.AeronArchive:
        """Returns a client of the archive, whose message timeout is longer than the driver timeout."""
        return aeron.connect_archive(self.client, message_timeout=10)


def ignore(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Request:
    """A method of an object. The object is created while the driver responds."""

    # Returns the object.
    of: Callable[[Scene], Any]
    method: str
    arguments: Callable[[Scene], list[Any]] = lambda _: []
    keywords: dict[str, Any] = field(default_factory=dict)
    # Whether the argument is a destination that was added before.
    removes_destination: bool = False

    def prepare(self, scene: Scene, prefix: str) -> Callable[[], object]:
        """Returns the call of the method, or of its form with the prefix `async_`."""
        owner, arguments = self.of(scene), self.arguments(scene)
        if self.removes_destination:
            owner.add_destination(*arguments)
        method = getattr(owner, prefix + self.method)
        return lambda: method(*arguments, **self.keywords)


def client(scene: Scene) -> aeron.Aeron:
    return scene.client


def module(_: Scene) -> Any:
    return aeron


def channel(scene: Scene) -> list[Any]:
    return [scene.channel]


def stream(scene: Scene) -> list[Any]:
    return [scene.channel, 1]


def archive_directory(scene: Scene) -> list[Any]:
    return [f"{scene.directory}-archive-{scene.stream_id}", scene.directory]


TO_DRIVER = {"driver_timeout_ms": DRIVER_TIMEOUT_MS}
PERSISTENT = {"recording_id": 0, "live_channel": "aeron:ipc", "live_stream_id": 1}
REQUESTS = {
    "Aeron": Request(module, "connect", lambda scene: [scene.directory], TO_DRIVER),
    "Archive": Request(module, "Archive", archive_directory, TO_DRIVER),
    "Aeron.add_publication": Request(client, "add_publication", stream),
    "Aeron.add_exclusive_publication": Request(client, "add_exclusive_publication", stream),
    "Aeron.add_subscription": Request(client, "add_subscription", stream),
    "Aeron.add_counter": Request(client, "add_counter", lambda _: [1001, "late"]),
    "Aeron.add_static_counter": Request(client, "add_static_counter", lambda _: [STATIC_COUNTER_TYPE, "late", 7]),
    "Aeron.next_session_id": Request(client, "next_session_id", lambda _: [1]),
    "Publication.add_destination": Request(Scene.publication, "add_destination", channel),
    "Publication.remove_destination": Request(
        Scene.publication, "remove_destination", channel, removes_destination=True
    ),
    "ExclusivePublication.add_destination": Request(Scene.exclusive_publication, "add_destination", channel),
    "ExclusivePublication.remove_destination": Request(
        Scene.exclusive_publication, "remove_destination", channel, removes_destination=True
    ),
    "Subscription.add_destination": Request(Scene.subscription, "add_destination", channel),
    "Subscription.remove_destination": Request(
        Scene.subscription, "remove_destination", channel, removes_destination=True
    ),
    "Image.reject": Request(Scene.image, "reject", lambda _: ["late"]),
    "AeronArchive.add_recorded_publication": Request(Scene.archive, "add_recorded_publication", stream),
    "AeronArchive.add_recorded_exclusive_publication": Request(
        Scene.archive, "add_recorded_exclusive_publication", stream
    ),
    "AeronArchive.persistent_subscription": Request(Scene.archive, "persistent_subscription", keywords=PERSISTENT),
    "PersistentSubscription": Request(module, "PersistentSubscription", lambda scene: [scene.client], PERSISTENT),
}
WITHOUT_TWIN = {"Archive", "AeronArchive.persistent_subscription", "PersistentSubscription"}
FORMS = [(name, "") for name in REQUESTS] + [(name, "async_") for name in REQUESTS if name not in WITHOUT_TWIN]


CONNECTS = {"Aeron", "Archive"}


@dataclass(frozen=True)
class Outcome:
    """The end of a request during the stop of the driver."""

    error: BaseException | None
    seconds: float


@dataclass(frozen=True)
class Run:
    """The outcomes of all requests, and the counters of the driver before and after."""

    outcomes: dict[tuple[str, str], Outcome]
    before: Counter[tuple[int, str]]
    after: Counter[tuple[int, str]]
    new_client_received: list[bytes]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Makes all requests while the driver is stopped, and then lets the driver continue."""
    with (
        driver_process(**DRIVER_SETTINGS) as driver,
        archive_process(driver) as archive,
        aeron.connect(driver.directory) as observer,
    ):
        before = counters(observer)
        scenes = [Scene(driver.directory, number) for number in range(len(FORMS))]
        calls = [REQUESTS[name].prepare(scene, prefix) for scene, (name, prefix) in zip(scenes, FORMS, strict=True)]
        with ThreadPoolExecutor(len(calls)) as threads:
            with frozen(driver.process.pid):
                first = dict(zip(FORMS, threads.map(outcome, calls), strict=True))
                # A connection needs no response. It fails if the heartbeat of the driver is too old, as it is now.
                connects = [(form, call) for form, call in zip(FORMS, calls, strict=True) if form[0] in CONNECTS]
                again = threads.map(outcome, [call for _, call in connects])
                outcomes = first | dict(zip([form for form, _ in connects], again, strict=True))
            for scene in scenes:
                scene.client.close()
            received = round_trip(driver.directory)
        try:
            eventually(lambda: counters(observer) - before == LEFT and not before - counters(observer))
        finally:
            after = counters(observer)
            assert archive.process.exit_code is None
            yield Run(outcomes, before, after, received)


LEFT = Counter([(STATIC_COUNTER_TYPE, "late")])


def outcome(request: Callable[[], object]) -> Outcome:
    begin = time.monotonic()
    error = None
    try:
        made = request()
        if isinstance(made, aeron.PendingOperation):
            made = made.result(timeout=20)
    except aeron.AeronError as raised:
        error = raised
    return Outcome(error, time.monotonic() - begin)


def counters(observer: aeron.Aeron) -> Counter[tuple[int, str]]:
    """Returns type and label of all counters. The label of a heartbeat changes when the client sends its name."""
    found = observer.counters_reader.snapshot()
    return Counter((counter.type_id, counter.label * (counter.type_id != HEARTBEAT_TYPE)) for counter in found)


def round_trip(directory: str) -> list[bytes]:
    """Returns the messages that a new client receives from itself."""
    with aeron.connect(directory, driver_timeout_ms=5000) as client:
        publication = client.add_publication("aeron:ipc", 1)
        subscription = client.add_subscription("aeron:ipc", 1)
        publication.publish(b"after", timeout=5)
        received: list[bytes] = []
        eventually(lambda: received.extend(subscription.poll_batch().to_list()) or received)
        return received


@pytest.mark.parametrize(("name", "prefix"), FORMS, ids=[f"{name}-{prefix or 'sync'}" for name, prefix in FORMS])
def test_a_request_to_a_stopped_driver_ends_with_an_error_that_names_the_limit(
    run: Run, name: str, prefix: str
) -> None:
    ended = run.outcomes[name, prefix]
    assert ended.error is not None
    # On a busy machine, the client is closed before the request begins. The reason is the same.
    closed = aeron.ClientClosedError, aeron.SubscriptionClosedError, aeron.PublicationClosedError
    cause = ended.error.__cause__ if isinstance(ended.error, closed) else ended.error
    assert isinstance(cause, aeron.DriverTimeoutError), ended
    assert LIMIT.search(str(cause)), ended
    assert ended.seconds < SLOW_S, ended


def test_after_the_stop_of_a_driver_a_new_client_works_and_no_counter_of_the_failed_requests_is_left(run: Run) -> None:
    assert run.new_client_received == [b"after"]
    # A static counter outlives its client. The driver executes the request when the driver continues.
    assert run.after - run.before == LEFT
    assert not run.before - run.after


def test_every_method_that_waits_for_a_driver_is_requested_of_a_stopped_driver() -> None:
    assert set(waiting_methods()) == set(REQUESTS)


def waiting_methods() -> Iterator[str]:
    """Yields the names of the methods and constructors that raise `DriverTimeoutError` if a driver does not respond."""
    pattern = re.compile(
        r"DriverTimeoutError: If (the|no) driver (does not respond|responds) within the driver timeout"
    )
    for path in STUBS.glob("*.pyi"):
        for found in ast.parse(path.read_text()).body:
            if not isinstance(found, ast.ClassDef) or not hasattr(aeron, found.name):
                continue
            kind = getattr(aeron, found.name)
            if pattern.search(kind.__doc__ or ""):
                yield found.name
            for method in found.body:
                is_public = isinstance(method, ast.FunctionDef) and not method.name.startswith(("async_", "_"))
                if is_public and pattern.search(getattr(kind, method.name).__doc__ or ""):
                    yield f"{found.name}.{method.name}"

"""Tests of `PersistentSubscription` in one process: forms of polling, handlers and closing.

A number such as 11-64 is line 64 of the checklist in document 11 of the specification (`docs/spec`).
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron

IPC = "aeron:ipc"
MESSAGES = [b"%d" % number * 700 for number in range(20)]


@pytest.fixture
def archive(driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path) -> Iterator[aeron.AeronArchive]:
    settings: dict[str, Any] = {"segment_file_length": 128 * 1024, "low_storage_space_threshold": 0}
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, **settings),
        aeron.connect_archive(client) as archive,
    ):
        yield archive


@pytest.fixture
def publication(archive: aeron.AeronArchive, stream_id: int) -> aeron.Publication:
    """Returns a publication on which all `MESSAGES` were published and recorded."""
    publication = archive.add_recorded_publication("aeron:ipc?term-length=64k", stream_id)
    for message in MESSAGES:
        position = publication.publish(message, timeout=5)
    archive.wait_recorded(publication, position, timeout=5)
    return publication


@pytest.fixture
def settings(publication: aeron.Publication) -> dict[str, Any]:
    return {
        "recording_id": 0,
        "live_channel": IPC,
        "live_stream_id": publication.stream_id,
        "start_position": aeron.FROM_START,
    }


def read(subscription: aeron.PersistentSubscription, count: int) -> list[bytes]:
    messages: list[bytes] = []
    for batch in subscription.batches(timeout=10):
        messages += batch.to_list()
        if len(messages) >= count:
            break
    return messages


def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "archive.md").read_text()
    section = page.partition("## From the recorded stream to the live stream")[2]
    program = section.partition("```python\n")[2].partition("```")[0]
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[b'before']" in done.stdout
    assert "LIVE [b'after']" in done.stdout


def test_all_forms_of_polling_return_the_same_messages(archive: aeron.AeronArchive, settings: dict[str, Any]) -> None:
    """11-71"""
    with archive.persistent_subscription(**settings) as subscription:
        assert read(subscription, len(MESSAGES)) == MESSAGES
        assert list(subscription.batches(timeout=0)) == []
    polled: list[bytes] = []
    with archive.persistent_subscription(**settings) as subscription:
        eventually(lambda: subscription.poll(lambda payload, header: polled.append(payload)) or len(polled) == 20)
        eventually(lambda: len(polled) == 20 or subscription.poll(lambda payload, header: polled.append(payload)) < 0)
    assert polled == MESSAGES
    batches: list[bytes] = []
    with archive.persistent_subscription(**settings) as subscription:
        while len(batches) < 20:
            batch = subscription.poll_batch(limit=3)
            assert len(batch) <= 3
            assert batch.stream_id == settings["live_stream_id"]
            batches += batch.to_list()
    assert batches == MESSAGES


def test_a_coroutine_receives_new_messages_and_events(
    archive: aeron.AeronArchive, publication: aeron.Publication, settings: dict[str, Any]
) -> None:
    events: list[str] = []

    async def run() -> list[bytes]:
        messages: list[bytes] = []
        with archive.persistent_subscription(
            **settings, on_live_joined=lambda: events.append("joined")
        ) as subscription:
            async for batch in subscription:
                messages += batch.to_list()
                if len(messages) == 20:
                    asyncio.get_running_loop().call_later(0.05, publication.offer, b"live")
                if len(messages) == 21:
                    assert subscription.is_live
                    subscription.close()
        return messages

    assert asyncio.run(asyncio.wait_for(run(), 20)) == [*MESSAGES, b"live"]
    assert events == ["joined"]


def test_every_form_of_polling_raises_a_failure_and_the_handler_receives_it_once(
    archive: aeron.AeronArchive, settings: dict[str, Any]
) -> None:
    """11-64, 11-65"""
    told: list[Exception] = []
    settings["recording_id"] = 7
    with archive.persistent_subscription(**settings, on_error=told.append) as subscription:
        for form in (
            lambda: next(subscription.batches(timeout=10)),
            lambda: subscription.poll(print),
            subscription.poll_batch,
            lambda: asyncio.run(anext(aiter(subscription))),  # type: ignore[arg-type]
        ):
            with pytest.raises(aeron.PersistentSubscriptionError, match="unknown recording id: 7") as caught:
                form()
            assert caught.value.reason == "RECORDING_NOT_FOUND"
        assert (subscription.has_failed, subscription.state) == (True, "FAILED")
        assert isinstance(subscription.failure_reason, aeron.PersistentSubscriptionError)
    assert [str(error) for error in told] == ["unknown recording id: 7"]


def test_a_handler_may_close_the_subscription_but_not_poll_it(
    archive: aeron.AeronArchive, settings: dict[str, Any]
) -> None:
    refused: list[Exception] = []

    def handle(payload: bytes, header: aeron.Header) -> None:
        try:
            subscription.poll(handle)
        except aeron.ReentrantCallError as error:
            refused.append(error)
        subscription.close()

    subscription = archive.persistent_subscription(**settings)
    eventually(lambda: subscription.poll(handle, 1) > 0)
    assert refused
    assert subscription.is_closed
    assert subscription.poll(handle) == 0
    assert list(subscription.batches()) == []


def test_a_close_ends_the_wait_of_another_thread(archive: aeron.AeronArchive, settings: dict[str, Any]) -> None:
    with archive.persistent_subscription(**settings) as subscription:
        read(subscription, len(MESSAGES))
        got: list[list[aeron.Batch]] = []
        reader = threading.Thread(target=lambda: got.append(list(subscription.batches())))
        reader.start()
        subscription.close()
        reader.join(10)
        assert got == [[]]


def test_dropping_a_subscription_without_closing_it_leaves_no_counters(
    archive: aeron.AeronArchive, client: aeron.Aeron, settings: dict[str, Any]
) -> None:
    """11-67"""

    class Owner:
        def __init__(self) -> None:
            self.subscription = archive.persistent_subscription(**settings, on_error=self.on_error)

        def on_error(self, error: Exception) -> None: ...

    owner = Owner()
    read(owner.subscription, 1)
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None
    eventually(lambda: not [counter for counter in client.counters_reader if 114 <= counter.type_id <= 117])


def test_a_reference_cycle_of_a_subscription_and_its_credentials_function_is_collected(
    archive: aeron.AeronArchive, client: aeron.Aeron, settings: dict[str, Any]
) -> None:
    class Owner:
        def __init__(self) -> None:
            self.subscription = aeron.PersistentSubscription(client, **settings, credentials=self.credentials)

        def credentials(self, challenge: bytes | None) -> bytes:
            return b""

    owner = Owner()
    assert read(owner.subscription, 1)
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_a_reference_cycle_of_a_merge_and_its_subscription_is_collected(
    archive: aeron.AeronArchive, client: aeron.Aeron, stream_id: int
) -> None:
    class Owner:
        def __init__(self) -> None:
            channel = "aeron:udp?control-mode=manual|session-id=5"
            subscription = client.add_subscription(channel, stream_id, on_available_image=self.on_image)
            replay, live = (f"aeron:udp?endpoint=localhost:{port}" for port in (0, free_port()))
            self.merge = aeron.ReplayMerge(subscription, archive, "aeron:udp?session-id=5", replay, live, 0)

        def on_image(self, image: aeron.Image) -> None: ...

    owner = Owner()
    owner.merge.do_work()
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_missing_and_invalid_settings_are_refused(
    client: aeron.Aeron, archive: aeron.AeronArchive, settings: dict[str, Any]
) -> None:
    """11-1, 11-2, 11-5"""
    for name in ("recording_id", "live_channel", "live_stream_id"):
        others = {key: value for key, value in settings.items() if key != name}
        with pytest.raises(TypeError, match=f"{name} is not given"):
            archive.persistent_subscription(**others)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"recording_id": -2}, aeron.ConfigurationError, "invalid recording_id -2"),
        ({"start_position": -3}, ValueError, "start_position=-3 is not a position"),
        ({"live_channel": ""}, aeron.ConfigurationError, "live_channel must be set"),
        ({"replay_channel": "aeron:tcp"}, ValueError, "channel aeron:tcp: "),
        (
            {"replay_channel": "aeron:udp?control-mode=response|control=localhost:1"},
            aeron.ConfigurationError,
            "Channel media type mismatch.",
        ),
    ]
    for change, kind, text in wrong:
        with pytest.raises(kind, match=text):
            aeron.PersistentSubscription(client, **settings | change)
    with pytest.raises(TypeError, match="no setting message_timeout"):
        archive.persistent_subscription(**settings, message_timeout=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="PersistentSubscription has no setting colour"):
        aeron.PersistentSubscription(client, **settings, colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="on_error"):
        aeron.PersistentSubscription(client, **settings, on_signal=print)  # type: ignore[call-arg]

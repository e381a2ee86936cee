"""Tests of the client: connecting, adding, handlers, errors and closing."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron


def test_the_error_of_connecting_without_a_driver_names_the_missing_cnc_file(tmp_path: Path) -> None:
    """03-66"""
    start = time.monotonic()
    with pytest.raises(aeron.DriverTimeoutError, match=r"cnc\.dat"):
        aeron.connect(tmp_path, driver_timeout_ms=200)
    assert 0.1 < time.monotonic() - start < 3
    with pytest.raises(TimeoutError):
        aeron.connect(str(tmp_path), driver_timeout_ms=1)


def test_a_truncated_or_foreign_cnc_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cnc.dat").write_bytes(b"\x7f" * 100_000)
    with pytest.raises(aeron.AeronError, match=r"cnc|CnC"):
        aeron.connect(tmp_path, driver_timeout_ms=200)
    (tmp_path / "cnc.dat").write_bytes(b"\0\2")
    with pytest.raises(aeron.AeronError, match=r"cnc|CnC"):
        aeron.connect(tmp_path, driver_timeout_ms=200)


def test_the_environment_sets_the_directory_of_the_driver_and_the_driver_timeout(
    driver: aeron.MediaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """05-55"""
    monkeypatch.setenv("AERON_DIR", driver.dir)
    with aeron.connect() as client:
        assert client.client_id > 0
    monkeypatch.setenv("AERON_DRIVER_TIMEOUT", "soon")
    with pytest.raises(aeron.ConfigurationError, match="AERON_DRIVER_TIMEOUT=soon"):
        aeron.connect()


def test_settings_out_of_range_are_refused(driver: aeron.MediaDriver) -> None:
    """03-82, 05-56"""
    with pytest.raises(aeron.ConfigurationError, match="client_name"):
        aeron.connect(driver, client_name="x" * 101)
    with pytest.raises(ValueError, match="idle_sleep_duration_ns"):
        aeron.connect(driver, idle_sleep_duration_ns=2_000_000_000)
    with pytest.raises(aeron.ConfigurationError, match="keepalive_interval_ns"):
        aeron.connect(driver, keepalive_interval_ns=10**11)
    with pytest.raises(TypeError, match="no_such_setting"):
        aeron.connect(driver, no_such_setting=1)
    with pytest.raises(TypeError):
        aeron.connect(5)


@pytest.mark.parametrize(
    ("channel", "error"),
    [
        ("garbage", aeron.InvalidChannelError),
        ("aeron:foo", aeron.InvalidChannelError),
        ("", aeron.InvalidChannelError),
        ("aeron:ipc?term-length=5", aeron.GenericDriverError),
        ("aeron:ipc?mtu=33", aeron.GenericDriverError),
    ],
)
def test_a_channel_that_the_driver_refuses_raises_the_exception_of_its_code(
    client: aeron.Aeron, stream_id: int, channel: str, error: type[aeron.RegistrationError]
) -> None:
    for add in (client.add_publication, client.add_exclusive_publication):
        with pytest.raises(error) as caught:
            add(channel, stream_id)
        assert caught.value.code == error.code
        assert caught.value.correlation_id > 0
        assert str(caught.value)


def test_wrong_types_are_refused_before_anything_is_sent(client: aeron.Aeron) -> None:
    for arguments in [
        (5, 1),
        (None, 1),
        ("aeron:ipc", "1"),
        ("aeron:ipc", 2**31),
        (b"aeron:ipc", 1),
        ("aeron:\ud800", 1),
    ]:
        for add in (client.add_publication, client.add_subscription):
            with pytest.raises((TypeError, OverflowError, UnicodeError, ValueError)):
                add(*arguments)
    assert not client.has_active_commands()


def test_correlation_ids_and_session_ids_are_unique(client: aeron.Aeron, stream_id: int) -> None:
    assert client.next_correlation_id() < client.next_correlation_id()
    assert client.next_session_id(stream_id) != client.next_session_id(stream_id)


def test_closing_a_client_closes_its_publications_subscriptions_and_counters(
    driver: aeron.MediaDriver, stream_id: int
) -> None:
    """03-75, 03-77"""
    closed = []
    client = aeron.connect(driver, on_close=lambda: closed.append("context"))
    client.add_close_handler(lambda: closed.append("added"))
    removed = client.add_close_handler(lambda: closed.append("removed"))
    assert client.remove_close_handler(removed)
    assert not client.remove_close_handler(removed)
    publication = client.add_publication("aeron:ipc", stream_id)
    subscription = client.add_subscription("aeron:ipc", stream_id)
    counter = client.add_counter(1001, "counter")
    client.close()
    client.close()
    assert sorted(closed) == ["added", "context"], "`close` returned before all handlers had run"
    assert client.is_closed
    assert client.close_cause is None
    assert publication.is_closed
    assert subscription.is_closed
    assert counter.is_closed
    for call in (
        lambda: client.add_publication("aeron:ipc", stream_id),
        lambda: client.add_subscription("aeron:ipc", stream_id),
        lambda: client.add_counter(1, "x"),
        lambda: client.async_add_publication("aeron:ipc", stream_id),
        lambda: client.next_session_id(stream_id),
        lambda: counter.value,
    ):
        with pytest.raises(aeron.ClientClosedError):
            call()
    assert repr(client).endswith("closed>")


def test_a_blocking_call_in_a_handler_is_refused(driver: aeron.MediaDriver, stream_id: int) -> None:
    """03-77"""
    errors = []
    with aeron.connect(driver, error_handler=errors.append) as client:
        _subscription = client.add_subscription(
            "aeron:ipc", stream_id, on_available_image=lambda _: client.add_publication("aeron:ipc", stream_id)
        )
        _publication = client.add_publication("aeron:ipc", stream_id)
        eventually(lambda: errors)
        assert isinstance(errors[0], aeron.ReentrantCallError)


def test_an_exception_in_a_handler_is_passed_to_the_error_handler_and_the_client_stays_open(
    driver: aeron.MediaDriver, stream_id: int
) -> None:
    errors = []
    with aeron.connect(driver, error_handler=errors.append, on_available_image=lambda _: 1 // 0) as client:
        _open = client.add_subscription("aeron:ipc", stream_id), client.add_publication("aeron:ipc", stream_id)
        eventually(lambda: errors)
        assert isinstance(errors[0], ZeroDivisionError)
        assert not client.is_closed


def test_exceptions_in_handlers_are_printed_if_there_is_no_error_handler(
    driver: aeron.MediaDriver, stream_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: shown.append(unraisable.exc_value))
    with aeron.connect(driver, on_available_image=lambda _: 1 // 0) as client:
        _open = client.add_subscription("aeron:ipc", stream_id), client.add_publication("aeron:ipc", stream_id)
        eventually(lambda: shown)
        assert isinstance(shown[0], ZeroDivisionError)
    with aeron.connect(driver, on_available_image=lambda _: 1 // 0, error_handler=lambda _: {}["x"]) as client:
        _open = client.add_subscription("aeron:ipc", stream_id), client.add_publication("aeron:ipc", stream_id)
        eventually(lambda: len(shown) == 2)
        assert isinstance(shown[1], KeyError)


def test_a_handler_may_close_its_own_client(driver: aeron.MediaDriver, stream_id: int) -> None:
    client = aeron.connect(driver, on_available_image=lambda _: client.close())
    subscription = client.add_subscription("aeron:ipc", stream_id)
    # The handler may close the client before `add_publication` has read the driver's response.
    with contextlib.suppress(aeron.ClientClosedError):
        client.add_publication("aeron:ipc", stream_id)
    eventually(lambda: client.is_closed)
    client.close()
    assert subscription.is_closed


def test_do_work_runs_a_client_without_threads(driver: aeron.MediaDriver, stream_id: int) -> None:
    """03-81"""
    threads = []
    with aeron.connect(
        driver, use_conductor_agent_invoker=True, on_available_image=lambda _: threads.append(threading.get_ident())
    ) as client:
        subscription = client.add_subscription("aeron:ipc", stream_id)
        _publication = client.add_publication("aeron:ipc", stream_id)
        time.sleep(0.1)
        assert threads == []
        eventually(lambda: client.do_work() or threads)
        eventually(lambda: client.do_work() >= 0 and threads)
        assert threads == [threading.get_ident()]
        assert subscription.image_count == 1


@pytest.mark.slow
def test_a_client_stays_open_while_a_call_of_its_program_holds_the_gil() -> None:
    """A client with a liveness timeout of 2 s is not closed although its program holds the GIL for 5 s."""
    with (
        aeron.MediaDriver(
            client_liveness_timeout_ns=2_000_000_000, publication_unblock_timeout_ns=3_000_000_000
        ) as driver,
        aeron.connect(driver) as client,
    ):
        publication = client.add_publication("aeron:ipc", 1)
        # PyDLL does not release the GIL.
        ctypes.PyDLL(None).usleep(5_000_000)
        assert not client.is_closed
        assert not publication.is_closed
        client.add_subscription("aeron:ipc", 1)


def test_a_client_is_closed_when_the_last_reference_to_it_is_dropped(
    driver: aeron.MediaDriver, client: aeron.Aeron
) -> None:
    other = aeron.connect(driver)
    client_id = other.client_id
    counter = other.add_counter(1001, "to go")
    heartbeats = lambda: [c for c in client.counters_reader if c.type_id == 11 and c.registration_id == client_id]  # noqa: E731
    assert heartbeats()
    del other, counter
    eventually(lambda: not heartbeats())


def test_sigint_ends_the_wait_for_a_driver(tmp_path: Path) -> None:
    def interrupt() -> None:
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        # The thread starts inside the block, because the signal may arrive before `connect` waits.
        threading.Thread(target=interrupt).start()
        aeron.connect(tmp_path, driver_timeout_ms=20_000)
    assert time.monotonic() - start < 10

"""Tests of requests to an archive that does not respond.

The process of an archive is stopped, and every method of `AeronArchive` that has a form with the prefix `async_` is
called in both forms. Each call ends at the message timeout with an error that names the request and the limit. When the
archive continues, the same call gets a response in the same session.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.frozen import archive_process, driver_process, frozen

import aeron
from interop.drivers import PATIENT_SETTINGS

pytestmark = pytest.mark.slow

MESSAGE_TIMEOUT_S = 0.4
# The message timeout, and the time that a busy machine may need in addition.
SLOW_S = 3.0
DRIVER_SETTINGS = {**PATIENT_SETTINGS, "AERON_IPC_TERM_BUFFER_LENGTH": "64k"}
UNKNOWN = 999
# Values of the parameters without a default, by name. No recording has the id, so no request changes a recording.
VALUES: dict[str, Any] = {
    "recording_id": UNKNOWN,
    "src_recording_id": UNKNOWN,
    "dst_recording_id": UNKNOWN + 1,
    "replay_session_id": 1,
    "replication_id": 1,
    "position": 0,
    "new_start_position": 0,
    "channel": "aeron:ipc",
    "src_control_channel": "aeron:ipc",
    "session_id": 1,
    "recorded": "aeron:ipc",
    "name": "name",
    "metadata": b"metadata",
}
# Parameters that have a default, and that a method needs nevertheless.
OTHERS: dict[str, dict[str, Any]] = {
    "find_position": {"since": datetime(2026, 1, 1, tzinfo=UTC)},
    "set_retention": {"recording_id": UNKNOWN, "max_bytes": 1 << 30},
    "stop_recording": {"stream_id": 77},
    "try_stop_recording": {"stream_id": 77},
}
METHODS = [name for name in dir(aeron.AeronArchive) if name[0] != "_" and hasattr(aeron.AeronArchive, f"async_{name}")]
FORMS = [(method, prefix) for method in METHODS for prefix in ("", "async_")]
# Requests that Aeron's archive does not have. The client first asks for the capabilities of the archive. Aeron does
# not respond to this question, so a client cannot distinguish it from an archive that does not respond at all.
ADDED = {
    "apply_retention",
    "commit_reader",
    "find_position",
    "list_copied_ranges",
    "list_readers",
    "list_recording_info",
    "list_retention",
    "remove_reader",
    "set_recording_metadata",
    "set_recording_name",
    "set_retention",
}
LIMIT = re.compile(
    r"^[a-z -]+: awaiting [a-z ]+ for 400ms, correlationId=\d+$"
    r"|^no connection to the archive on .* within 400ms: awaiting [a-z' ]+$"
)


@dataclass(frozen=True)
class Outcome:
    """The end of a call."""

    value: object
    error: BaseException | None
    seconds: float


@dataclass(frozen=True)
class Run:
    """The outcomes of the calls while the archive was stopped, and of the same calls afterwards."""

    stopped: Outcome
    afterwards: Outcome
    state_afterwards: str
    listing_afterwards: Outcome


class Session:
    """A session with the archive, for one method."""

    def __init__(self, client: aeron.Aeron, stream_id: int, method: str, prefix: str) -> None:
        self.archive = aeron.connect_archive(
            client, message_timeout=MESSAGE_TIMEOUT_S, control_term_buffer_length=64 * 1024
        )
        parameters = inspect.signature(getattr(aeron.AeronArchive, method)).parameters
        required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
        values = VALUES | {"stream_id": stream_id}
        arguments = {name: values[name] for name in required if name not in ("self", "publication")}
        if "publication" in required:
            arguments["publication"] = self.archive.add_recorded_exclusive_publication("aeron:ipc", stream_id)
        self._call = lambda: getattr(self.archive, prefix + method)(**arguments, **OTHERS.get(method, {}))

    def call(self) -> Outcome:
        return outcome(self._call)

    def list(self) -> Outcome:
        return outcome(self.archive.list_recordings)


def outcome(call: Callable[[], object]) -> Outcome:
    begin = time.monotonic()
    value, error = None, None
    try:
        value = call()
        if isinstance(value, aeron.PendingOperation):
            value = value.result(timeout=20)
    except aeron.AeronError as raised:
        error = raised
    return Outcome(value, error, time.monotonic() - begin)


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[tuple[str, str], Run]]:
    """Makes all calls while the archive is stopped, and again after it continues."""
    with (
        driver_process(**DRIVER_SETTINGS) as driver,
        archive_process(driver) as archive,
        aeron.connect(driver.directory) as client,
    ):
        sessions = [Session(client, 1000 + number, *form) for number, form in enumerate(FORMS)]
        with ThreadPoolExecutor(len(sessions)) as threads:
            with frozen(archive.process.pid):
                stopped = list(threads.map(Session.call, sessions))
            listings = list(threads.map(Session.list, sessions))
            states = [session.archive.state for session in sessions]
            afterwards = list(threads.map(Session.call, sessions))
        yield dict(zip(FORMS, map(Run, stopped, afterwards, states, listings), strict=True))


@pytest.mark.parametrize(("method", "prefix"), FORMS, ids=[prefix + method for method, prefix in FORMS])
def test_a_request_to_a_stopped_archive_ends_with_an_error_and_the_next_request_gets_a_response(
    runs: dict[tuple[str, str], Run], method: str, prefix: str
) -> None:
    run = runs[method, prefix]
    error = run.stopped.error
    assert run.stopped.seconds < SLOW_S
    if method in ADDED:
        assert isinstance(error, aeron.NotSupportedByArchiveError), run
        assert "it did not respond to a request for its capabilities" in str(error)
    else:
        assert isinstance(error, aeron.ArchiveTimeoutError), run
        assert LIMIT.search(str(error)), run
    assert run.state_afterwards == "CONNECTED"
    assert run.listing_afterwards.error is None, run
    assert not isinstance(run.afterwards.error, aeron.ArchiveTimeoutError | aeron.NotSupportedByArchiveError), run

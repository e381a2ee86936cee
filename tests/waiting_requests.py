"""Calls every request of `AeronArchive` while the process of an archive is stopped, and again after it continues."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.conftest import eventually
from tests.frozen import archive_process, driver_process, frozen

import aeron
from interop.drivers import PATIENT_SETTINGS

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
    r"|: it did not respond to a request for its capabilities within 400ms; check that it runs,"
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
        self.archive = connect(client)
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
        """Lists the recordings. While the real archive works on an expired listing, it refuses another one."""
        begin = time.monotonic()
        while True:
            listed = outcome(self.archive.list_recordings)
            is_refused = isinstance(listed.error, aeron.ActiveListingError)
            if not is_refused or time.monotonic() - begin > SLOW_S:
                return listed


def connect(client: aeron.Aeron) -> aeron.AeronArchive:
    """Connects to the archive. On a busy machine, the first responses may take longer than the message timeout."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return aeron.connect_archive(
                client, message_timeout=MESSAGE_TIMEOUT_S, control_term_buffer_length=64 * 1024
            )
        except aeron.ArchiveTimeoutError:
            if time.monotonic() > deadline:
                raise


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


def runs(kind: str) -> dict[tuple[str, str], Run]:
    """Makes all calls to an archive of a kind while the archive is stopped, and again after it continues."""
    with (
        driver_process(**DRIVER_SETTINGS) as driver,
        archive_process(driver, kind=kind) as archive,
        aeron.connect(driver.directory) as client,
    ):
        sessions = [Session(client, 1000 + number, *form) for number, form in enumerate(FORMS)]
        with frozen(archive.process.pid), ThreadPoolExecutor(len(sessions)) as threads:
            stopped = list(threads.map(Session.call, sessions))
        # The message timeout is short, so the archive first carries out the requests that it got while it was stopped,
        # and then gets few at a time.
        eventually(lambda: sessions[0].list().error is None)
        with ThreadPoolExecutor(4) as threads:
            listings = list(threads.map(Session.list, sessions))
            states = [session.archive.state for session in sessions]
            afterwards = list(threads.map(Session.call, sessions))
        return dict(zip(FORMS, map(Run, stopped, afterwards, states, listings), strict=True))


def check(run: Run, method: str) -> None:
    """Checks that the call to the stopped archive ended at the message timeout, and the next call got a response."""
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
    assert not isinstance(run.afterwards.error, aeron.ArchiveTimeoutError), run

"""The same commands to the real C driver and to ours: the answers, the counters and the error counts must agree.

Random values (session ids, directories) are replaced by the order of their appearance; texts of errors are a driver's
own. The reference says in a few places to follow the Java driver instead; those commands have tests of their own below.
"""

import json
import re
import struct
import time

import pytest

from interop import control, toolchain
from interop.control import ControlClient

VECTORS = json.loads((toolchain.PROJECT / "rust/protocol/tests/vectors/commands.json").read_text())
SETTINGS = {
    "AERON_IPC_TERM_BUFFER_LENGTH": "64k",
    "AERON_CLIENT_LIVENESS_TIMEOUT": "30s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "40s",
    # Which freed counter is used again would depend on how long a step took.
    "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT": "60s",
}
SETTLE_S = 0.5  # five timer intervals: what a driver does at its timer has happened
_STREAM_COUNTER_TYPES = (1, 2, 3, 4, 5, 9, 10, 12, 13, 17, 19, 20)
_VERSION = re.compile(r"version=\S+ commit=\S+")
# Bytes sent, cycle times and the like measure a run; these count what was done, and 43 says what is spoken.
_COMPARED_SYSTEM_COUNTERS = (14, 15, 19, 20, 24, 40, 42, 43)


class Run:
    """One driver under a script, whose observations are made comparable."""

    def __init__(self, driver):
        self._driver = driver
        self._client = ControlClient(driver.directory)
        self._sessions = {}

    def perform(self, type_id, body):
        return self._comparable(self._client.perform(type_id, body))

    def settled(self):
        return self._comparable(self._client.events())

    def close(self):
        self._client.close()

    def _comparable(self, events):
        lines = []
        for event in events:
            values = {**event.values}
            if "session" in values:
                values["session"] = self._session(values["session"])
            if "log" in values:
                values["log"] = values["log"].removeprefix(self._driver.directory)
            if event.name == "ON_ERROR":
                del values["text"]
            lines.append((event.name, values))
        return lines

    def _session(self, session):
        return self._sessions.setdefault(session, f"session {len(self._sessions)}")

    def counters(self):
        """Every counter with its id, type, key, label, owner and reference, and the values that a script decides."""
        comparable = []
        for counter in self._client.counters():
            key, label = counter.key, _VERSION.sub("version", counter.label)
            if counter.type in _STREAM_COUNTER_TYPES:
                session = struct.unpack_from("<i", key, 8)[0]
                key = key[:8] + self._session(session).encode() + key[12:]
                label = label.replace(str(session), self._session(session))
            compared = counter.type == 0 and counter.id in _COMPARED_SYSTEM_COUNTERS
            value = counter.value if compared or counter.type >= 1000 else None
            identity = (counter.registration, counter.owner, counter.reference)
            comparable.append((counter.id, counter.type, key, label, identity, value))
        return comparable

    def error_counts(self):
        """How often each distinct error happened."""
        return [count for count, _ in self._client.error_log()]


@pytest.fixture
def runs(start_driver):
    """The reference run on the C driver, and ours."""
    both = [Run(start_driver(kind, SETTINGS)) for kind in ("c", "ours")]
    yield both
    for run in both:
        run.close()


def compare(runs, commands):
    """Performs (name, type, body) on both drivers in lock step."""
    for name, type_id, body in commands:
        theirs, ours = (run.perform(type_id, body) for run in runs)
        assert ours == theirs, name
        if type_id in (control.REMOVE_PUBLICATION, control.CLIENT_CLOSE, control.REJECT_IMAGE):
            time.sleep(SETTLE_S)
            theirs, ours = (run.settled() for run in runs)
            assert ours == theirs, f"{name}, at the timer"
    theirs, ours = (run.counters() for run in runs)
    assert ours == theirs
    theirs, ours = (run.error_counts() for run in runs)
    assert ours == theirs


def recorded(source, *, without=()):
    """The recorded commands of a source that need no socket."""
    for entry in VECTORS:
        if entry["source"] == source and entry["direction"] == "client_to_driver":
            name = entry["name"].split("/")[1]
            channel = entry["decoded"].get("channel", "")
            if name not in without and not channel.startswith(("aeron:udp", "aeron-spy:")):
                yield name, entry["msg_type_id"], bytes.fromhex(entry["hex"])


def test_refusals_are_those_of_the_c_driver(runs):
    """03-26, 03-25, 03-50, 03-52, 03-54, 03-56, 03-58"""
    follows_java = ("remove_destination_by_id_unknown_publication", "reject_image_reason_3_bytes_unpadded")
    compare(runs, recorded("c-driver-errors", without=(*follows_java, "reject_image_reason_empty")))


def test_ipc_publications_and_subscriptions_are_answered_as_by_the_c_driver(runs):
    """03-12, 03-13, 03-14, 03-16, 03-18, 03-19, 03-20, 03-21, 03-23, 03-27, 03-28, 03-29, 03-30, 03-34"""
    compare(runs, recorded("c-driver-ipc"))


def test_counters_and_ends_of_clients_are_answered_as_by_the_c_driver(runs):
    """03-42, 03-43, 03-44, 03-45, 03-62"""
    rejected_address_follows_java = ("reject_image_ipc",)
    compare(runs, recorded("c-driver-lifecycle", without=(*rejected_address_follows_java, "terminate_driver_allowed")))

"""Sends the same commands to the real C driver and to ours. Responses, counters and error counts must be equal.

Before they compare, the tests replace each session id by its number in the order of appearance, and remove the
driver's directory from file names. Error texts may differ. For a few commands the reference says to follow the Java
driver. These commands have separate tests below.
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
    # The clients of the scripts write no heartbeat.
    "AERON_CLIENT_LIVENESS_TIMEOUT": "200s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "210s",
    # With a shorter time, the duration of a step would determine which freed counter is used again.
    "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT": "600s",
}
SETTLE_S = 0.5  # five timer intervals: the driver has executed its timer work
PATIENCE_S = 20
_STREAM_COUNTER_TYPES = (1, 2, 3, 4, 5, 9, 10, 12, 13, 17, 19, 20)
# A label that is too long is truncated to 380 bytes. The last bytes depend on the number of digits of the session id,
# and the C driver writes a zero after them.
_SURE_LABEL_LENGTH = 360
_VERSION = re.compile(r"version=\S+ commit=\S+")
# These counters count actions, and 43 is the version. The values of others, such as sent bytes and cycle times, depend
# on timing.
_COMPARED_SYSTEM_COUNTERS = (14, 15, 19, 20, 24, 40, 42, 43)


class Run:
    """One driver that executes a script, with observations that can be compared."""

    def __init__(self, driver):
        self._driver = driver
        self._client = ControlClient(driver.directory)
        self._sessions = {}

    def perform(self, type_id, body):
        return self._comparable(self._client.perform(type_id, body))

    def settled(self):
        return self._comparable(self._client.events())

    def beat(self, client):
        self._client.beat(client)

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
        """Returns every counter with id, type, key, label, owner and reference, and those values that depend on the
        script."""
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
            comparable.append((counter.id, counter.type, key, label[:_SURE_LABEL_LENGTH], identity, value))
        return comparable

    def error_counts(self):
        """Returns the count of each distinct error."""
        return [count for count, _ in self._client.error_log()]


@pytest.fixture
def runs(start_driver):
    """Returns the run on the C driver, which is the reference, and the run on ours."""
    both = [Run(start_driver(kind, SETTINGS)) for kind in ("c", "ours")]
    yield both
    for run in both:
        run.close()


def compare(runs, commands):
    """Performs each command (name, type, body) on both drivers, and compares the drivers after each command."""
    for name, type_id, body in commands:
        theirs, ours = perform_on_both(runs, type_id, body)
        assert ours == theirs, name
        if type_id in (control.REMOVE_PUBLICATION, control.CLIENT_CLOSE, control.REJECT_IMAGE):
            theirs, ours = at_the_timer(runs)
            assert ours == theirs, f"{name}, at the timer"
    assert_same_counters(runs)
    theirs, ours = (run.error_counts() for run in runs)
    assert ours == theirs


def perform_on_both(runs, type_id, body):
    """Performs a command on both drivers, and returns the events of both.

    One driver may be later than the other. The function waits until both drivers have sent the same events, or until a
    timeout.
    """
    told = [run.perform(type_id, body) for run in runs]
    deadline = time.monotonic() + PATIENCE_S
    while told[0] != told[1] and time.monotonic() < deadline:
        time.sleep(0.001)
        for events, run in zip(told, runs, strict=True):
            events.extend(run.settled())
    return told


def assert_same_counters(runs):
    """Compares the final counters. A timer frees resources later, so one driver may be later than the other."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        theirs, ours = (run.counters() for run in runs)
        if ours == theirs or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    assert ours == theirs


def at_the_timer(runs):
    """Returns the events that the timers of both drivers cause. Waits until the events of both drivers are equal,
    because one driver may be later."""
    told = [], []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        time.sleep(SETTLE_S)
        for events, run in zip(told, runs, strict=True):
            events.extend(run.settled())
        if told[0] == told[1] or time.monotonic() > deadline:
            return told


def recorded(source, *, without=()):
    """Yields the recorded commands of a source, without the commands that need a socket."""
    for entry in VECTORS:
        if entry["source"] == source and entry["direction"] == "client_to_driver":
            name = entry["name"].split("/")[1]
            channel = entry["decoded"].get("channel", "")
            if name not in without and not channel.startswith(("aeron:udp", "aeron-spy:")):
                yield name, entry["msg_type_id"], bytes.fromhex(entry["hex"])


def test_our_driver_refuses_the_same_commands_as_the_c_driver(runs):
    """03-26, 03-25, 03-50, 03-52, 03-54, 03-56, 03-58"""
    follows_java = ("remove_destination_by_id_unknown_publication", "reject_image_reason_3_bytes_unpadded")
    compare(runs, recorded("c-driver-errors", without=(*follows_java, "reject_image_reason_empty")))


def test_commands_for_ipc_publications_and_subscriptions_have_the_responses_of_the_c_driver(runs):
    """03-12, 03-13, 03-14, 03-16, 03-18, 03-19, 03-20, 03-21, 03-23, 03-27, 03-28, 03-29, 03-30, 03-34"""
    compare(runs, recorded("c-driver-ipc"))


def test_commands_for_counters_and_client_close_have_the_responses_of_the_c_driver(runs):
    """03-42, 03-43, 03-44, 03-45, 03-62"""
    rejected_address_follows_java = ("reject_image_ipc",)
    compare(runs, recorded("c-driver-lifecycle", without=(*rejected_address_follows_java, "terminate_driver_allowed")))


def answers(run, commands):
    """Returns the responses to each command: names of events and error codes."""
    seen = {}
    for name, type_id, body in commands:
        seen[name] = [(kind, values.get("code")) for kind, values in run.perform(type_id, body)]
    return seen


def _words(text):
    return text.split()


PUBLICATION_PARAMETERS = _words("""
    term-length=64k term-length=65536 term-length=100 term-length=96k term-length=32k term-length=1g term-length=2g
    term-length=abc term-length=-1 term-length=0 term-length= term-length=64K term-length=1m
    mtu=64 mtu=96 mtu=32 mtu=33 mtu=1408 mtu=65504 mtu=65536 mtu=abc mtu=8k mtu=1500
    init-term-id=7|term-id=8|term-offset=64 init-term-id=7|term-id=8 term-id=8 term-offset=64
    init-term-id=7|term-id=8|term-offset=33 init-term-id=7|term-id=8|term-offset=-32
    init-term-id=7|term-id=8|term-offset=65536|term-length=64k
    init-term-id=7|term-id=8|term-offset=65568|term-length=64k
    init-term-id=8|term-id=7|term-offset=0 init-term-id=2147483647|term-id=-2147483648|term-offset=0
    init-term-id=0|term-id=-2147483648|term-offset=0 init-term-id=x|term-id=8|term-offset=0
    pub-wnd=64k|term-length=128k pub-wnd=32k|term-length=64k pub-wnd=33k|term-length=64k pub-wnd=1408 pub-wnd=1407
    pub-wnd=abc pub-wnd=0
    session-id=5 session-id=-5 session-id=0 session-id=2147483647 session-id=2147483648 session-id=abc session-id=
    session-id=tag:5 session-id=tag: session-id=tag:abc
    tags=1 tags=1,2 tags=,5 tags=5, tags=abc tags=1,abc tags=-1,3
    linger=1s linger=0 linger=100 linger=abc linger=-1 linger=5ms
    sparse=true sparse=false|term-length=64k sparse=maybe sparse=TRUE sparse=
    eos=false eos=1 ssc=true ssc=x max-resend=16 max-resend=0 max-resend=257 max-resend=x
    untethered-window-limit-timeout=1s untethered-window-limit-timeout=x untethered-linger-timeout=1s
    untethered-resting-timeout=1s untethered-resting-timeout=-1s
    response-correlation-id=-1 response-correlation-id=5 response-correlation-id=x response-correlation-id=-2
    control-mode=response control-mode=dynamic control-mode=manual control-mode=x
    alias=x stream-id=77 unknown=1 endpoint=localhost:1 mtu=2048|mtu=4096 a=b|c=d alias=a?b=c alias=ä ats=true
    fc=max gtag=x rcv-wnd=x reliable=x nak-delay=x cc=x group=x rejoin=x tether=x
""")

SUBSCRIPTION_PARAMETERS = _words("""
    tether=true tether=false tether=maybe rejoin=false rejoin=x group=true group=false group=infer group=x
    reliable=false reliable=x sparse=false sparse=x session-id=5 session-id=-1 session-id=tag:5 session-id=x
    rcv-wnd=64k rcv-wnd=x untethered-window-limit-timeout=1s untethered-window-limit-timeout=x
    untethered-linger-timeout=x untethered-resting-timeout=x control-mode=response control-mode=manual
    tags=1 tags=x tags=1,x alias=x unknown=y term-length=100 mtu=33 eos=x ssc=x
    response-correlation-id=5 response-correlation-id=x cc=x nak-delay=x gtag=x
""")

WRITTEN_OTHERWISE = [
    "aeron:ipc", "aeron:ipc?", "aeron:ipc|alias=x", "aeron:ipc?=x", "aeron:ipc?|",
    "aeron:ipc?alias=x||mtu=1408", "AERON:ipc", "aeron:IPC", " aeron:ipc", "aeron:ipc ", "aeron::ipc", "aeron", "", ":",
    "aeron:", "aeron:ip", "aeron:ipc-x", "ipc", "aeron-spy:aeron:ipc", "aeron-spy:garbage", "a" * 4095, "a" * 4096,
    "aeron:ipc?alias=" + "x" * (4095 - 16), "aeron:ipc?alias=" + "x" * (4096 - 16),
]  # fmt: skip


# The C driver ignores a parameter without a value. The reference says to refuse the channel.
UNFINISHED = ("aeron:ipc?alias", "aeron:ipc?alias=x|")


def channels(parameters):
    return [*(f"aeron:ipc?{parameter}" for parameter in parameters), *WRITTEN_OTHERWISE]


def compare_answers(runs, commands):
    """Compares the responses for all channels at once, so that a failure shows every channel with a difference."""
    theirs, ours = (answers(run, commands) for run in runs)
    differing = {channel: (theirs[channel], ours[channel]) for channel in theirs if theirs[channel] != ours[channel]}
    assert differing == {}, differing
    assert_same_counters(runs)


@pytest.mark.parametrize("kind", [control.ADD_PUBLICATION, control.ADD_EXCLUSIVE_PUBLICATION])
def test_our_driver_and_the_c_driver_accept_the_same_publication_channels(runs, kind):
    """03-53, 03-54, 03-56, 04-38, 04-46, 04-47, 05-3, 05-4"""
    commands = [
        (channel, kind, control.add(1, 100 + n, 5000 + n, channel))
        for n, channel in enumerate(channels(PUBLICATION_PARAMETERS))
    ]
    compare_answers(runs, commands)


def test_our_driver_and_the_c_driver_accept_the_same_subscription_channels(runs):
    """04-38, 05-7"""
    commands = [
        (channel, control.ADD_SUBSCRIPTION, control.add_subscription(1, 100 + n, 5000 + n, channel))
        for n, channel in enumerate(channels(SUBSCRIPTION_PARAMETERS))
    ]
    compare_answers(runs, commands)


@pytest.mark.parametrize("channel", UNFINISHED)
def test_a_channel_parameter_without_a_value_is_refused(start_driver, channel):
    """05-1"""
    run = Run(start_driver("ours", SETTINGS))
    assert run.perform(control.ADD_PUBLICATION, control.add(1, 2, 3, channel)) == [
        ("ON_ERROR", {"correlation": 2, "code": 1})
    ]


def told_of_the_end(runs, silent, watcher):
    """Returns the events of both drivers until `SETTLE_S` after the end of the silent client.

    The watcher has heartbeats all the time.
    """
    told, end, ended_at = ([], []), ("ON_CLIENT_TIMEOUT", {"client": silent}), None
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        time.sleep(0.1)
        for events, run in zip(told, runs, strict=True):
            run.beat(watcher)
            events.extend(run.settled())
        if ended_at is None and all(end in events for events in told):
            ended_at = time.monotonic()
        if ended_at is not None and told[0] == told[1] and time.monotonic() > ended_at + SETTLE_S:
            break
    return told


def test_a_client_without_heartbeats_ends_like_on_the_c_driver(start_driver):
    """03-11, 03-61, 03-63, 04-26, 04-28: order of events, remaining resources, and reuse of the client id"""
    settings = {**SETTINGS, "AERON_CLIENT_LIVENESS_TIMEOUT": "4s", "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "5s"}
    runs = [Run(start_driver(kind, settings)) for kind in ("c", "ours")]
    silent, watcher = -7, 100
    commands = [
        ("its stream", control.ADD_PUBLICATION, control.add(silent, 2, 1001, "aeron:ipc")),
        ("its subscription", control.ADD_SUBSCRIPTION, control.add_subscription(silent, 3, 1001, "aeron:ipc")),
        ("its counter", control.ADD_COUNTER, control.add_counter(silent, 4, 1001, b"key", "label")),
        ("its static one", control.ADD_STATIC_COUNTER, control.add_static_counter(silent, 5, 9, 1002, b"", "kept")),
        ("a watcher", control.ADD_SUBSCRIPTION, control.add_subscription(watcher, 6, 1001, "aeron:ipc")),
    ]
    for name, type_id, body in commands:
        theirs, ours = perform_on_both(runs, type_id, body)
        assert ours == theirs, name
    theirs, ours = told_of_the_end(runs, silent, watcher)
    assert ours == theirs
    assert ("ON_CLIENT_TIMEOUT", {"client": silent}) in ours
    again = control.add_counter(silent, 7, 1001, b"", "once more")
    theirs, ours = (run.perform(control.ADD_COUNTER, again) for run in runs)
    assert ours == theirs
    assert_same_counters(runs)


@pytest.fixture
def rejected(start_driver):
    """Starts our driver, and adds an IPC publication and its image. Returns the client and the image's correlation
    id."""
    client = ControlClient(start_driver("ours", SETTINGS).directory)
    client.perform(control.ADD_PUBLICATION, control.add(1, 2, 1001, "aeron:ipc"))
    added = client.perform(control.ADD_SUBSCRIPTION, control.add_subscription(1, 3, 1001, "aeron:ipc"))
    if not any(event.name == "ON_AVAILABLE_IMAGE" for event in added):
        client.await_event("ON_AVAILABLE_IMAGE")
    return client, 2


@pytest.mark.parametrize("reason", ["", "no", "not wanted"])
def test_a_rejection_informs_the_publisher_then_the_subscribers_then_the_requester(rejected, reason):
    """03-46, 03-47, 03-48: even if the reason is shorter than the C driver requires"""
    client, image = rejected
    error, gone, success = client.perform(control.REJECT_IMAGE, control.reject_image(1, 4, image, 0, reason))
    assert (error.name, error.registration, error.code, error.text) == ("ON_PUBLICATION_ERROR", 2, 13, reason)
    assert error.length >= 72
    assert (error.address_type, error.address[:4], error.port) == (1, bytes((127, 0, 0, 1)), 0)
    assert (gone.name, gone.image, gone.subscription) == ("ON_UNAVAILABLE_IMAGE", image, 3)
    assert (success.name, success.correlation) == ("ON_OPERATION_SUCCESS", 4)
    back = client.await_event("ON_AVAILABLE_IMAGE")[-1]
    assert (back.image, back.subscription) == (image, 3)


def test_a_rejection_without_client_id_and_correlation_id_is_accepted(rejected):
    """03-46: the C client sends this form"""
    client, image = rejected
    events = client.perform(control.REJECT_IMAGE, control.reject_image(0, 0, image, 0, "no") + b"\0")
    assert [event.name for event in events] == ["ON_PUBLICATION_ERROR", "ON_UNAVAILABLE_IMAGE", "ON_OPERATION_SUCCESS"]


def test_bytes_after_a_command_are_ignored(rejected):
    """03-9"""
    client, _ = rejected
    [ready] = client.perform(control.ADD_COUNTER, control.add_counter(1, 9, 1001, b"abc", "label") + b"trailing")
    assert (ready.name, ready.registration) == ("ON_COUNTER_READY", 9)
    assert client.counters()[-1].label == "label"


@pytest.mark.parametrize(
    "body",
    [
        struct.pack("<qqi", 1, 9, 1001),
        struct.pack("<qqii", 1, 9, 1001, -1),
        struct.pack("<qqii", 1, 9, 1001, 200) + b"abc",
        struct.pack("<qqii", 1, 9, 1001, 4) + b"abcd" + struct.pack("<i", 2**31 - 1),
        struct.pack("<qqii", 1, 9, 1001, 2**31 - 1) + b"abcd",
    ],
    ids=["no lengths", "negative", "key beyond", "label beyond", "huge"],
)
def test_a_malformed_counter_command_has_no_response(rejected, body):
    """03-50, 03-51: like the Java driver, ours ignores the command; the C driver reads the bytes after it as lengths"""
    client, _ = rejected
    before = [counter.id for counter in client.counters()]
    assert client.perform(control.ADD_COUNTER, body) == []
    assert [counter.id for counter in client.counters()] == before
    assert client.error_log() != []

"""Runs clients as processes: the real Java and C clients and ours. Each operation of any client is one line of text.

A request is `operation<TAB>name=value<TAB>...`. A response is one line of JSON: `{"ok": {...}}` or
`{"error": {"type", "code", "text"}}`. A registration id (`id`) names a resource. Each publication numbers its messages,
and a message has the pattern of `peer/pattern.py`. The receivers check the pattern, so this protocol has no payloads.

Operations: connect, disconnect, closed, add_publication, add_subscription, publish (many messages), offer (one
attempt), hold and finish (a claim that stays open in between), pad, publication and subscription (their state),
receive, reject, add_destination and remove_destination (of a publication or subscription), add_counter, set_counter,
counters, next_session, events, close.
"""

import json
import os
import sys
import time
from dataclasses import dataclass

from interop import toolchain
from interop.processes import LineProcess

# The timeout is long, because a Java virtual machine may start slowly and the first response follows the start.
_CALL_TIMEOUT_S = 60
_TRANSFER_TIMEOUT_S = 30


class PeerError(Exception):
    """An operation failed inside the peer. `code` is Aeron's error code if the driver refused."""

    def __init__(self, error):
        super().__init__(f"{error['type']}: {error['text']}")
        self.type, self.code, self.text = error["type"], abs(error["code"]), error["text"]


class Peer:
    """One client process. Operations are methods, or arguments of `call`. With `start` and `answer`, operations of
    several peers may overlap."""

    def __init__(self, kind, log):
        self.kind = kind
        self._unanswered = 0
        self._unseen = []
        self.driver_kind = None
        self.process = LineProcess(_command(kind), log=log, environment=_environment(kind))

    def connect(self, driver, **settings):
        """Connects to a driver. Returns the client id."""
        self._unseen = []
        self.driver_kind = driver.kind
        return self.call("connect", dir=driver.directory, **settings)["client"]

    def add_publication(self, channel, stream, *, exclusive=False):
        return Publication(self, self.call("add_publication", channel=channel, stream=stream, exclusive=exclusive))

    def add_subscription(self, channel, stream):
        return Subscription(self, self.call("add_subscription", channel=channel, stream=stream))

    def add_counter(self, type, label, key=b"", registration=""):
        """Adds a counter of the client. With a registration id, the counter is a static counter."""
        values = self.call("add_counter", type=type, label=label, key=key.hex(), registration=registration)
        return Counter(self, values["id"], values["registration"])

    def counters(self):
        return self.call("counters")["counters"]

    def events(self):
        """Returns the events since the last call: images, counters, errors, and the close of the client."""
        unseen, self._unseen = self._unseen, []
        return unseen + self.call("events")["events"]

    def await_events(self, *kinds, timeout_s=10, count=1):
        """Polls until `count` events of these kinds have arrived. Returns all events."""
        seen = []
        deadline = time.monotonic() + timeout_s
        while sum(event["event"] in kinds for event in seen) < count:
            assert time.monotonic() < deadline, f"{self.kind}: no {kinds} within {timeout_s} s, only {seen}"
            seen += self.events()
            time.sleep(0.02)
        return seen

    def await_event(self, kind, *, timeout_s=10, **values):
        """Waits for the next event of this kind with these values, and returns it. Drops the events before it."""
        seen = []
        deadline = time.monotonic() + timeout_s
        while True:
            events = self.events()
            for number, event in enumerate(events):
                if event["event"] == kind and values.items() <= event.items():
                    self._unseen = events[number + 1 :]
                    return event
            seen += events
            assert time.monotonic() < deadline, f"{self.kind}: no {kind} with {values} in {timeout_s} s, only {seen}"
            time.sleep(0.02)

    def is_closed(self):
        return self.call("closed")["closed"]

    def call(self, operation, *, answer_timeout_s=_CALL_TIMEOUT_S, **values):
        self.start(operation, **values)
        return self.answer(answer_timeout_s)

    def start(self, operation, **values):
        """Sends a request without waiting, so that several peers can work at once. `answer` reads the response."""
        pairs = (f"\t{name}={_text(value)}" for name, value in values.items())
        self._unanswered += 1
        self.process.write(operation + "".join(pairs))

    def answer(self, timeout_s=_CALL_TIMEOUT_S):
        answer = json.loads(self.process.read(timeout_s))
        self._unanswered -= 1
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer["ok"]

    def is_usable(self):
        """Returns whether the process runs and has responded to all requests."""
        return self._unanswered == 0 and self.process.exit_code is None

    def kill(self):
        """Kills the process with SIGKILL."""
        self.process.kill()


@dataclass
class Resource:
    """A resource of a peer with a registration id."""

    peer: Peer
    values: dict

    def __getattr__(self, name):
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None

    def _call(self, operation, **values):
        return self.peer.call(operation, id=self.values["registration"], **values)

    def close(self, **values):
        self._call("close", **values)

    def add_destination(self, channel):
        self._call("add_destination", channel=channel)

    def remove_destination(self, channel):
        self._call("remove_destination", channel=channel)


class Publication(Resource):
    """A publication. Its attributes are the constants that the client reported."""

    def start_publish(self, count, lengths, *, how="offer", timeout_s=_TRANSFER_TIMEOUT_S):
        """Starts to send messages with `offer`, `parts`, `claim` or `aborts`.

        `aborts` makes each claim after two aborted claims. Java's peer does not have it.
        """
        self.peer.start(
            "publish",
            id=self.registration,
            count=count,
            lengths=lengths,
            how=how,
            timeout_ms=int(timeout_s * 1000),
        )

    def offer(self, length, *, how="offer"):
        """Makes one attempt. Returns Aeron's result."""
        return self._call("offer", length=length, how=how)["result"]

    def hold(self, length):
        """Claims a message and leaves the claim open until `finish`."""
        return self._call("hold", length=length)["result"]

    def finish(self, *, abort=False):
        self._call("finish", abort=abort)

    def pad(self, length):
        return self._call("pad", length=length)["result"]

    def state(self):
        return self._call("publication")

    def await_connected(self, connected=True, timeout_s=10):
        """Waits until the publication is connected, or not connected.

        A real driver may report the connection before the publisher limit has moved, so this method waits for both.
        """
        deadline = time.monotonic() + timeout_s
        while not self._is_connected(connected):
            assert time.monotonic() < deadline, f"{self.peer.kind}: not connected={connected} within {timeout_s} s"
            time.sleep(0.01)

    def _is_connected(self, connected):
        state = self.state()
        has_room = state["limit"] > state["position"]
        return state["connected"] == connected and (not connected or has_room or self.peer.driver_kind == "ours")


class Subscription(Resource):
    """A subscription. `receive` assembles the messages and checks every byte of them."""

    def start_receive(self, count, lengths, *, first=0, timeout_s=_TRANSFER_TIMEOUT_S):
        self.peer.start(
            "receive", id=self.registration, count=count, lengths=lengths, first=first, timeout_ms=int(timeout_s * 1000)
        )

    def receive(self, count, lengths, *, first=0, timeout_s=_TRANSFER_TIMEOUT_S):
        self.start_receive(count, lengths, first=first, timeout_s=timeout_s)
        return self.peer.answer(timeout_s + _CALL_TIMEOUT_S)

    def state(self):
        return self._call("subscription")

    def images(self):
        return self.state()["images"]

    def await_images(self, count, timeout_s=10):
        deadline = time.monotonic() + timeout_s
        while len(images := self.images()) != count:
            assert time.monotonic() < deadline, (
                f"{self.peer.kind}: {len(images)} images after {timeout_s} s, not {count}"
            )
            time.sleep(0.01)
        return images

    def reject(self, session, reason):
        self._call("reject", session=session, reason=reason)


@dataclass
class Counter:
    """A counter of a peer."""

    peer: Peer
    id: int
    registration: int

    def set(self, value):
        self.peer.call("set_counter", id=self.registration, value=value)

    def close(self):
        self.peer.call("close", id=self.registration)


def transfer(publications, subscriptions, count, lengths, *, how="offer", timeout_s=_TRANSFER_TIMEOUT_S):
    """Sends `count` messages on each publication, reads them from each subscription, and checks that none was lost.

    Every publication and subscription must belong to a different peer, because all work at once. Returns the responses
    of the subscriptions.
    """
    for subscription in subscriptions:
        subscription.start_receive(count * len(publications), lengths, timeout_s=timeout_s)
    for publication in publications:
        publication.start_publish(count, lengths, how=how, timeout_s=timeout_s)
    sent = [publication.peer.answer(timeout_s + _CALL_TIMEOUT_S) for publication in publications]
    received = [subscription.peer.answer(timeout_s + _CALL_TIMEOUT_S) for subscription in subscriptions]
    for answer in sent:
        assert answer["sent"] == count, answer
    for answer in received:
        assert answer["faults"] == [], answer
        assert answer["received"] == count * len(publications), answer
    return received


def _command(kind):
    if kind == "java":
        return toolchain.java_peer_command()
    if kind == "java-archive":
        return toolchain.java_peer_command("JavaArchive")
    if kind == "java-archive-client":
        return toolchain.java_peer_command("ArchiveClientPeer")
    if kind == "c":
        return (toolchain.wheel_python(), "-u", toolchain.HERE / "peer" / "c_peer.py")
    if kind == "our-archive-client":
        return (toolchain.rust_example("archive_client"),)
    if kind in ("ours", "old", "ours-user", "old-user"):
        program = "archive_user.py" if kind.endswith("user") else "our_peer.py"
        return (sys.executable, "-u", toolchain.HERE / "peer" / program)
    raise ValueError(f"no peer of kind {kind}")


def _environment(kind):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AERON_")}
    return {**inherited, **toolchain.python_environment(kind)}


def _text(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)

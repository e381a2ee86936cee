"""A client that writes and reads single messages of the archive protocol, to check the exact responses of an archive.

It uses publications and subscriptions of our Aeron client, which runs in the test process. So our Aeron client must be
able to connect to the driver.
"""

import struct
import time

from interop.waiting import eventually

_SCHEMA, _VERSION = 101, 13
PROTOCOL_VERSION = 1 << 16 | 12 << 8
CONNECT, CLOSE_SESSION, CHALLENGE_RESPONSE, KEEP_ALIVE, ARCHIVE_ID = 58, 3, 60, 61, 68
LIST_RECORDING, START_RECORDING = 10, 63
RESPONSE, SIGNAL, PING = 1, 24, 106
OK, ERROR, RECORDING_UNKNOWN = 0, 1, 2
_STREAM = 8020
_TIMEOUT_S = 10
_EVENTS = {101: ("started", "<qqii"), 102: ("progress", "<qqq"), 103: ("stopped", "<qqq")}


def message(template, block, *texts):
    """Returns the bytes of a message: header, `block`, and `texts`, each with its length."""
    data = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return struct.pack("<4H", len(block), template, _SCHEMA, _VERSION) + block + data


class Connection:
    """A request publication for several sessions. Each session has its own response subscription."""

    def __init__(self, client, archive, way="ipc"):
        self.client = client
        channel, stream, self._response_channel = archive.control(way)
        self.publication = client.add_exclusive_publication(channel, stream)
        eventually(lambda: self.publication.is_connected)

    def subscribe(self, channel=None, stream=_STREAM):
        """Adds a response subscription. Returns it, and the channel to which the archive must send responses."""
        session = self.client.next_session_id(stream)
        channel = f"{channel or self._response_channel}|session-id={session}"
        subscription = self.client.add_subscription(channel, stream)
        return subscription, subscription.try_resolve_channel_endpoint_port() or channel

    def connect(self, channel=None, *, version=PROTOCOL_VERSION, subscription=None, credentials=b"", stream=_STREAM):
        """Sends a connect request. `channel` is the channel of `subscription`, which receives the responses. Without
        `subscription`, a new subscription to `channel` receives them."""
        if subscription is None:
            subscription, channel = self.subscribe(channel, stream)
        correlation = self.send_connect(channel, version=version, credentials=credentials, stream=stream)
        return Session(self, subscription, correlation)

    def send_connect(self, channel, *, version=PROTOCOL_VERSION, credentials=b"", stream=_STREAM):
        correlation = self.client.next_correlation_id()
        block = struct.pack("<qii", correlation, stream, version)
        self.send(message(CONNECT, block, channel.encode(), credentials, b""))
        return correlation

    def send(self, request):
        eventually(lambda: self.publication.offer(request))


class Session:
    """A control session. The test calls the steps of the handshake itself, so the session may be in any state."""

    def __init__(self, connection, subscription, correlation):
        self._connection = connection
        self.subscription = subscription
        self.correlation = correlation
        self.id = None

    def open(self):
        """Waits until the archive has accepted the connect request, and makes the session active."""
        self.id = self.await_message(RESPONSE, correlation=self.correlation, code=OK)["relevant"]
        self.send(KEEP_ALIVE)
        return self

    def send(self, template, block=b"", *texts, session=None):
        """Sends a request of the session. Returns its correlation id."""
        correlation = self._connection.client.next_correlation_id()
        ids = struct.pack("<qq", self.id if session is None else session, correlation)
        self._connection.send(message(template, ids + block, *texts))
        return correlation

    def close(self):
        self._connection.send(message(CLOSE_SESSION, struct.pack("<q", self.id)))

    def ask(self, template, block=b"", *texts):
        """Sends a request and returns the archive's response."""
        return self.await_message(RESPONSE, correlation=self.send(template, block, *texts))

    def messages(self, seconds=0.0):
        """Waits for `seconds`. Returns the messages of the archive since the last call, as dictionaries."""
        found = []
        deadline = time.monotonic() + seconds
        while True:
            self.subscription.poll(lambda payload, header: found.append(_decoded(payload)))
            if time.monotonic() >= deadline:
                return found
            time.sleep(0.001)

    def await_message(self, template, timeout_s=_TIMEOUT_S, **values):
        """Waits for a message with these values and returns it. Drops all other messages that have arrived."""
        seen = []
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for found in self.messages():
                if found["template"] == template and values.items() <= found.items():
                    return found
                seen.append(found)
            time.sleep(0.001)
        raise AssertionError(f"no message {template} with {values} within {timeout_s} s, only {seen}")

    @property
    def image(self):
        """Returns the image of the archive's response publication."""
        eventually(lambda: self.subscription.image_count == 1)
        return self.subscription.images[0]


def decoded_event(payload):
    """Returns the name and the numbers of a recording event."""
    block_length, template = struct.unpack_from("<HH", payload)
    name, layout = _EVENTS[template]
    assert struct.calcsize(layout) == block_length
    return name, *struct.unpack_from(layout, payload, 8)


def _decoded(payload):
    block_length, template, schema, _ = struct.unpack_from("<4H", payload)
    assert schema == _SCHEMA
    (session,) = struct.unpack_from("<q", payload, 8)
    found = {"template": template, "session": session}
    if template == RESPONSE:
        correlation, relevant, code, version = struct.unpack_from("<qqii", payload, 16)
        (length,) = struct.unpack_from("<I", payload, 8 + block_length)
        text = payload[12 + block_length : 12 + block_length + length].decode()
        found |= {"correlation": correlation, "relevant": relevant, "code": code, "version": version, "text": text}
    return found

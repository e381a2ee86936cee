"""Recorded streams, and persistent subscriptions that read these streams."""

import itertools
import time

import aeron

IPC = "aeron:ipc"
PUBLICATION = "aeron:ipc?term-length=64k"
LIVE_LEFT_TYPE, LIVE_JOINED_TYPE = 116, 117
STATE_TYPE, JOIN_DIFFERENCE_TYPE = 114, 115
TYPES = (STATE_TYPE, JOIN_DIFFERENCE_TYPE, LIVE_LEFT_TYPE, LIVE_JOINED_TYPE)
NO_JOIN_DIFFERENCE = -(1 << 63)
CONTROL_SESSIONS_TYPE, REPLAYS_TYPE = 102, 112
_TIMEOUT_S = 20
_TRICKLE_S = 0.01


def message(number, length=100):
    """Returns message `number` of a stream. It repeats the number, so each part of the message shows the number."""
    return (number.to_bytes(8, "little") * (length // 8 + 1))[: max(length, 8)]


class Source:
    """A recorded publication and its sent messages."""

    def __init__(self, archive, channel, stream, *, lengths=(100,), add=None):
        """Adds a recorded publication, with `add` if it is given, else with a method of the archive client."""
        self.archive, self.stream = archive, stream
        self.publication = (add or archive.add_recorded_exclusive_publication)(channel, stream)
        self.messages = []
        self._lengths = itertools.cycle(lengths)
        self._length = next(self._lengths)
        self.recording = None
        self._next_offer = 0

    def send(self, count, *, reader=None):
        """Sends `count` messages, and waits until they are recorded.

        Polls `reader` meanwhile, because a reader that does not read would hold back the stream.
        """
        end = len(self.messages) + count
        if count:
            _eventually(lambda: self.offer() == end, meanwhile=reader and reader.poll)
        self.recording = self.archive.wait_recorded(self.publication, self.publication.position, timeout=_TIMEOUT_S)
        return self.publication.position

    def offer(self):
        """Sends one message if the publisher limit allows it. Returns the number of all messages sent so far."""
        next_message = message(len(self.messages), self._length)
        if self.publication.offer(next_message) > 0:
            self.messages.append(next_message)
            self._length = next(self._lengths)
        return len(self.messages)

    def trickle(self):
        """Sends a message if the last one was sent 10 ms ago or earlier.

        At a higher rate, a reader that has joined the live stream would soon lose it again.
        """
        if time.monotonic() >= self._next_offer:
            self._next_offer = time.monotonic() + _TRICKLE_S
            self.offer()

    @property
    def id(self):
        return self.recording.recording_id

    def stop(self):
        """Stops the recording. The publication stays open."""
        self.archive.stop_recording(self.publication)
        _eventually(lambda: self.archive.get_stop_position(self.id) is not None)

    def close(self):
        """Ends the stream, which also ends the recording."""
        self.publication.close()
        _eventually(lambda: self.archive.get_stop_position(self.id) is not None)
        self.archive.try_stop_recording(self.publication)

    def dismiss(self):
        """Stops the recording of the publication, if there is one, and closes the publication."""
        self.archive.try_stop_recording(self.publication)
        self.publication.close()

    def resume(self, client, position=None):
        """Adds a publication that continues at the end of the recording, and extends the recording."""
        position = self.archive.get_stop_position(self.id) if position is None else position
        uri = aeron.ChannelUriBuilder("ipc")
        uri.initial_position(position, self.publication.initial_term_id, self.publication.term_buffer_length)
        self.archive.extend_recording(self.id, IPC, self.stream, auto_stop=True)
        self.publication = client.add_exclusive_publication(str(uri), self.stream)
        self.publication.wait_connected(timeout=_TIMEOUT_S)


class Reader:
    """A persistent subscription, with the messages and events that it has delivered."""

    def __init__(self, make, *arguments, limit=10, **settings):
        """Creates the subscription: calls `make` with these arguments and settings, and with handlers."""
        self.messages, self.positions, self.states, self.events, self.errors = [], [], [], [], []
        self.failure = None
        self._limit = limit
        handlers = {
            "on_live_joined": lambda: self._on("joined"),
            "on_live_left": lambda: self._on("left"),
            "on_error": self._on_error,
        }
        self.subscription = make(*arguments, **settings, **handlers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.subscription.close()

    def _on(self, event):
        self.events.append((event, self.subscription.state, self.subscription.join_difference))

    def _on_error(self, error):
        self.errors.append((error, self.subscription.has_failed))

    def _on_message(self, payload, header):
        self.messages.append(payload)
        self.positions.append(header.position)

    def poll(self):
        state = self.subscription.state
        if self.states[-1:] != [state]:
            self.states.append(state)
        try:
            self.subscription.poll(self._on_message, self._limit)
        except aeron.PersistentSubscriptionError as failure:
            self.failure = failure

    def until(self, holds, timeout_s=_TIMEOUT_S, *, meanwhile=lambda: None):
        """Polls until `holds()` returns true."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            what = self.subscription, len(self.messages), self.errors, self.states[-20:]
            assert time.monotonic() < deadline, what
            assert self.failure is None, what
            self.poll()
            meanwhile()
        return self

    def until_live(self, **options):
        return self.until(lambda: self.subscription.is_live, **options)

    def until_failed(self):
        """Polls until the subscription fails. Returns the failure, which must have been reported exactly once."""
        self.until(lambda: self.failure is not None)
        terminal = [error for error, has_failed in self.errors if has_failed]
        assert [str(error) for error in terminal] == [str(self.failure)]
        assert str(self.subscription.failure_reason) == str(self.failure)
        return self.failure

    def until_read(self, messages, **options):
        """Polls until as many messages as in `messages` have arrived, and compares them with `messages`."""
        self.until(lambda: len(self.messages) >= len(messages), **options)
        assert self.messages == messages[: len(self.messages)]
        assert self.messages == messages
        return self

    def count(self, event):
        return sum(name == event for name, _, _ in self.events)


def counters(client, *types):
    """Returns the values of the counters of these types, by type. Default: the types of persistent subscriptions."""
    found = [counter for counter in client.counters_reader if counter.type_id in (types or TYPES)]
    return {counter.type_id: counter.value for counter in found}


def _eventually(holds, *, meanwhile=None):
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        if meanwhile:
            meanwhile()
        else:
            time.sleep(0.001)

"""Connections of the real Java archive client to an archive, under the control of a test.

The client runs in a peer process of the kind `java-archive-client`. The peer has the operations of every peer
(`peers.py`), and the operations below. Their value `client` names one of the peer's connections. Numbers, positions and
ids have the meaning of the real client.

Operations: connect_archive, close_archive, archive_state, poll_error, poll_errors, poll_signals, start_recording,
extend_recording, add_recorded_publication, stop_recording, try_stop_recording, start_replay, replay, stop_replay,
merge, list_recordings, list_subscriptions, find_last, position, truncate, purge, segments, update_channel,
replicate, stop_replication.

A peer has one persistent subscription at a time, see `JavaReader`: persistent_open, persistent_read, persistent_close.
"""

import time

from interop.peers import Publication, Subscription

KIND = "java-archive-client"

# Error codes of section 5 of the archive reference.
GENERIC = 0
ACTIVE_LISTING = 1
ACTIVE_RECORDING = 2
ACTIVE_SUBSCRIPTION = 3
UNKNOWN_SUBSCRIPTION = 4
UNKNOWN_RECORDING = 5
UNKNOWN_REPLAY = 6
MAX_REPLAYS = 7
MAX_RECORDINGS = 8
INVALID_EXTENSION = 9
AUTHENTICATION_REJECTED = 10
STORAGE_SPACE = 11
UNKNOWN_REPLICATION = 12
UNAUTHORISED_ACTION = 13
REPLICATION_CONNECTION_FAILURE = 14
EMPTY_RECORDING = 15
INVALID_POSITION = 16

_RESPONSE_STREAM = 20
_TIMEOUT_S = 10


class JavaReader:
    """The real persistent subscription of a peer."""

    def __init__(self, peer, archive, recording, live, replay, *, position, timeout_s=_TIMEOUT_S):
        """Opens the persistent subscription. `live` and `replay` are pairs of channel and stream id."""
        self._peer = peer
        control, control_stream, response = archive.control("ipc")
        peer.call(
            "persistent_open",
            control=control,
            control_stream=control_stream,
            response=response,
            response_stream=_RESPONSE_STREAM,
            timeout_ns=int(timeout_s * 1e9),
            recording=recording,
            position=position,
            live=live[0],
            live_stream=live[1],
            replay=replay[0],
            replay_stream=replay[1],
        )

    def read(self, count, *, event="", limit=10, timeout_s=_TIMEOUT_S):
        """Polls until `count` messages and an event that starts with `event` have arrived. Returns messages and
        events."""
        self.start_read(count, event=event, limit=limit, timeout_s=timeout_s)
        return self._peer.answer()

    def start_read(self, count, *, event="", limit=10, timeout_s=_TIMEOUT_S):
        """Starts a `read` without waiting for it. The peer's method `answer` waits and returns the result."""
        timeout_ms = int(timeout_s * 1000)
        self._peer.start("persistent_read", count=count, event=event, limit=limit, timeout_ms=timeout_ms)

    def close(self):
        self._peer.call("persistent_close")


class ArchiveClient:
    """One connection of a peer to an archive, over `ipc` or `udp`. Methods are named as in `AeronArchive`."""

    def __init__(self, peer, archive, way="ipc", *, timeout_s=_TIMEOUT_S, **credentials):
        """Connects to the archive. Credentials are the bytes `credentials`, and the response to a challenge: the bytes
        `challenge_answer`, or a signature by `challenge_key`."""
        self.peer = peer
        channel, stream, response_channel = archive.control(way)
        answer = peer.call(
            "connect_archive",
            control=channel,
            control_stream=stream,
            response=response_channel,
            response_stream=_RESPONSE_STREAM,
            timeout_ns=int(timeout_s * 1e9),
            **{name: value.hex() for name, value in credentials.items()},
        )
        self._client = answer["client"]
        self.archive_id, self.session_id = answer["archive"], answer["session"]
        self._unseen = []

    def close(self):
        self._call("close_archive")

    def state(self):
        """Returns `CONNECTED`, `DISCONNECTED` or `CLOSED`."""
        return self._result("archive_state")

    def poll_error(self):
        """Returns the text of an error that belongs to no call, or `None`."""
        return self._result("poll_error")

    def errors(self):
        """Returns the errors that the error handler received since the last call."""
        return self._call("poll_errors")["errors"]

    def signals(self):
        """Returns the recording signals since the last call."""
        unseen, self._unseen = self._unseen, []
        return unseen + self._call("poll_signals")["signals"]

    def await_signal(self, signal, *, timeout_s=_TIMEOUT_S, **values):
        """Waits for the next signal of this kind with these values, and returns it. Drops the signals before it."""
        seen = []
        deadline = time.monotonic() + timeout_s
        while True:
            signals = self.signals()
            for number, found in enumerate(signals):
                if found["signal"] == signal and values.items() <= found.items():
                    self._unseen = signals[number + 1 :]
                    return found
            seen += signals
            assert time.monotonic() < deadline, f"no {signal} with {values} within {timeout_s} s, only {seen}"
            time.sleep(0.02)

    def start_recording(self, channel, stream, *, source="LOCAL", auto_stop=False):
        """Returns the id of the recording subscription."""
        return self._result("start_recording", channel=channel, stream=stream, source=source, auto_stop=auto_stop)

    def extend_recording(self, recording, channel, stream, *, source="LOCAL", auto_stop=False):
        """Returns the id of the recording subscription."""
        return self._result(
            "extend_recording", recording=recording, channel=channel, stream=stream, source=source, auto_stop=auto_stop
        )

    def add_recorded_publication(self, channel, stream, *, exclusive=False):
        """Adds a publication that the archive records. Returns the peer's publication."""
        values = self._call("add_recorded_publication", channel=channel, stream=stream, exclusive=exclusive)
        return Publication(self.peer, values)

    def stop_recording(self, subscription):
        self._call("stop_recording", by="subscription", subscription=subscription)

    def stop_recording_channel(self, channel, stream):
        self._call("stop_recording", by="channel", channel=channel, stream=stream)

    def stop_recording_publication(self, publication):
        self._call("stop_recording", by="publication", publication=publication.registration)

    def try_stop_recording(self, subscription):
        """Returns whether the recording subscription existed."""
        return self._result("try_stop_recording", by="subscription", subscription=subscription)

    def try_stop_recording_channel(self, channel, stream):
        return self._result("try_stop_recording", by="channel", channel=channel, stream=stream)

    def try_stop_recording_by_identity(self, recording):
        return self._result("try_stop_recording", by="identity", recording=recording)

    def start_replay(self, recording, channel, stream, **params):
        """Returns the replay session id. Parameters: `position`, `length`, `counter`, `io_length`."""
        return self._result("start_replay", recording=recording, channel=channel, stream=stream, **params)

    def replay(self, recording, channel, stream, **params):
        """Starts a replay. Returns the peer's subscription to the replayed stream."""
        values = self._call("replay", recording=recording, channel=channel, stream=stream, **params)
        return Subscription(self.peer, values)

    def start_merge(self, subscription, recording, *, timeout_s=30, **values):
        """Makes the peer poll a `ReplayMerge` until it is merged and has received `count` messages. Does not wait for
        the result: `peer.answer` does.
        """
        self.peer.start(
            "merge",
            client=self._client,
            subscription=subscription.registration,
            recording=recording,
            timeout_ms=int(timeout_s * 1000),
            **values,
        )

    def stop_replay(self, replay):
        self._call("stop_replay", replay=replay)

    def stop_all_replays(self, recording):
        self._call("stop_replay", recording=recording)

    def list_recording(self, recording):
        """Returns the descriptor of a recording, or `None`."""
        found = self._call("list_recordings", by="id", recording=recording)
        assert found["result"] == len(found["recordings"])
        return next(iter(found["recordings"]), None)

    def list_recordings(self, first=0, count=100):
        return self._listed("recordings", "list_recordings", by="range", **{"from": first}, count=count)

    def list_recordings_for_uri(self, fragment, stream, first=0, count=100):
        return self._listed(
            "recordings", "list_recordings", by="uri", **{"from": first}, count=count, fragment=fragment, stream=stream
        )

    def list_subscriptions(self, first=0, count=100, *, fragment="", stream=""):
        """Returns the recording subscriptions of a stream, or of all streams."""
        return self._listed(
            "subscriptions", "list_subscriptions", **{"from": first}, count=count, fragment=fragment, stream=stream
        )

    def find_last_matching_recording(self, fragment, stream, session, first=0):
        return self._result("find_last", min=first, fragment=fragment, stream=stream, session=session)

    def start_position(self, recording):
        return self._position("start", recording)

    def stop_position(self, recording):
        return self._position("stop", recording)

    def recording_position(self, recording):
        return self._position("recording", recording)

    def max_recorded_position(self, recording):
        return self._position("max", recording)

    def await_recorded(self, recording, position, timeout_s=_TIMEOUT_S):
        """Waits until the archive reports a recorded position of at least `position`."""
        deadline = time.monotonic() + timeout_s
        while (reached := self.max_recorded_position(recording)) < position:
            assert time.monotonic() < deadline, f"recording {recording} is at {reached} after {timeout_s} s"
            time.sleep(0.01)

    def truncate(self, recording, position):
        return self._result("truncate", recording=recording, position=position)

    def purge(self, recording):
        return self._result("purge", recording=recording)

    def detach_segments(self, recording, position):
        self._result("segments", how="detach", recording=recording, position=position)

    def delete_detached_segments(self, recording):
        return self._result("segments", how="delete", recording=recording)

    def purge_segments(self, recording, position):
        return self._result("segments", how="purge", recording=recording, position=position)

    def attach_segments(self, recording):
        return self._result("segments", how="attach", recording=recording)

    def migrate_segments(self, recording, destination):
        return self._result("segments", how="migrate", recording=recording, destination=destination)

    def update_channel(self, recording, channel):
        self._call("update_channel", recording=recording, channel=channel)

    def replicate(self, recording, source, *, way="udp", **params):
        """Starts a replication. Returns the replication id.

        Parameters: `destination`, `position`, `live`, `replication`, `source_response`, tags, credentials.
        """
        channel, stream, _ = source.control(way)
        return self._result("replicate", recording=recording, source=channel, source_stream=stream, **params)

    def stop_replication(self, replication):
        """Returns whether the replication existed."""
        return self._result("stop_replication", replication=replication)

    def _position(self, which, recording):
        return self._result("position", which=which, recording=recording)

    def _listed(self, name, operation, **values):
        found = self._call(operation, **values)
        assert found["result"] == len(found[name])
        return found[name]

    def _result(self, operation, **values):
        return self._call(operation, **values)["result"]

    def _call(self, operation, **values):
        return self.peer.call(operation, client=self._client, **values)

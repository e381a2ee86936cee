"""`Follower`: reads the recordings of a stream and then joins the live stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from aeron._aeron import FROM_LIVE, ChannelUriBuilder, Recording
from aeron._commits import ReaderCommits
from aeron._copies import Copies
from aeron._links import Links
from aeron._times import epoch_us
from aeron.aio import check_loop
from aeron.exceptions import (
    ArchiveClosedError,
    ArchiveDisconnectedError,
    ArchiveTimeoutError,
    ArgumentTypeError,
    InvalidArgumentError,
    InvalidPositionError,
    PersistentSubscriptionError,
    UnknownRecordingError,
)

if TYPE_CHECKING:
    from aeron._aeron import AeronArchive, Batch, Header, PendingOperation, PersistentSubscription
    from aeron.types import Channel, Time

__all__ = ["Follower", "RecordingChange"]

# Interval between two searches for the recording that follows an ended recording, in seconds.
_LOOK_INTERVAL = 0.25
# Maximum time to wait for a recording that continues an ended one, if the live stream is already beyond the end, in
# seconds. A restarted archive needs some time before it continues its recordings.
_SUCCESSOR_TIMEOUT = 5.0
# Errors of requests to an archive that has ended or does not respond. After such an error, the follower connects again.
_LOST_CONNECTION = (ArchiveDisconnectedError, ArchiveTimeoutError, ArchiveClosedError)
# Maximum time for which `close` waits for the last commit, in seconds.
_LAST_COMMIT_TIMEOUT = 5.0


class RecordingChange(NamedTuple):
    """Change of a `Follower` from an ended recording to a later recording of the same stream. Immutable."""

    previous_recording_id: int
    """Id of the recording that has ended."""
    stop_position: int
    """Position at which the earlier recording ended, in bytes."""
    recording_id: int
    """Id of the recording that the follower reads now."""
    start_position: int
    """Position at which the new recording begins, in bytes."""
    lost_bytes: int | None
    """Bytes of the session between the two recordings, which no recording has. A follower that read the live stream may
    have delivered them. `None` if the later recording has another session."""


class Follower:
    """Reads a recorded stream from a position in its history, joins the live stream, and follows it without gaps.

    Each message of a recording arrives once and in order, even at the change from the recording to the live stream. If
    the program is too slow for the live stream, or the live stream is lost, the follower continues in the recording
    until it can join the live stream again. The follower uses a `PersistentSubscription`. The documentation of that
    class describes channels and failures.

    A follower of a channel and stream also reads the later recordings of that stream, for example those of a restarted
    publisher. At the end of an ended recording, the follower changes to the next recording and calls `on_change`. A
    follower of one recording changes only to recordings that continue it. An archive with the setting `resume` starts
    such a recording if the publisher continued while the archive was away.

    A *named reader* stores the position in the archive. A later follower with the same reader name continues at this
    position, and retention does not delete data that the reader has not committed. With ``commit="batch"``, a batch is
    committed when the program requests the next batch. After a crash, the last batch may therefore arrive again. With
    ``commit="explicit"``, the program calls `commit`.

    If the archive ends, the follower connects again with the settings of `archive`, and continues when the archive is
    back.

    The follower is a context manager, which closes the follower at the end of the block. One thread at a time may read
    from it. All work is done in the calls. A follower that is not read falls behind, but does not fail.

    Args:
        archive: A client of the archive. The follower does not close it, and continues if the program closes it.
        recording: Id of the recording, or a `Recording`. Otherwise `channel` and `stream_id` select the recordings.
        channel: Text that the channels of the recordings contain.
        stream_id: Stream id of the recordings.
        position: Position of the first message in bytes, ``"earliest"`` or ``"latest"``. ``"earliest"`` includes
            segments in object storage. ``"latest"`` starts at the live stream. A position in bytes needs `recording`.
            Default: the stored position of the reader, or ``"earliest"`` if there is none.
        since: Time of the first message, instead of `position`: a `datetime` with a time zone, or a `numpy.datetime64`.
            No message that arrived at or after this time is skipped.
        reader: Name of the reader.
        commit: When the position of the reader is committed: ``"batch"`` or ``"explicit"``.
        max_age_ms: Milliseconds without a commit after which the reader expires. `None`: never.
        max_lag_bytes: Maximum number of bytes that are recorded after the reader's position. With more bytes, the
            reader expires. `None`: no limit.
        live_channel: Channel of the live stream. Default: the channel of the recording. If another host publishes to
            the archive by unicast, there is no live stream to join, and all messages are read from the recording.
        replay_channel: Channel of replays, with an address of this machine. Its port may be 0.
        replay_stream_id: Stream id of replays.
        on_change: Called as ``on_change(change)`` with a `RecordingChange`.
        on_live_joined: Called without arguments when the follower has joined the live stream.
        on_live_left: Called without arguments when the follower has lost the live stream.
        on_error: Called as ``on_error(error)`` with each `PersistentSubscriptionError`, even if the error does not end
            the follower.

    Raises:
        InvalidArgumentError: If the arguments contradict each other, or `since` has no time zone.
        UnknownRecordingError: If the archive does not have the recording.
        ArchiveError: If the archive refuses a request. `NotSupportedByArchiveError` if `reader` or `since` is used with
            an archive of another project.

    Example:
        ```python
        with archive.follow(channel="aeron:ipc", stream_id=1001, reader="bars") as follower:
            for batch in follower.batches():
                process(batch)
        ```
    """

    def __init__(
        self,
        archive: AeronArchive,
        recording: int | Recording | None = None,
        *,
        channel: Channel | None = None,
        stream_id: int | None = None,
        position: int | Literal["earliest", "latest"] | None = None,
        since: Time | None = None,
        reader: str | None = None,
        commit: Literal["batch", "explicit"] = "batch",
        max_age_ms: int | None = None,
        max_lag_bytes: int | None = None,
        live_channel: Channel | None = None,
        replay_channel: Channel = "aeron:ipc",
        replay_stream_id: int = 100,
        on_change: Callable[[RecordingChange], object] | None = None,
        on_live_joined: Callable[[], object] | None = None,
        on_live_left: Callable[[], object] | None = None,
        on_error: Callable[[PersistentSubscriptionError], object] | None = None,
    ) -> None:
        _check_types(
            {
                "recording": recording,
                "channel": channel,
                "stream_id": stream_id,
                "position": position,
                "since": since,
                "reader": reader,
                "commit": commit,
                "max_age_ms": max_age_ms,
                "max_lag_bytes": max_lag_bytes,
                "live_channel": live_channel,
                "replay_channel": replay_channel,
                "replay_stream_id": replay_stream_id,
                "on_change": on_change,
                "on_live_joined": on_live_joined,
                "on_live_left": on_live_left,
                "on_error": on_error,
            }
        )
        self._given_archive = archive
        self._archive = archive
        self._links = Links(archive)
        self._copies = Copies(archive)
        self._connecting: PendingOperation[AeronArchive] | None = None
        self._recording_id = recording.recording_id if isinstance(recording, Recording) else recording
        self._channel = None if channel is None else str(channel)
        self._stream_id = stream_id
        self._live_channel = None if live_channel is None else str(live_channel)
        self._settings: dict[str, Any] = {
            "replay_channel": replay_channel,
            "replay_stream_id": replay_stream_id,
            "on_live_joined": on_live_joined,
            "on_live_left": on_live_left,
            "on_error": on_error,
        }
        self._on_change = on_change
        self._commits = None if reader is None else ReaderCommits(archive, reader, max_age_ms, max_lag_bytes)
        self._is_explicit = commit == "explicit"
        self._current: Recording | None = None
        self._subscription: PersistentSubscription | None = None
        self._position = 0
        self._next_look = 0.0
        self._failure: tuple[PersistentSubscriptionError, float] | None = None
        self._former: list[int] = []
        self._is_closed = False
        self._check_arguments(position, since, commit)
        self._start(position, since)

    def poll(self, handler: Callable[[Any, Header], object], fragment_limit: int = 10, *, copy: bool = True) -> int:
        """Does the follower's work, and calls a handler for each message that is available now. Does not wait.

        Args:
            handler: Called as ``handler(payload, header)``. The follower's position advances after the handler returns.
            fragment_limit: Maximum number of fragments.
            copy: Whether ``payload`` is ``bytes``. ``False`` passes a memoryview, which is valid until the handler
                returns.

        Returns:
            The number of messages.

        Raises:
            PersistentSubscriptionError: If the follower has failed.
            ArchiveError: If the archive refuses a request.
        """
        if (subscription := self._ready()) is None:
            return 0

        def deliver(payload: Any, header: Any) -> None:
            handler(payload, header)
            self._position = header.position
            self._failure = None

        try:
            return subscription.poll(deliver, fragment_limit, copy=copy)
        except PersistentSubscriptionError as error:
            self._await_successor(error)
            return 0

    def poll_batch(self, limit: int = 4096) -> Batch | None:
        """Does the follower's work, and returns the messages that are available now. Does not wait.

        Args:
            limit: Maximum number of messages.

        Returns:
            A batch, or ``None`` if no message is available.

        Raises:
            PersistentSubscriptionError: If the follower has failed.
            ArchiveError: If the archive refuses a request.
        """
        if (subscription := self._ready()) is None:
            return None
        try:
            batch = subscription.poll_batch(limit)
        except PersistentSubscriptionError as error:
            self._await_successor(error)
            return None
        return self._taken(batch) if len(batch) else None

    def batches(self, limit: int = 4096, *, timeout: float | None = None) -> Iterator[Batch]:
        """Iterates over batches of messages as they arrive.

        Args:
            limit: Maximum number of messages of a batch.
            timeout: Maximum time to wait for the next batch, in seconds. The iterator then ends. ``None`` waits without
                a limit.

        Returns:
            An iterator of batches that are not empty.

        Raises:
            PersistentSubscriptionError: If the follower has failed.
            ArchiveError: If the archive refuses a request.
        """
        deadline = _deadline(timeout)
        while not self._is_closed:
            subscription = self._ready()
            wait = min(_LOOK_INTERVAL, deadline - time.monotonic())
            if subscription is None:
                time.sleep(max(0.0, wait))
            else:
                batches = subscription.batches(limit, timeout=max(0.0, wait))
                while (batch := self._next_of(batches)) is not None:
                    yield self._taken(batch)
                    deadline = _deadline(timeout)
                    self._commit_processed()
                    if self._is_closed:
                        return
                    if self._connecting is not None or self._is_look_due():
                        break
            if time.monotonic() >= deadline:
                return

    async def batches_async(self, limit: int = 4096) -> AsyncIterator[Batch]:
        """Iterates over batches of messages as they arrive, for ``async for``, until the follower is closed.

        Args:
            limit: Maximum number of messages of a batch.

        Returns:
            An asynchronous iterator of batches that are not empty.

        Raises:
            PersistentSubscriptionError: If the follower has failed.
            ArchiveError: If the archive refuses a request.
        """
        check_loop()
        while not self._is_closed:
            subscription = self._ready()
            if subscription is None:
                await asyncio.sleep(_LOOK_INTERVAL)
                continue
            batches = subscription.batches_async(limit)
            try:
                # If the time is over, the wait is cancelled. This loses no message.
                while (batch := await asyncio.wait_for(anext(batches, None), _LOOK_INTERVAL)) is not None:
                    yield self._taken(batch)
                    self._commit_processed()
                    if self._connecting is not None or self._is_look_due():
                        break
            except TimeoutError:
                pass
            except PersistentSubscriptionError as error:
                self._await_successor(error)

    def __aiter__(self) -> AsyncIterator[Batch]:
        """Returns `batches_async`."""
        return self.batches_async()

    def commit(self, position: int | None = None) -> None:
        """Commits a position of the named reader, and waits until the archive has stored it.

        Args:
            position: Position in the recording `recording_id`, in bytes: at most the position after the last delivered
                message. ``None``: that position.

        Raises:
            InvalidArgumentError: If the follower has no reader or no recording yet, or no message up to this position
                was delivered.
            InvalidPositionError: If the position is before the start of the recording, or after the end of a recording
                that has stopped.
            ArchiveError: If the archive refuses the request.
        """
        if self._commits is None:
            raise InvalidArgumentError("the follower has no reader to commit: pass reader='name' to follow")
        if self._current is None:
            raise InvalidArgumentError(
                f"there is no position to commit, because the archive has no recording of channel {self._channel!r} "
                f"and stream {self._stream_id} yet: commit after the first message"
            )
        if position is not None and position > self._position:
            raise InvalidArgumentError(
                f"position {position} is after the last delivered message: commit at most {self._position}"
            )
        position = self._position if position is None else position
        try:
            self._store(self._commits, self._current.recording_id, position)
        except _LOST_CONNECTION:
            self._use(self._archive.reconnect())
            self._store(self._commits, self._current.recording_id, position)
        # The named reader has a position in this recording, so it needs the former recordings no longer.
        while self._former:
            self._commits.remove(self._former.pop())

    def _store(self, commits: ReaderCommits, recording_id: int, position: int) -> None:
        """Stores a position, and waits until the archive has it."""
        commits.store(recording_id, position)
        while not commits.wait(_LOOK_INTERVAL):
            now = self._archive.list_recording(recording_id) if commits.is_refused else None
            if now is None:
                continue
            start, stop = self._copies.start_of(now), now.stop_position
            if position < start or (stop is not None and position > stop):
                commits.forget()
                raise InvalidPositionError(
                    f"recording {recording_id} has the positions {start} to {stop}, not {position}"
                )

    def close(self) -> None:
        """Stops reading, and waits for at most 5 s until the archive has stored the last commit. Idempotent.

        If the connection to the archive is lost, the call first connects again, for at most the message timeout.

        Raises:
            ArchiveTimeoutError: If the archive has not stored the last commit after 5 s, or does not respond within the
                message timeout. The follower is closed.
            ArchiveError: If the archive refuses the commit or cannot be reached. The follower is closed.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._subscription is not None:
            self._subscription.close()
        try:
            if self._commits is not None:
                try:
                    is_stored = self._commits.wait(_LAST_COMMIT_TIMEOUT)
                except _LOST_CONNECTION:
                    self._use(self._archive.reconnect())
                    is_stored = self._commits.wait(_LAST_COMMIT_TIMEOUT)
                if not is_stored:
                    raise ArchiveTimeoutError(
                        f"the archive has not stored the last commit of the reader in {_LAST_COMMIT_TIMEOUT:.0f} s: "
                        "the reader will continue at its commit before that"
                    )
        finally:
            self._close_own_connection()

    @property
    def position(self) -> int:
        """Position after the last delivered message, in the recording `recording_id`, in bytes."""
        return self._position

    @property
    def recording_id(self) -> int | None:
        """Id of the recording that the follower reads; ``None`` before the archive has a recording of the stream."""
        return None if self._current is None else self._current.recording_id

    @property
    def is_live(self) -> bool:
        """Whether messages come from the live stream."""
        return self._subscription is not None and self._subscription.is_live

    @property
    def is_closed(self) -> bool:
        """Whether the follower was closed."""
        return self._is_closed

    def __enter__(self) -> Follower:
        """Returns the follower."""
        return self

    def __exit__(self, exception_type: object, _error: object, _traceback: object) -> None:
        """Closes the follower. If the block raised an exception, the last batch is not committed."""
        try:
            if exception_type is None and not self._is_explicit:
                self._commit_processed()
        finally:
            self.close()

    def __repr__(self) -> str:
        """Returns the recording id and the position as text."""
        return f"Follower(recording_id={self.recording_id}, position={self._position}, is_live={self.is_live})"

    def _check_arguments(self, position: object, since: object, commit: str) -> None:
        by_stream = self._channel is not None or self._stream_id is not None
        if (self._recording_id is None) != by_stream:
            raise InvalidArgumentError("follow needs a recording, or a channel and a stream_id, and not both")
        if by_stream and (self._channel is None or self._stream_id is None):
            raise InvalidArgumentError("follow needs both channel and stream_id to select recordings")
        if position is not None and since is not None:
            raise InvalidArgumentError("position and since contradict each other: pass one of them")
        if isinstance(position, str) and position not in ("earliest", "latest"):
            raise InvalidArgumentError(f"position {position!r} is not 'earliest', 'latest' or a number of bytes")
        if by_stream and isinstance(position, int):
            raise InvalidArgumentError(
                f"position {position} needs a recording: pass its id instead of channel and stream"
            )
        if commit not in ("batch", "explicit"):
            raise InvalidArgumentError(f"commit {commit!r} is not 'batch' or 'explicit'")

    def _start(self, position: int | str | None, since: Time | None) -> None:
        recordings = self._recordings()
        if not recordings:
            # When the first recording of the stream appears, the follower reads it from its start.
            return
        if position is None and since is None and self._commits is not None:
            stored = self._commits.stored_in([recording.recording_id for recording in recordings])
            # With explicit commits, the reader stays in a recording until the program commits in the next one.
            for recording in recordings if self._is_explicit else reversed(recordings):
                if (found := stored.pop(recording.recording_id, None)) is not None:
                    self._open(recording, found)
                    if not self._is_explicit:
                        # A follower that was killed while it changed to this recording may have left its named reader
                        # in earlier recordings.
                        for former in stored:
                            self._commits.remove(former)
                    return
        if since is not None:
            since_ms = epoch_us(since, "since") // 1_000
            recording = next((one for one in recordings if _reaches(one, since_ms)), recordings[-1])
            self._open(recording, self._archive.find_position(recording.recording_id, since=since).position)
        elif position == "latest":
            self._open(recordings[-1], FROM_LIVE if recordings[-1].is_active else None)
        else:
            self._open(recordings[0], position if isinstance(position, int) else self._copies.start_of(recordings[0]))

    def _recordings(self) -> list[Recording]:
        """Returns the recordings to read, the oldest first."""
        if self._recording_id is None:
            return list(self._archive.list_recordings(channel=self._channel, stream_id=self._stream_id))
        recording = self._archive.list_recording(self._recording_id)
        if recording is None:
            raise UnknownRecordingError(f"unknown recording id: {self._recording_id}")
        return self._links.chain(recording)

    def _open(self, recording: Recording, position: int | None) -> None:
        """Opens a recording at a position; `None` stands for the end of the recording."""
        if position is None or (recording.stop_position is not None and position > recording.stop_position):
            position = recording.stop_position
        assert position is not None
        if self._subscription is not None:
            self._subscription.close()
        self._current = recording
        if self._recording_id is not None:
            self._recording_id = recording.recording_id
        self._position = position if position >= 0 else self._archive.get_max_recorded_position(recording.recording_id)
        self._start_position = position
        if self._commits is not None and not (self._is_explicit and self._commits.stored_in([recording.recording_id])):
            # The named reader must exist before the first message is read, so that retention does not delete unread
            # data. With explicit commits, an existing reader keeps its position.
            self._commits.store(recording.recording_id, self._position)
            self._commits.wait(_LAST_COMMIT_TIMEOUT)
        self._subscription = self._archive.persistent_subscription(
            recording_id=recording.recording_id,
            live_channel=_of_session(self._live_channel or recording.stripped_channel, recording.session_id),
            live_stream_id=recording.stream_id,
            start_position=position,
            **self._settings,
        )

    def _next_of(self, batches: Iterator[Batch]) -> Batch | None:
        try:
            return next(batches, None)
        except PersistentSubscriptionError as error:
            self._await_successor(error)
            return None

    def _ready(self) -> PersistentSubscription | None:
        """Returns the subscription to read. First looks for a later recording, if the current one may have ended."""
        if self._is_closed:
            return None
        if self._connecting is not None and not self._connect_again(self._connecting):
            return self._subscription
        try:
            self._commit_processed()
            if self._is_look_due():
                self._look()
                self._next_look = time.monotonic() + _LOOK_INTERVAL
        except _LOST_CONNECTION:
            self._connecting = self._archive.async_reconnect()
        return self._subscription

    def _is_look_due(self) -> bool:
        """Returns whether the recording may have ended, and it is time to look for a later one."""
        if self._is_closed or time.monotonic() < self._next_look:
            return False
        if self._subscription is None or self._subscription.state == "AWAIT_LIVE":
            return True
        # The archive refuses the position of a follower that has read live messages which the recording does not have.
        # These messages are recorded later, or the recording has ended.
        return self._commits is not None and self._commits.is_refused

    def _connect_again(self, connecting: PendingOperation[AeronArchive]) -> bool:
        """Polls the attempt to connect again to the archive. Returns whether the archive can be used again."""
        if not connecting.done():
            return False
        self._connecting = None
        try:
            self._use(connecting.result(0))
        except (ArchiveDisconnectedError, ArchiveTimeoutError):
            # An archive that is just stopping may accept a connection and end it at once.
            self._connecting = self._archive.async_reconnect()
            return False
        return True

    def _use(self, archive: AeronArchive) -> None:
        """Uses another connection to the archive for all requests."""
        self._close_own_connection()
        self._archive = archive
        self._connecting = None
        self._links = Links(archive)
        self._copies = Copies(archive)
        if self._commits is not None:
            self._commits.use(archive)

    def _close_own_connection(self) -> None:
        if self._archive is not self._given_archive:
            self._archive.close()

    def _await_successor(self, failure: PersistentSubscriptionError) -> None:
        """Starts the wait for a recording that continues this one, if the live stream is already beyond its end.
        Otherwise raises `failure`.
        """
        if failure.reason != "INVALID_START_POSITION" or self._current is None:
            raise failure
        assert self._subscription is not None
        self._subscription.close()
        self._subscription = None
        if self._failure is None:
            # The timeout starts at the first failure since the last message.
            self._failure = (failure, time.monotonic() + _SUCCESSOR_TIMEOUT)
        self._next_look = 0.0

    def _look(self) -> None:
        if self._current is None:
            self._start(None, None)
            return
        now = self._archive.list_recording(self._current.recording_id)
        self._check_failure(now)
        if now is not None and self._must_open_again(now, self._current):
            self._open(now, self._position if self._position > self._start_position else self._start_position)
            return
        if now is not None and now.stop_position is None:
            return
        # A recording that is read to its end may have been deleted by retention.
        ended = now or self._current
        stop_position = self._position if ended.stop_position is None else ended.stop_position
        if (later := self._successor(ended, stop_position)) is not None:
            self._change_to(later, ended, stop_position)
        elif now is None and self._failure is not None:
            raise self._failure[0]

    def _check_failure(self, now: Recording | None) -> None:
        """Raises the failure of the subscription if waiting for another recording cannot help, or did not help."""
        if self._subscription is not None or self._failure is None:
            return
        failure, deadline = self._failure
        if time.monotonic() > deadline or (now is not None and self._position < self._copies.start_of(now)):
            raise failure

    def _must_open_again(self, now: Recording, opened: Recording) -> bool:
        """Returns whether the recording was extended since it was opened, or is active without a subscription to it.

        The extension may have another session, and may have stopped already.
        """
        if self._subscription is None and now.stop_position is None:
            return True
        was_stopped = opened.stop_position is not None
        return now.session_id != opened.session_id or (was_stopped and now.stop_position != opened.stop_position)

    def _successor(self, ended: Recording, stop_position: int) -> Recording | None:
        """Returns the recording to read after an ended recording; `None` if there is none yet."""
        for later in self._recordings_after(ended):
            if later.session_id == ended.session_id and self._position > stop_position:
                # The follower has read the live stream beyond the end of the recording.
                if later.stop_position is not None and later.stop_position <= self._position:
                    continue
                if self._subscription is not None and self._copies.start_of(later) > self._position:
                    # The live stream has the messages up to the start of the later recording.
                    return None
            return later
        return None

    def _recordings_after(self, ended: Recording) -> list[Recording]:
        if self._recording_id is not None:
            return self._links.chain(ended)[1:]
        return [one for one in self._recordings() if one.recording_id > ended.recording_id]

    def _change_to(self, later: Recording, ended: Recording, stop_position: int) -> None:
        begin = start = self._copies.start_of(later)
        lost_bytes = None
        if later.session_id == ended.session_id:
            lost_bytes = max(0, begin - stop_position)
            # The follower may have read live messages that the later recording has too.
            start = max(begin, self._position)
        change = RecordingChange(ended.recording_id, stop_position, later.recording_id, begin, lost_bytes)
        self._open(later, start)
        self._failure = None
        if self._commits is not None and self._is_explicit:
            self._former.append(ended.recording_id)
        elif self._commits is not None:
            self._commits.remove(ended.recording_id)
        if self._on_change is not None:
            self._on_change(change)

    def _taken(self, batch: Batch) -> Batch:
        self._position = int(batch.positions[-1])
        self._failure = None
        return batch

    def _commit_processed(self) -> None:
        """Commits the position after the last delivered message. Does not wait."""
        if self._commits is None or self._is_explicit or self._current is None or self._connecting is not None:
            return
        try:
            self._commits.store(self._current.recording_id, self._position)
        except _LOST_CONNECTION:
            self._connecting = self._archive.async_reconnect()


# Users import the classes from `aeron`, so representations and pickles must contain this module name.
Follower.__module__ = "aeron"
RecordingChange.__module__ = "aeron"


_CHANNEL = ((str, ChannelUriBuilder), "a str or a ChannelUriBuilder")
_TYPES: dict[str, tuple[Any, str]] = {
    "recording": ((int, Recording), "a Recording or an integer"),
    "channel": _CHANNEL,
    "stream_id": (int, "an integer"),
    "position": ((int, str), "an integer, 'earliest' or 'latest'"),
    "reader": (str, "a str"),
    "commit": (str, "'batch' or 'explicit'"),
    "max_age_ms": (int, "an integer"),
    "max_lag_bytes": (int, "an integer"),
    "live_channel": _CHANNEL,
    "replay_channel": _CHANNEL,
    "replay_stream_id": (int, "an integer"),
}


def _check_types(arguments: dict[str, Any]) -> None:
    """Raises an error that names the first argument of a wrong type. `None` stands for a default."""
    for name, value in arguments.items():
        if value is None:
            continue
        if name == "since":
            epoch_us(value, name)
        elif name.startswith("on_"):
            if not callable(value):
                raise ArgumentTypeError(f"{name}={value!r} is not a function")
        elif not isinstance(value, _TYPES[name][0]):
            raise ArgumentTypeError(f"{name}={value!r} is not {_TYPES[name][1]}")


def _of_session(channel: str, session_id: int) -> str:
    """Returns the channel with the session id as a parameter. If the channel has a session id, returns it unchanged."""
    builder = ChannelUriBuilder.parse(channel)
    return channel if "session-id=" in channel else str(builder.put("session-id", session_id))


def _reaches(recording: Recording, since_ms: int) -> bool:
    """Returns whether a recording may have messages that arrived at or after a time."""
    stop_ms = recording.stop_timestamp_ms
    # If the clock was set back, the stop time may be before the start time.
    return stop_ms is None or max(stop_ms, recording.start_timestamp_ms) >= since_ms


def _deadline(timeout: float | None) -> float:
    return float("inf") if timeout is None else time.monotonic() + timeout

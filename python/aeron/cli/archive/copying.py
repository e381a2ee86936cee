"""``aeron archive replicate --follow``: copies a recording, continues after errors, and shows the progress."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import click

import aeron
from aeron.cli.archive.files import Bar, progress_bar
from aeron.cli.archive.live import ArchiveSession, Target, archive_session
from aeron.cli.text import printable_lines

_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
"""Shortest and longest time between two attempts."""

_POLL_S = 0.1
"""Seconds between two checks of the positions."""

_REPORT_S = 1.0
"""Seconds between two lines with the progress."""

_FATAL = (
    aeron.InvalidArgumentError,
    aeron.AuthenticationRejectedError,
    aeron.InvalidExtensionError,
    aeron.UnauthorisedActionError,
    aeron.UnknownRecordingError,
)
"""Errors that another attempt cannot avoid."""


class _InterruptedError(Exception):
    """An attempt failed. Another one may succeed, unless the cause of this exception is one of `_FATAL`."""


@dataclass
class Source:
    """The recording to copy, and the connection to its archive."""

    recording_id: int
    control_channel: str
    control_stream_id: int
    response_channel: str | None
    credentials: bytes | None
    replication_channel: str | None
    stop_position: int | None

    def connect(self, client: aeron.Aeron) -> aeron.AeronArchive:
        """Connects to the archive of the recording."""
        return aeron.connect_archive(
            client,
            control_channel=self.control_channel,
            control_stream_id=self.control_stream_id,
            response_channel=self.response_channel,
            credentials=self.credentials,
            client_name="aeron archive replicate",
        )


def follow(target: Target, source: Source, copy_id: int | None, *, as_json: bool) -> None:
    """Copies a recording until it is complete. After an error the copy continues where it stopped.

    Raises:
        click.ClickException: an error that another attempt cannot avoid.
    """
    pause_s, shown = _PAUSE_S, ""
    with progress_bar("replicating", 0, hidden=as_json) as bar:
        reporter = _Reporter(bar, as_json)
        while True:
            reached = reporter.position
            try:
                with archive_session(target) as session:
                    if _Attempt(session, source, copy_id, reporter).run():
                        return
            except (click.ClickException, _InterruptedError) as error:
                if isinstance(error.__cause__, _FATAL):
                    raise click.ClickException(printable_lines(str(error)).rstrip()) from error
                if str(error) != shown:
                    shown = str(error)
                    bar.clear()
                    click.echo(f"{printable_lines(shown).rstrip()}: trying again", err=True)
            pause_s = _PAUSE_S if reporter.position != reached else min(2 * pause_s, _LONGEST_PAUSE_S)
            time.sleep(pause_s)


class _Attempt:
    """One session with both archives."""

    def __init__(self, session: ArchiveSession, source: Source, copy_id: int | None, reporter: _Reporter) -> None:
        self._session, self._source, self._copy_id, self._reporter = session, source, copy_id, reporter

    def run(self) -> bool:
        """Copies until the copy is complete or the command must end. Then returns ``True``."""
        try:
            with self._source.connect(self._session.archive.client) as origin:
                return self._copy(origin)
        except aeron.AeronError as error:
            raise _InterruptedError(str(error)) from error

    def _copy(self, origin: aeron.AeronArchive) -> bool:
        archive, source = self._session.archive, self._source
        recording = origin.list_recording(source.recording_id)
        if recording is None:
            text = f"no recording {source.recording_id} in the archive on {source.control_channel}"
            raise click.ClickException(text) from aeron.UnknownRecordingError(text)
        copy = self._find(origin, recording)
        if copy is not None and self._is_complete(origin, copy.recording_id, copy.stop_position):
            return True
        replication_id = None
        # If an earlier command was killed, the archive continues the replication of that command. The copy is then
        # active, and no new replication is needed.
        if copy is None or not copy.is_active:
            replication_id = archive.replicate(
                source.recording_id,
                source.control_channel,
                source.control_stream_id,
                stop_position=source.stop_position,
                dst_recording_id=None if copy is None else copy.recording_id,
                replication_channel=source.replication_channel,
                src_response_channel=source.response_channel,
                encoded_credentials=source.credentials,
            )
        return self._watch(origin, None if copy is None else copy.recording_id, replication_id)

    def _watch(self, origin: aeron.AeronArchive, copy_id: int | None, replication_id: int | None) -> bool:
        """Shows the progress until the copy is complete or the command must end. Then returns ``True``."""
        archive, is_over = self._session.archive, False
        while not self._session.stop.is_signalled:
            for signal in archive.signals(timeout=_POLL_S):
                if signal.correlation_id == replication_id:
                    is_over |= signal.signal == "REPLICATE_END"
                    copy_id = signal.recording_id if signal.recording_id >= 0 else copy_id
            self._check()
            if copy_id is not None:
                stop_position = archive.get_stop_position(copy_id)
                is_over |= replication_id is None and stop_position is not None
                if self._is_complete(origin, copy_id, stop_position):
                    return True
            if is_over:
                self._await_error()
                raise _InterruptedError("the replication ended before the copy was complete")
        if replication_id is not None:
            archive.try_stop_replication(replication_id)
        return True

    def _is_complete(self, origin: aeron.AeronArchive, copy_id: int, stop_position: int | None) -> bool:
        """Reports the positions. Returns whether the copy has stopped at the end of the recording, or at the requested
        stop position."""
        position = stop_position
        if position is None:
            position = self._session.archive.get_max_recorded_position(copy_id)
        end = origin.get_stop_position(self._source.recording_id)
        wanted = end
        if self._source.stop_position is not None:
            wanted = self._source.stop_position if end is None else min(end, self._source.stop_position)
        target = origin.get_max_recorded_position(self._source.recording_id) if wanted is None else wanted
        is_complete = stop_position is not None and wanted is not None and stop_position >= wanted
        self._reporter.report(copy_id, position, target, is_last=is_complete)
        return is_complete

    def _find(self, origin: aeron.AeronArchive, recording: aeron.Recording) -> aeron.Recording | None:
        """Returns the archive's copy of the recording; ``None`` if there is no copy. Of several copies, an active copy
        is chosen, otherwise the longest."""
        archive = self._session.archive
        if self._copy_id is not None:
            return archive.list_recording(self._copy_id)
        is_same_archive = origin.archive_id == archive.archive_id
        copies = [
            each
            for each in archive.list_recordings(stream_id=recording.stream_id)
            if _identity(each) == _identity(recording)
            and not (is_same_archive and each.recording_id == recording.recording_id)
        ]
        return max(copies, key=lambda copy: (copy.is_active, copy.stop_position or 0), default=None)

    def _check(self) -> None:
        """Raises an exception if the archive has reported an error or has ended the session."""
        if self._session.errors:
            error = self._session.errors[0]
            raise _InterruptedError(str(error)) from error
        if self._session.archive.is_closed or self._session.archive.state != "CONNECTED":
            raise _InterruptedError("the archive has ended the session")

    def _await_error(self) -> None:
        """Waits a moment for the error that ended a replication, which may arrive after its last signal."""
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            self._session.archive.poll()
            self._check()
            time.sleep(0.01)


def _identity(recording: aeron.Recording) -> tuple[object, ...]:
    """Returns the values that are equal in a recording and its copies."""
    return (
        recording.session_id,
        recording.stream_id,
        recording.initial_term_id,
        recording.term_buffer_length,
        recording.mtu_length,
        recording.original_channel,
        recording.source_identity,
    )


class _Reporter:
    """Shows the progress: a bar on a terminal, lines otherwise."""

    def __init__(self, bar: Bar, as_json: bool) -> None:
        self._bar, self._as_json = bar, as_json
        self._reported_at = 0.0
        self.position: int | None = None
        """Position of the copy."""

    def report(self, copy_id: int, position: int, target: int, *, is_last: bool) -> None:
        """Shows the positions of the copy and of the recording."""
        self.position = position
        self._bar.reach(position, target)
        now = time.monotonic()
        if not is_last and (self._bar.is_visible or now - self._reported_at < _REPORT_S):
            return
        self._reported_at = now
        if self._as_json:
            values = {"recording_id": copy_id, "position": position, "source_position": target, "complete": is_last}
            self._bar.echo(json.dumps(values))
        else:
            what = "complete" if is_last else f"of {target}"
            self._bar.echo(f"Recording {copy_id} is copied to position {position}, {what}")

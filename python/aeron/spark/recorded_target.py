"""The recording of an exactly-once sink, while one commit extends it.

Only one publication at a time can extend a recording. So an open target is a lock: a commit in another process waits
until the archive has stopped the recording. The publication and the control session belong to one client. If a process
is suspended for longer than the driver's client liveness timeout, its client loses both. So the process cannot write
anything after another process has opened the target.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import aeron
from aeron._staged import alias_of, query_alias
from aeron.exceptions import ActiveRecordingError, AeronError
from aeron.spark.errors import AeronDataLossError, AeronSparkError
from aeron.spark.logs import logger
from aeron.spark.options import RecordedWriteOptions
from aeron.spark.recorded_archive import (
    named_channel,
    purge_stopped,
    source_location,
    wait_recorded,
)
from aeron.spark.recorded_state import SinkState

__all__ = ["RecordedTarget"]

TAKEOVER_TIMEOUT_S = 60.0
"""Seconds to wait while another process extends the recording."""

_TAKEOVER_INTERVAL_S = 0.02

_log = logger()


@dataclass(frozen=True)
class RecordedTarget:
    """The recording of a query, and the publication that extends it. Positions are in bytes."""

    archive: aeron.AeronArchive
    publication: aeron.ExclusivePublication
    subscription_id: int
    """Id of the archive's subscription to the publication."""
    recording_id: int
    start_position: int
    position: int
    """End of the recording when it was opened."""

    @classmethod
    @contextmanager
    def opened(
        cls, archive: aeron.AeronArchive, options: RecordedWriteOptions, query: str, batch_id: int
    ) -> Iterator[RecordedTarget]:
        """Extends the recording of the query for a batch. At the end of the block the recording is stopped.

        Only the first batch of a query starts the recording. It does so even if the batch has no rows.

        Raises :class:`~aeron.spark.errors.AeronSparkError` if another process still extends the recording after
        :data:`TAKEOVER_TIMEOUT_S`. Raises :class:`~aeron.spark.errors.AeronDataLossError` if a later batch finds no
        recording.
        """
        # If the archive does not support metadata, this request fails. No recording has been started then.
        archive.list_recording_info(recording_id=0)
        deadline = time.monotonic() + TAKEOVER_TIMEOUT_S
        while (target := _try_open(archive, options, query_alias(query), batch_id)) is None:
            if time.monotonic() > deadline:
                raise AeronSparkError(
                    f"the recording with the alias {query_alias(query)} is extended by another process for "
                    f"{TAKEOVER_TIMEOUT_S:g} s: stop the other run of this query"
                )
            time.sleep(_TAKEOVER_INTERVAL_S)
        try:
            yield target
        finally:
            with suppress(AeronError):
                archive.try_stop_recording(target.subscription_id)
            target.publication.close()

    def state(self) -> SinkState:
        """Returns the state of the sink.

        Raises :class:`~aeron.spark.errors.AeronSparkError` if the recording has data, and the state is lost or damaged.
        Raises :class:`~aeron.spark.errors.AeronDataLossError` if rows that the state counts are missing at the end of
        the recording.
        """
        infos = self.archive.list_recording_info(recording_id=self.recording_id)
        metadata = infos[0].metadata if infos else b""
        if not metadata and self.position == self.start_position:
            return SinkState()
        try:
            state = SinkState.decode(metadata)
        except ValueError as error:
            raise AeronSparkError(
                f"recording {self.recording_id} ends at position {self.position}, and its metadata cannot be read "
                f"({error}): it is unknown which batches the recording has; start the query with a new checkpoint, "
                "which begins a new recording"
            ) from None
        if self.position < state.minimum_position:
            raise AeronDataLossError(
                f"recording {self.recording_id} ends at position {self.position}, and batch {state.batch_id} of this "
                f"query ended at position {state.minimum_position}: the end of the recording was truncated, or the "
                "archive has lost data; start the query with a new checkpoint, which begins a new recording"
            )
        return state

    def store(self, state: SinkState) -> SinkState:
        """Stores the state in the archive. Returns it."""
        self.archive.set_recording_metadata(self.recording_id, state.encode())
        return state


def _try_open(
    archive: aeron.AeronArchive, options: RecordedWriteOptions, alias: str, batch_id: int
) -> RecordedTarget | None:
    """Returns the open target, or `None` if another process has it."""
    former = _find(archive, options, alias)
    if former is None and batch_id > 0:
        raise AeronDataLossError(
            f"batch {batch_id} on {options.channel}: the archive has no recording of stream {options.stream_id} with "
            f"the alias {alias}, although the query has committed its earlier batches; the recording was deleted, or "
            "streamId or the archive has changed, or the query wrote to another sink before; start the query with a "
            "new checkpoint, which begins a new recording"
        )
    if former is not None and former.is_active:
        return None
    channel = named_channel(options, alias)
    if former is not None and former.stop_position is not None:
        channel.initial_position(former.stop_position, former.initial_term_id, former.term_buffer_length)
        channel.put("mtu", former.mtu_length)
    publication = archive.client.add_exclusive_publication(channel, options.stream_id)
    recorded = named_channel(options, alias, publication.session_id)
    source = source_location(options)
    position = publication.position
    try:
        if former is None:
            subscription_id = archive.start_recording(recorded, options.stream_id, source=source, auto_stop=True)
        else:
            subscription_id = archive.extend_recording(
                former.recording_id, recorded, options.stream_id, source=source, auto_stop=True
            )
        timeout_s = options.archive_message_timeout_ms / 1000
        recording = wait_recorded(archive, options.stream_id, publication.session_id, position, timeout_s)
        publication.wait_connected(timeout_s)
    except ActiveRecordingError:
        publication.close()
        return None
    except BaseException:
        publication.close()
        raise
    first = _find(archive, options, alias)
    if first is None or first.recording_id != recording.recording_id:
        # Another process has started a recording at the same time. The query uses the older recording, so this one is
        # deleted.
        publication.close()
        with suppress(AeronError):
            archive.try_stop_recording(subscription_id)
        if (error := purge_stopped(archive, recording.recording_id)) is not None:
            _log.warning(
                "recording %d with the alias %s has no rows and is not used; it could not be deleted, purge it: %s",
                recording.recording_id,
                alias,
                error,
            )
        return None
    return RecordedTarget(
        archive, publication, subscription_id, recording.recording_id, recording.start_position, position
    )


def _find(archive: aeron.AeronArchive, options: RecordedWriteOptions, alias: str) -> aeron.Recording | None:
    """Returns the oldest recording with the alias."""
    recordings = archive.list_recordings(stream_id=options.stream_id)
    return next((recording for recording in recordings if alias_of(recording) == alias), None)

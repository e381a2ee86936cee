"""Functions for the tasks and the commit of an exactly-once sink: connections, channels, waits and deletions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import aeron
from aeron import ChannelUriBuilder
from aeron.exceptions import ActiveRecordingError, AeronError, ArchiveTimeoutError, UnknownRecordingError
from aeron.spark.clients import response_channel
from aeron.spark.logs import logger
from aeron.spark.options import RecordedWriteOptions
from aeron.types import SourceLocation

__all__ = [
    "PURGE_TIMEOUT_S",
    "connected",
    "named_channel",
    "purge_stopped",
    "source_location",
    "wait_recorded",
]

PURGE_TIMEOUT_S = 5.0
"""Seconds for which a purge is repeated while the archive has not yet stopped the recording or a replay of it."""

_POLL_INTERVAL_S = 0.002

_log = logger()


@contextmanager
def connected(options: RecordedWriteOptions) -> Iterator[aeron.AeronArchive]:
    """Connects a client to the driver, and over it a client to the archive. Closes both clients at the end of the
    block."""
    credentials = options.archive_credentials
    with (
        aeron.connect(
            options.aeron_dir,
            driver_timeout_ms=options.aeron_driver_timeout,
            client_name=options.aeron_client_name,
            resource_linger_duration_ns=options.aeron_client_resource_linger_duration,
            idle_sleep_duration_ns=options.aeron_client_idle_sleep_duration,
            pre_touch_mapped_memory=options.aeron_pre_touch_mapped_memory,
            error_handler=_log_error,
        ) as client,
        aeron.connect_archive(
            client,
            control_channel=options.archive_control_channel,
            control_stream_id=options.archive_control_stream_id,
            response_channel=response_channel(options),
            response_stream_id=options.archive_response_stream_id,
            credentials=None if credentials is None else credentials.text.encode(),
            message_timeout=options.archive_message_timeout_ms / 1000,
            error_handler=_log_error,
        ) as archive,
    ):
        yield archive


def _log_error(error: Exception) -> None:
    """Logs an error of a client's thread. The calls of the client raise it too."""
    _log.debug("client of a recorded sink: %s", error)


def source_location(options: RecordedWriteOptions) -> SourceLocation:
    """Returns ``LOCAL`` if an IPC channel shows that the archive uses the driver of this process, otherwise
    ``REMOTE``."""
    channels = (options.archive_control_channel, options.channel)
    return "LOCAL" if any(channel.startswith("aeron:ipc") for channel in channels) else "REMOTE"


def named_channel(options: RecordedWriteOptions, alias: str, session_id: int | None = None) -> ChannelUriBuilder:
    """Returns the channel of the sink with an alias. If the archive records a network stream from its own driver, the
    stream is sent even without a receiver on the network (parameter ``ssc``)."""
    channel = ChannelUriBuilder.parse(options.channel).put("alias", alias).put("session-id", session_id)
    is_network = options.channel.startswith("aeron:udp")
    if is_network and source_location(options) == "LOCAL" and channel.get("ssc") is None:
        channel.put("ssc", True)
    return channel


def purge_stopped(
    archive: aeron.AeronArchive, recording_id: int, timeout_s: float = PURGE_TIMEOUT_S
) -> AeronError | None:
    """Deletes a recording that was stopped a moment ago. Returns the error if the recording stays.

    The archive refuses a purge until its recorder has stopped the recording, and until it has ended the replays. So the
    purge is repeated for at most `timeout_s` seconds.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            archive.purge_recording(recording_id)
            return None
        except UnknownRecordingError:
            return None
        except ActiveRecordingError as error:
            if time.monotonic() > deadline:
                return error
        except AeronError as error:
            return error
        time.sleep(_POLL_INTERVAL_S)


def wait_recorded(
    archive: aeron.AeronArchive, stream_id: int, session_id: int, position: int, timeout_s: float
) -> aeron.Recording:
    """Waits until the archive has recorded a session up to a position. Returns the recording.

    Raises :class:`~aeron.exceptions.ArchiveTimeoutError` if there is no progress for `timeout_s` seconds. If the
    archive reports an error during the wait, raises that error, for example because another process already extends the
    recording.
    """
    recording_id, last, deadline = None, -1, time.monotonic() + timeout_s
    while True:
        if recording_id is None:
            recording_id = archive.find_last_matching_recording("", stream_id, session_id)
        if recording_id is not None:
            recorded = archive.get_max_recorded_position(recording_id)
            recording = archive.list_recording(recording_id) if recorded >= position else None
            if recording is not None:
                return recording
            if recorded > last:
                last, deadline = recorded, time.monotonic() + timeout_s
        if (error := archive.poll_for_error()) is not None:
            raise error
        if time.monotonic() > deadline:
            raise ArchiveTimeoutError(
                f"session {session_id} of stream {stream_id} is recorded up to position {max(last, 0)} and not up to "
                f"{position} after {timeout_s:g} s"
            )
        time.sleep(_POLL_INTERVAL_S)

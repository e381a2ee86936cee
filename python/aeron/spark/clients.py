"""Converts options of clients and archives to arguments of the native classes, and keeps the connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron import _pipeline
from aeron.spark.errors import AeronOptionError
from aeron.spark.options import ArchiveOptions, ClientOptions, SharedOptions

if TYPE_CHECKING:
    from aeron._stubs.pipeline import _ArchiveSettings, _ClientSettings, _RecordingSelection

__all__ = [
    "archive_connections",
    "archive_settings",
    "client_settings",
    "recording_selection",
    "replay_channel",
    "response_channel",
]

CONNECTION_IDLE_MS = 30_000
"""Time for which a process keeps an unused connection to an archive, in milliseconds."""

_IPC = "aeron:ipc"
_ANY_LOCAL_PORT = "aeron:udp?endpoint=localhost:0"
_LOOPBACK = ("localhost", "127.", "[::1]")

_connections: list[_pipeline.ArchiveConnections] = []
"""The connections of this process. A forked worker creates its own connections."""


def client_settings(options: ClientOptions) -> _ClientSettings:
    """Returns the settings of a client for these options. ``None`` stands for the client's default."""
    return {
        "aeron_dir": options.aeron_dir,
        "driver_timeout_ms": options.aeron_driver_timeout,
        "client_name": options.aeron_client_name,
        "resource_linger_duration_ns": options.aeron_client_resource_linger_duration,
        "idle_sleep_duration_ns": options.aeron_client_idle_sleep_duration,
        "pre_touch_mapped_memory": options.aeron_pre_touch_mapped_memory,
    }


def archive_connections() -> _pipeline.ArchiveConnections:
    """Returns the connections of this process, which its sources and tasks share."""
    if not _connections or not _connections[0].is_usable:
        _connections[:] = [_pipeline.ArchiveConnections(CONNECTION_IDLE_MS)]
    return _connections[0]


def archive_settings(options: SharedOptions) -> _ArchiveSettings:
    """Returns the settings of the connection to the archive. Raises the same error as :func:`response_channel`."""
    credentials = options.archive_credentials
    return {
        "client": client_settings(options),
        "embedded_driver": options.embedded_driver,
        "control_channel": options.archive_control_channel,
        "control_stream_id": options.archive_control_stream_id,
        "response_channel": response_channel(options),
        "response_stream_id": options.archive_response_stream_id,
        "replay_channel": replay_channel(options),
        "replay_stream_id": options.archive_replay_stream_id,
        "credentials": None if credentials is None else credentials.text.encode(),
        "timeout_ms": options.archive_message_timeout_ms,
    }


def recording_selection(options: SharedOptions) -> _RecordingSelection:
    """Returns the selection of recordings to read."""
    return {
        "channel": options.channel,
        "stream_ids": options.stream_id or (),
        "recording_ids": options.recording_id,
    }


def replay_channel(options: ArchiveOptions) -> str:
    """Returns the channel of replays; by default, the channel of responses. Raises the same error as
    :func:`response_channel`."""
    return options.archive_replay_channel or response_channel(options)


def response_channel(options: ArchiveOptions) -> str:
    """Returns the channel of responses. It has a default if the control channel is IPC or has a loopback address.

    Raises :class:`~aeron.spark.errors.AeronOptionError` if the options do not contain the channel and it has no
    default.
    """
    return options.archive_response_channel or _default_response_channel(options.archive_control_channel)


def _default_response_channel(control_channel: str) -> str:
    if control_channel.startswith(_IPC):
        return _IPC
    _, _, endpoint = control_channel.partition("endpoint=")
    if endpoint.startswith(_LOOPBACK):
        return _ANY_LOCAL_PORT
    raise AeronOptionError(
        f"option archive.responseChannel: missing for the archive on {control_channel}; use "
        "aeron:udp?control-mode=response|control=HOST:PORT with a free port of the archive's host"
    )

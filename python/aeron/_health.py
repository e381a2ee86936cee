"""`health`: whether a driver and an archive live, and whether they are ready for the work of a service."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aeron import _aeron
from aeron._aeron import LogFile
from aeron.exceptions import AeronError, DriverError, DriverTimeoutError, InvalidArgumentError
from aeron.metrics import DriverMetrics, SubscriberMetrics, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aeron.types import Channel

__all__ = ["Health", "health"]

MAX_HEARTBEAT_AGE_MS = 10_000
"""The time after which Aeron's clients give up a driver, and tools an archive."""
MIN_FREE_BYTES = 160 * 1024 * 1024
"""Free space below which Aeron's driver logs a warning."""
MIN_FREE_COUNTERS = 64
"""Enough for the counters of five UDP streams with a subscriber each."""
_PROBE_TYPE_ID = 20_001


@dataclass(frozen=True)
class Health:
    """The result of `health`. Immutable.

    Args:
        is_live: Whether the heartbeats of the driver, and of the archive if one was named, are fresh.
        is_ready: Whether all checks have passed. A service that is not live is not ready.
        reasons: One sentence for each check that has failed.
    """

    is_live: bool
    is_ready: bool
    reasons: tuple[str, ...]


# Users import the class from `aeron`, so reprs and pickles name that module.
Health.__module__ = "aeron"


def health(
    aeron_dir: str | os.PathLike[str] | None = None,
    *,
    archive: str | os.PathLike[str] | None = None,
    streams: Iterable[tuple[Channel, int]] = (),
    recordings: Iterable[int] = (),
    max_lag: int | None = None,
    min_free_bytes: int = MIN_FREE_BYTES,
    min_free_counters: int = MIN_FREE_COUNTERS,
    deep: bool = False,
) -> Health:
    """Checks a driver, and an archive, from their files. Thread-safe.

    Without `deep`, the call only reads files, takes a few milliseconds, and is no client of the driver.

    Args:
        aeron_dir: Directory of the driver. `None`: the directory that the archive uses, or else the default directory.
        archive: Directory of an archive on this machine.
        streams: Channels and stream ids. Each publication of such a stream must have a subscriber. If the driver has no
            publication of it, then a subscription must have an image. The channel must have the same media and
            the same values of the parameters that are named here, and may have more.
        recordings: Ids of recordings that must be active.
        max_lag: Maximum number of bytes by which a subscriber lags its publisher, and a recording its stream.
            Applies to `streams` and `recordings`, or to all readers of the driver if both are empty. `None`: no limit.
        min_free_bytes: Free space that the file systems of both directories must have, in bytes.
        min_free_counters: Number of counters that the driver must still have room for.
        deep: Also connect to the driver as a client, and add a counter and free it.

    Returns:
        The result. A check that fails raises no error.

    Raises:
        InvalidArgumentError: If a limit is negative.
        InvalidChannelError: If a channel is not valid.

    Example:
        ```python
        result = aeron.health(driver.dir, streams=[("aeron:ipc", 1001)], max_lag=1_000_000)
        print(result.is_ready, *result.reasons)
        ```
    """
    for name, limit in (
        ("max_lag", max_lag),
        ("min_free_bytes", min_free_bytes),
        ("min_free_counters", min_free_counters),
    ):
        if limit is not None and limit < 0:
            raise InvalidArgumentError(f"{name}={limit} is negative: pass 0 or more")
    wanted = [_WantedStream(str(channel), stream_id) for channel, stream_id in streams]
    recording_ids = frozenset(recordings)
    dead: list[str] = []
    archive_id = None
    if archive is not None:
        used_dir, archive_id = _check_archive(os.fspath(archive), dead)
        aeron_dir = used_dir if aeron_dir is None else aeron_dir
    if archive is not None and aeron_dir is None:
        return Health(False, False, tuple(dead))  # nobody says which driver the archive uses
    directory = os.fspath(_aeron.default_directory() if aeron_dir is None else aeron_dir)
    unready: list[str] = []
    try:
        driver = snapshot(directory)
    except (DriverTimeoutError, DriverError, OSError) as error:
        dead.append(str(error))
    else:
        dead += _heartbeat(driver.heartbeat_ms, f"the driver on {directory}", driver.pid)
        if not dead:
            unready += _check_room(driver.max_counters - len(driver.counters), min_free_counters)
            unready += _check_streams(driver, wanted, max_lag, is_all=not (wanted or recording_ids))
            unready += _check_recordings(
                driver, recording_ids, archive_id, max_lag, is_all=not (wanted or recording_ids)
            )
    for place in {directory} if archive is None else {directory, os.fspath(archive)}:
        unready += _check_space(place, min_free_bytes)
    if deep and not dead:
        unready += _check_by_client(directory)
    return Health(not dead, not dead and not unready, (*dead, *unready))


def _check_archive(directory: str, dead: list[str]) -> tuple[str | None, int | None]:
    """Returns the directory of the archive's driver, and the id of the archive. Adds the reasons why it is not live."""
    from aeron._pipeline import _read_archive_mark

    try:
        mark = _read_archive_mark(directory)
    except AeronError as error:
        dead.append(str(error))
        return None, None
    if mark is None:
        dead.append(f"{directory} has no archive: there is no mark file")
        return None, None
    dead += _heartbeat(mark.activity_timestamp_ms, f"the archive in {directory}", mark.pid)
    return mark.aeron_directory or None, mark.archive_id


def _heartbeat(heartbeat_ms: int, what: str, pid: int) -> Iterator[str]:
    """Yields the reason why a heartbeat is not fresh."""
    if heartbeat_ms < 0:
        yield f"{what} has ended"
        return
    age_ms = time.time_ns() // 1_000_000 - heartbeat_ms
    if age_ms > MAX_HEARTBEAT_AGE_MS:
        yield f"{what} is dead or stopped: its last heartbeat is {age_ms} ms old, {about_process(pid)}"
    elif age_ms < -MAX_HEARTBEAT_AGE_MS:
        # A driver that lives writes its next heartbeat with the clock after the step.
        yield f"{what} has a heartbeat {-age_ms} ms in the future: it is dead, or the clock has just been set back"


def about_process(pid: int) -> str:
    """Returns whether a process runs, is stopped by a signal, or does not exist where this process can see it."""
    if pid == 1:
        # The first process of this container says nothing about that of another one.
        return "and it was process 1 of a container"
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name of the program is in parentheses, and may have any characters.
            state = file.read().rpartition(") ")[2][:1]
    except OSError:
        return f"and there is no process {pid} here"
    if state in ("T", "t"):
        return f"and its process {pid} is stopped by a signal"
    return f"and its process {pid} is a zombie" if state == "Z" else f"and process {pid} exists"


def _check_room(free: int, minimum: int) -> Iterator[str]:
    if free < minimum:
        yield f"the driver has room for {free} more counters, less than {minimum}: raise counters_values_buffer_length"


def _check_space(directory: str, minimum: int) -> Iterator[str]:
    try:
        found = os.statvfs(directory)
    except OSError as error:
        yield f"the free space of {directory} is unknown: {error.strerror}"
        return
    free = found.f_bavail * found.f_frsize
    if free < minimum:
        yield f"the file system of {directory} has {free} bytes free, less than {minimum}"


def _check_by_client(directory: str) -> Iterator[str]:
    try:
        with _aeron.Aeron(directory) as client:
            client.add_counter(_PROBE_TYPE_ID, "aeron health").close()
    except AeronError as error:
        yield f"a client cannot use the driver on {directory}: {error}"


@dataclass(frozen=True)
class _WantedStream:
    """A stream that must be connected."""

    channel: str
    stream_id: int

    def __post_init__(self) -> None:
        _aeron.ChannelUriBuilder.parse(self.channel)

    def __str__(self) -> str:
        return f"stream {self.stream_id} on {self.channel}"

    def matches(self, channel: str, stream_id: int) -> bool:
        """Returns whether a publication or subscription belongs to the stream."""
        return stream_id == self.stream_id and _parts(self.channel) <= _parts(channel)


def _parts(channel: str) -> set[str]:
    """Returns the media and the parameters of a channel."""
    media, _, parameters = channel.removeprefix("aeron-spy:").partition("?")
    return {media, *filter(None, parameters.split("|"))}


def _check_streams(
    driver: DriverMetrics, wanted: list[_WantedStream], max_lag: int | None, *, is_all: bool
) -> Iterator[str]:
    """Yields the reasons why streams are not connected, and the subscribers that lag too much."""
    for stream in wanted:
        yield from _check_connected(driver, stream)
    if max_lag is None:
        return
    for stream_id, session_id, reader in _readers(driver):
        is_checked = is_all or any(stream.matches(reader.channel, stream_id) for stream in wanted)
        if is_checked and reader.lag_bytes > max_lag:
            yield (
                f"subscriber {reader.registration_id} of stream {stream_id}, session {session_id}, "
                f"lags by {reader.lag_bytes} bytes, more than {max_lag}"
            )


def _readers(driver: DriverMetrics) -> Iterator[tuple[int, int, SubscriberMetrics]]:
    """Yields stream id, session id and subscriber of all publications and images."""
    for stream in driver.streams:
        yield from ((stream.stream_id, stream.session_id, each) for each in stream.subscribers)
    for image in driver.images:
        yield from ((image.stream_id, image.session_id, each) for each in image.subscribers)


def _check_connected(driver: DriverMetrics, stream: _WantedStream) -> Iterator[str]:
    publications = [each for each in driver.streams if stream.matches(each.channel, each.stream_id)]
    for each in publications:
        # The log of a publication has the flag that `is_connected` shows.
        path = os.path.join(driver.aeron_dir, "publications", f"{each.registration_id}.logbuffer")
        try:
            with LogFile(path) as log:
                is_connected = log.is_connected
        except (OSError, AeronError):
            is_connected = False  # the publication was closed after its counter was read
        if not is_connected:
            yield f"{stream}: publication {each.registration_id} has no subscriber"
    is_read = any(stream.matches(reader.channel, stream_id) for stream_id, _, reader in _readers(driver))
    if not publications and not is_read:
        yield f"{stream}: there is no publication, and no subscription has an image"


def _check_recordings(
    driver: DriverMetrics, wanted: frozenset[int], archive_id: int | None, max_lag: int | None, *, is_all: bool
) -> Iterator[str]:
    """Yields the recordings that are not active or lag too much."""
    active = [each for each in driver.recordings if archive_id is None or each.archive_id == archive_id]
    for id in sorted(wanted - {each.recording_id for each in active}):
        yield f"recording {id} is not active"
    if max_lag is None:
        return
    for each in active:
        is_checked = is_all or each.recording_id in wanted
        if is_checked and each.lag_bytes is not None and each.lag_bytes > max_lag:
            yield f"recording {each.recording_id} lags by {each.lag_bytes} bytes, more than {max_lag}"

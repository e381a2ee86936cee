"""The state of a driver as typed values: its clients, streams, images, endpoints, losses, errors and recordings.

`snapshot` reads the files of a driver at one moment. It is no client of the driver, and changes nothing. `Exporter`
serves the same values to Prometheus; `Collector` and `instrument` add them to the metrics of a program.

Example:
    ```python
    from aeron import metrics

    for stream in metrics.snapshot(driver.dir).streams:
        print(stream.channel, stream.window_left, stream.limited_by)
    ```
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from dataclasses import dataclass, replace

from aeron import _aeron
from aeron._aeron import (
    AeronArchive,
    CncFile,
    CopiedRange,
    CounterSnapshot,
    ErrorObservation,
    LossObservation,
    NamedReader,
    RetentionPolicy,
)
from aeron.exceptions import ArchiveDirectoryError
from aeron.status import ChannelStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa

    from aeron._exporter import Collector, Exporter, instrument, push

__all__ = [
    "ArchiveMetrics",
    "ClientMetrics",
    "Collector",
    "DriverMetrics",
    "EndpointMetrics",
    "Exporter",
    "ImageMetrics",
    "RecordingMetrics",
    "StreamMetrics",
    "SubscriberMetrics",
    "instrument",
    "push",
    "snapshot",
]
_OF_EXPORTER = {"Collector", "Exporter", "instrument", "push"}
"""Names that are imported at their first use: an HTTP server takes as long to import as a probe needs to run."""

_STATUSES = frozenset(map(int, ChannelStatus))
_HEARTBEAT = re.compile(
    r"client-heartbeat: id=-?\d+(?: name=(?P<name>.*) version=(?P<version>\S*) commit=(?P<commit>\S*))?",
    re.DOTALL,
)
_JOINED = re.compile(r" @(-?\d+)$")
_ARCHIVE_ID = re.compile(r" - archiveId=(-?\d+)(?: version=\S* commit=\S*)?$")


def __getattr__(name: str) -> object:
    if name not in _OF_EXPORTER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from aeron import _exporter

    return getattr(_exporter, name)


@dataclass(frozen=True)
class ClientMetrics:
    """A client of the driver. Immutable.

    Args:
        client_id: Id of the client.
        name: Name that the client gave itself; `""` if it has none.
        version: Version of the client's library; `""` before the client's first keepalive.
        commit: Commit of the client's library; `""` before the client's first keepalive.
        heartbeat_age_ms: Milliseconds since the last heartbeat.
        publications: Number of publications that the client added first.
        images: Number of images that the client's subscriptions read.
        counters: Number of counters that the client has added.
    """

    client_id: int
    name: str
    version: str
    commit: str
    heartbeat_age_ms: int
    publications: int
    images: int
    counters: int


@dataclass(frozen=True)
class SubscriberMetrics:
    """A subscription that reads a publication of the same driver, or an image. Immutable.

    Args:
        registration_id: Registration id of the subscription.
        client_id: Id of the client.
        channel: Channel of the subscription.
        position: Position up to which the subscriber has consumed.
        lag_bytes: Bytes that are available and not consumed.
        joined_position: Position at which the subscriber joined; `None` if the label does not have it.
        is_tethered: Whether the subscriber can hold the publisher back; `None` if the channel does not say so. Then the
            setting of the driver applies.
    """

    registration_id: int
    client_id: int
    channel: str
    position: int
    lag_bytes: int
    joined_position: int | None
    is_tethered: bool | None


@dataclass(frozen=True)
class StreamMetrics:
    """A publication. Immutable.

    Args:
        registration_id: Registration id of the publication.
        client_id: Id of the client that added it first.
        channel: Channel of the publication.
        stream_id: Stream id.
        session_id: Session id.
        is_exclusive: Whether the publication belongs to one client alone.
        position: Position up to which the publishers have appended, as the driver last saw it.
        limit: Position up to which the publishers may append.
        window_left: Bytes that the publishers may still append.
        sender_position: Position up to which the sender has sent; `None` for IPC.
        sender_limit: Position up to which the receivers let the sender send; `None` for IPC.
        naks_received: Number of NAKs from receivers; `None` for IPC.
        back_pressure_events: Times that the sender was at its limit with data to send; `None` for IPC.
        subscribers: Subscribers and spies on the same driver, the slowest one first.
        limited_by: The party that holds the publishers back if they have no room: a text with the slowest subscriber,
            `"receivers"` or `"sender"`; `None` while there is room, and without subscribers.
    """

    registration_id: int
    client_id: int
    channel: str
    stream_id: int
    session_id: int
    is_exclusive: bool
    position: int
    limit: int
    window_left: int
    sender_position: int | None
    sender_limit: int | None
    naks_received: int | None
    back_pressure_events: int | None
    subscribers: tuple[SubscriberMetrics, ...]
    limited_by: str | None


@dataclass(frozen=True)
class ImageMetrics:
    """A stream that the driver receives over the network. Immutable.

    Args:
        image_id: Correlation id of the image.
        channel: Channel of the subscription for which the driver created the image.
        stream_id: Stream id.
        session_id: Session id.
        position: Position up to which there are no gaps.
        highest_position: Highest position up to which data has arrived.
        naks_sent: Number of NAKs sent.
        round_trip_ns: Round trip time in nanoseconds; `None` without cubic congestion control.
        window_bytes: Window of the congestion control in bytes; `None` without cubic congestion control.
        subscribers: Subscribers of the image, the slowest one first.
    """

    image_id: int
    channel: str
    stream_id: int
    session_id: int
    position: int
    highest_position: int
    naks_sent: int
    round_trip_ns: int | None
    window_bytes: int | None
    subscribers: tuple[SubscriberMetrics, ...]


@dataclass(frozen=True)
class EndpointMetrics:
    """A channel endpoint: the sockets of a channel. Immutable.

    Args:
        channel: Channel.
        is_sender: Whether publications use the endpoint. Otherwise subscriptions use it.
        status: Status.
        addresses: Bound addresses, with ports.
    """

    channel: str
    is_sender: bool
    status: ChannelStatus
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class RecordingMetrics:
    """An active recording of an archive on the driver. Immutable.

    Args:
        archive_id: Id of the archive.
        recording_id: Recording id.
        channel: Channel without the parameters that a recording does not need; `None` if the label does not have it.
        stream_id: Stream id; `None` if the label does not have it.
        session_id: Session id.
        position: Recorded position.
        lag_bytes: Bytes of the stream that are not recorded yet; `None` if the driver does not have the stream.
    """

    archive_id: int | None
    recording_id: int
    channel: str | None
    stream_id: int | None
    session_id: int
    position: int
    lag_bytes: int | None


@dataclass(frozen=True)
class ArchiveMetrics:
    """An archive on the driver. Immutable.

    Args:
        archive_id: Id of the archive.
        values: Values of the archive's counters by name: see the page of counters. Of several agents, the largest one.
        directory: Directory of the archive; `None` unless it was passed to `snapshot`.
        heartbeat_ms: Last heartbeat, in milliseconds since the epoch; -1 after the archive has ended; `None` without
            the directory.
        free_bytes: Free space of the file system of the directory, in bytes; `None` without the directory.
        errors: Distinct errors in the archive's log; empty without the directory.
        readers: Named readers with their positions and lags; `None` unless a client of the archive was passed to
            `snapshot`.
        retention: Retention policies; `None` unless a client of the archive was passed to `snapshot`.
        copied: Copies in object storage; `None` unless a client of the archive was passed to `snapshot`.
    """

    archive_id: int
    values: dict[str, int]
    directory: str | None = None
    heartbeat_ms: int | None = None
    free_bytes: int | None = None
    errors: tuple[ErrorObservation, ...] = ()
    readers: tuple[NamedReader, ...] | None = None
    retention: tuple[RetentionPolicy, ...] | None = None
    copied: tuple[CopiedRange, ...] | None = None


@dataclass(frozen=True)
class DriverMetrics:
    """The state of a driver at one moment. Immutable.

    Args:
        aeron_dir: Directory of the driver.
        time_ms: Time of the snapshot, in milliseconds since the epoch.
        pid: Process id of the driver.
        start_timestamp_ms: Start of the driver, in milliseconds since the epoch.
        heartbeat_ms: Last heartbeat of the driver, in milliseconds since the epoch; -1 after the driver has ended.
        system: Values of the system counters by name: see the page of counters.
        clients: Clients.
        streams: Publications.
        images: Images.
        endpoints: Channel endpoints.
        recordings: Active recordings.
        archives: Archives on the driver.
        losses: Streams with losses.
        errors: Distinct errors in the driver's log.
        counters: All counters, in the order of their ids.
        max_counters: Number of counters that the driver has room for.
        free_bytes: Free space of the file system of the directory, in bytes; `None` if the directory is gone.
    """

    aeron_dir: str
    time_ms: int
    pid: int
    start_timestamp_ms: int
    heartbeat_ms: int
    system: dict[str, int]
    clients: tuple[ClientMetrics, ...]
    streams: tuple[StreamMetrics, ...]
    images: tuple[ImageMetrics, ...]
    endpoints: tuple[EndpointMetrics, ...]
    recordings: tuple[RecordingMetrics, ...]
    archives: tuple[ArchiveMetrics, ...]
    losses: tuple[LossObservation, ...]
    errors: tuple[ErrorObservation, ...]
    counters: tuple[CounterSnapshot, ...]
    max_counters: int
    free_bytes: int | None

    def to_arrow(self) -> pa.Table:
        """Returns an Arrow table with a row for each counter.

        Returns:
            A table with the columns `time` (milliseconds in UTC), `counter_id`, `type_id`, `name`, `kind`, `unit`,
            `value`, `channel`, `stream_id`, `session_id`, `recording_id`, `registration_id`, `client_id` and `label`. A
            property that a counter does not have is null.

        Raises:
            ImportError: If pyarrow is not installed.
        """
        import pyarrow as pa

        columns = {
            "time": pa.array([self.time_ms] * len(self.counters), pa.timestamp("ms", "UTC")),
            "counter_id": pa.array([each.id for each in self.counters], pa.int32()),
            "type_id": pa.array([each.type_id for each in self.counters], pa.int32()),
            "name": pa.array([each.name for each in self.counters], pa.string()),
            "kind": pa.array([each.kind for each in self.counters], pa.string()),
            "unit": pa.array([each.unit for each in self.counters], pa.string()),
            "value": pa.array([each.value for each in self.counters], pa.int64()),
            "channel": pa.array([each.channel for each in self.counters], pa.string()),
            "stream_id": pa.array([each.stream_id for each in self.counters], pa.int32()),
            "session_id": pa.array([each.session_id for each in self.counters], pa.int32()),
            "recording_id": pa.array([each.recording_id for each in self.counters], pa.int64()),
            "registration_id": pa.array([each.registration_id for each in self.counters], pa.int64()),
            "client_id": pa.array(
                [each.owner_id if each.owner_id >= 0 else None for each in self.counters], pa.int64()
            ),
            "label": pa.array([each.label for each in self.counters], pa.string()),
        }
        return pa.table(columns)


def snapshot(
    aeron_dir: str | os.PathLike[str] | None = None, *, archive: str | os.PathLike[str] | AeronArchive | None = None
) -> DriverMetrics:
    """Reads the state of a driver from its files. Thread-safe. The call is no client of the driver.

    The driver and its clients write while the files are read. So values of two counters may be from moments that differ
    by some microseconds: a subscriber can be ahead of its publisher. Distances below 0 are shown as 0.

    Args:
        aeron_dir: Directory of the driver. `None`: the directory that `archive` uses, or else the default directory.
        archive: Directory of an archive on this machine, or a client of an archive on the driver. The directory adds
            heartbeat, errors and free space; the client adds named readers, retention policies and copies.

    Returns:
        The state. The files of a dead driver remain: look at `heartbeat_ms`, or use `aeron.health`.

    Raises:
        DriverTimeoutError: If there is no complete file of a driver.
        DriverError: If the file has another version or is damaged.
        OSError: If the loss report cannot be read.
        ArchiveDirectoryError: If `archive` is a directory without an archive.
        ArchiveError: If `archive` is a client, and the archive refuses a request.
    """
    named = None if archive is None else _archive(archive)
    if aeron_dir is None and named is not None:
        aeron_dir = named.aeron_dir
    directory = os.fspath(_aeron.default_directory() if aeron_dir is None else aeron_dir)
    with CncFile(directory, timeout_ms=0) as cnc:
        counters = cnc.counters()
        now_ms = time.time_ns() // 1_000_000
        joined = _Joined(counters, now_ms)
        try:
            losses = _aeron.read_loss_report(directory)
        except FileNotFoundError:
            losses = []  # the directory of the driver was deleted in the meantime
        return DriverMetrics(
            aeron_dir=directory,
            time_ms=now_ms,
            pid=cnc.pid,
            start_timestamp_ms=cnc.start_timestamp_ms,
            heartbeat_ms=cnc.heartbeat_ms,
            system={each.name: each.value for each in counters if each.type_id == 0 and each.name is not None},
            clients=joined.clients(),
            streams=joined.streams(),
            images=joined.images(),
            endpoints=joined.endpoints(),
            recordings=joined.recordings(),
            archives=joined.archives(None if named is None else named.metrics),
            losses=tuple(losses),
            errors=tuple(cnc.errors()),
            counters=tuple(counters),
            max_counters=cnc.max_counter_id + 1,
            free_bytes=_free_bytes(directory),
        )


@dataclass(frozen=True)
class _NamedArchive:
    """The archive that was passed to `snapshot`, without its counters, and the directory of its driver."""

    metrics: ArchiveMetrics
    aeron_dir: str | None


def _archive(archive: str | os.PathLike[str] | AeronArchive) -> _NamedArchive:
    if isinstance(archive, AeronArchive):
        metrics = ArchiveMetrics(
            archive.archive_id,
            {},
            readers=tuple(archive.list_readers()),
            retention=tuple(archive.list_retention()),
            copied=tuple(archive.list_copied_ranges()),
        )
        return _NamedArchive(metrics, archive.client.aeron_dir)
    from aeron._pipeline import _read_archive_mark

    directory = os.fspath(archive)
    mark = _read_archive_mark(directory)
    if mark is None:
        raise ArchiveDirectoryError(f"{directory} has no archive: there is no mark file")
    metrics = ArchiveMetrics(
        mark.archive_id,
        {},
        directory=directory,
        heartbeat_ms=mark.activity_timestamp_ms,
        free_bytes=_free_bytes(directory),
        errors=tuple(mark.errors),
    )
    return _NamedArchive(metrics, mark.aeron_directory or None)


def _free_bytes(directory: str) -> int | None:
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


class _Joined:
    """Counters of one moment, joined by registration ids."""

    def __init__(self, counters: list[CounterSnapshot], now_ms: int) -> None:
        self._now_ms = now_ms
        self._by_name: defaultdict[str | None, list[CounterSnapshot]] = defaultdict(list)
        self._values: dict[tuple[str | None, int], int] = {}
        for each in counters:
            self._by_name[each.name].append(each)
            self._values[each.name, each.registration_id] = each.value
        self._readers: defaultdict[int, list[CounterSnapshot]] = defaultdict(list)
        for each in self._by_name["subscriber_position"]:
            self._readers[each.reference_id].append(each)
        self._counters = counters

    def clients(self) -> tuple[ClientMetrics, ...]:
        owned: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        for each in self._counters:
            kind = {"publisher_position": "publications", "subscriber_position": "images"}.get(each.name or "")
            if kind is None and each.channel is None and each.name != "client_heartbeat":
                kind = "counters"
            if kind is not None:
                owned[each.owner_id][kind] += 1
        return tuple(
            ClientMetrics(
                client_id=each.owner_id,
                name=text["name"] or "",
                version=text["version"] or "",
                commit=text["commit"] or "",
                heartbeat_age_ms=max(self._now_ms - each.value, 0),
                publications=owned[each.owner_id]["publications"],
                images=owned[each.owner_id]["images"],
                counters=owned[each.owner_id]["counters"],
            )
            for each in self._by_name["client_heartbeat"]
            if (text := _HEARTBEAT.match(each.label)) is not None
        )

    def streams(self) -> tuple[StreamMetrics, ...]:
        return tuple(map(self._stream, self._by_name["publisher_position"]))

    def _stream(self, counter: CounterSnapshot) -> StreamMetrics:
        id, position = counter.registration_id, counter.value
        limit = self._values.get(("publisher_limit", id), position)
        subscribers = self._subscribers(id, position)
        stream = StreamMetrics(
            registration_id=id,
            client_id=counter.owner_id,
            channel=counter.channel or "",
            stream_id=counter.stream_id or 0,
            session_id=counter.session_id or 0,
            is_exclusive=counter.label.startswith("pub-pos (exclusive)"),
            position=position,
            limit=limit,
            window_left=max(limit - position, 0),
            sender_position=self._values.get(("sender_position", id)),
            sender_limit=self._values.get(("sender_limit", id)),
            naks_received=self._values.get(("sender_naks_received", id)),
            back_pressure_events=self._values.get(("sender_back_pressure", id)),
            subscribers=subscribers,
            limited_by=None,
        )
        return StreamMetrics(**{**stream.__dict__, "limited_by": _limiting(stream)})

    def images(self) -> tuple[ImageMetrics, ...]:
        return tuple(
            ImageMetrics(
                image_id=(id := each.registration_id),
                channel=each.channel or "",
                stream_id=each.stream_id or 0,
                session_id=each.session_id or 0,
                position=each.value,
                highest_position=self._values.get(("receiver_hwm", id), each.value),
                naks_sent=self._values.get(("receiver_naks_sent", id), 0),
                round_trip_ns=self._values.get(("receiver_round_trip_time", id)),
                window_bytes=self._values.get(("receiver_window", id)),
                subscribers=self._subscribers(id, each.value),
            )
            for each in self._by_name["receiver_position"]
        )

    def _subscribers(self, id: int, head: int) -> tuple[SubscriberMetrics, ...]:
        """Returns the subscribers of a publication or image."""
        found = (
            SubscriberMetrics(
                registration_id=each.registration_id,
                client_id=each.owner_id,
                channel=each.channel or "",
                position=each.value,
                lag_bytes=max(head - each.value, 0),
                joined_position=None if (joined := _JOINED.search(each.label)) is None else int(joined[1]),
                is_tethered=_is_tethered(each.channel or ""),
            )
            for each in self._readers[id]
        )
        return tuple(sorted(found, key=lambda each: each.position))

    def endpoints(self) -> tuple[EndpointMetrics, ...]:
        addresses: defaultdict[int, list[str]] = defaultdict(list)
        for each in self._by_name["local_socket_address"]:
            status_id, address = each._bound_address
            addresses[status_id].append(address)
        return tuple(
            EndpointMetrics(
                channel=each.channel or "",
                is_sender=each.name == "send_channel_status",
                status=ChannelStatus(each.value),
                addresses=tuple(addresses[each.id]),
            )
            for name in ("send_channel_status", "receive_channel_status")
            for each in self._by_name[name]
            if each.value in _STATUSES
        )

    def recordings(self) -> tuple[RecordingMetrics, ...]:
        heads: dict[tuple[int | None, int | None], int] = {}
        for each in (*self._by_name["publisher_position"], *self._by_name["receiver_position"]):
            heads[each.session_id, each.stream_id] = max(each.value, heads.get((each.session_id, each.stream_id), 0))
        found = []
        for each in self._by_name["archive_recording_position"]:
            if each.recording_id is None or each.session_id is None:
                continue
            head = heads.get((each.session_id, each.stream_id))
            archive_id = _ARCHIVE_ID.search(each.label)
            found.append(
                RecordingMetrics(
                    archive_id=None if archive_id is None else int(archive_id[1]),
                    recording_id=each.recording_id,
                    channel=each.channel,
                    stream_id=each.stream_id,
                    session_id=each.session_id,
                    position=each.value,
                    lag_bytes=None if head is None else max(head - each.value, 0),
                )
            )
        return tuple(found)

    def archives(self, named: ArchiveMetrics | None) -> tuple[ArchiveMetrics, ...]:
        """Returns the archives of the counters, and the archive that the caller named."""
        values: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for each in self._counters:
            found = _ARCHIVE_ID.search(each.label)
            if each.name is None or not each.name.startswith("archive_") or found is None:
                continue
            if each.recording_id is None and each.name != "archive_control_session":
                known = values[int(found[1])]
                known[each.name] = max(each.value, known.get(each.name, each.value))
        if named is not None:
            values[named.archive_id] |= {}
        return tuple(
            replace(named, values=of_archive)
            if named is not None and archive_id == named.archive_id
            else ArchiveMetrics(archive_id, of_archive)
            for archive_id, of_archive in values.items()
        )


def _limiting(stream: StreamMetrics) -> str | None:
    """Returns what holds the publishers of a stream back, if they have no room."""
    if stream.window_left > 0:
        return None
    slowest = stream.subscribers[0] if stream.subscribers else None
    if stream.sender_position is not None and (slowest is None or slowest.position >= stream.sender_position):
        is_at_limit = stream.sender_limit is not None and stream.sender_position >= stream.sender_limit
        return "receivers" if is_at_limit else "sender"
    return None if slowest is None else f"subscriber {slowest.registration_id} of client {slowest.client_id}"


def _is_tethered(channel: str) -> bool | None:
    parameters = channel.partition("?")[2].split("|")
    return False if "tether=false" in parameters else True if "tether=true" in parameters else None

"""The rows of the views of `aeron top`: streams, readers, clients, recordings and errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from aeron._aeron import ErrorObservation, LossObservation
from aeron.cli.text import printable
from aeron.cli.timestamps import local_time
from aeron.cli.top.cells import age, amount, count
from aeron.cli.top.series import Series
from aeron.metrics import ClientMetrics, DriverMetrics, ImageMetrics, StreamMetrics, SubscriberMetrics

Value = str | int | float | tuple[float, ...] | None
Subject = tuple[int | None, int | None]
"""Stream id and session id."""

LATE_CLIENT_MS = 5_000
"""Age of a heartbeat that is marked. Clients write one each half second, and die after ten seconds by default."""


@dataclass(frozen=True)
class Row:
    """A row of a view. All texts are printable. Immutable.

    Args:
        key: Key of the row while its driver runs.
        name: Identity of the row over restarts of the driver and the programs.
        title: The thing that the row shows, as a text.
        cells: Values by column.
        facts: Names and texts of what the table has no room for.
        history: Rates of the last samples, the oldest one first.
        subject: The stream to which the row belongs, for the readers that are shown with it.
        client_id: The client whose readers are shown with the row.
        is_marked: Whether the row needs attention.
    """

    key: Hashable
    name: Hashable
    title: str
    cells: dict[str, Value]
    facts: tuple[tuple[str, str], ...] = ()
    history: tuple[float, ...] = ()
    subject: Subject | None = None
    client_id: int | None = None
    is_marked: bool = False


def positions_of(found: DriverMetrics) -> dict[Hashable, int]:
    """Returns the position of each stream, image, reader and recording, in bytes."""
    positions: dict[Hashable, int] = {}
    for stream in found.streams:
        positions["pub", stream.registration_id] = stream.position
        positions.update({_key(stream.registration_id, each): each.position for each in stream.subscribers})
    for image in found.images:
        positions["img", image.image_id] = image.position
        positions.update({_key(image.image_id, each): each.position for each in image.subscribers})
    for recording in found.recordings:
        positions["recording", recording.archive_id, recording.recording_id] = recording.position
    return positions


def rows_of(found: DriverMetrics, series: Series) -> dict[str, tuple[Row, ...]]:
    """Returns the rows of each view, by its name."""
    source = _Source(found, series)
    return {
        "streams": (*map(source.stream, found.streams), *map(source.image, found.images)),
        "readers": tuple(source.readers()),
        "clients": tuple(map(source.client, found.clients)),
        "recordings": tuple(source.recordings()),
        "errors": (*source.errors(), *source.losses()),
    }


def _key(id: int, reader: SubscriberMetrics) -> Hashable:
    # A subscription has the same registration id in all its images.
    return "reader", id, reader.registration_id


class _Source:
    """Makes rows of one snapshot."""

    def __init__(self, found: DriverMetrics, series: Series) -> None:
        self._found = found
        self._history = series.history
        self._names = {each.client_id: each.name for each in found.clients}
        self._images = {(each.stream_id, each.session_id): each for each in found.images}
        self._sent: defaultdict[int, list[float]] = defaultdict(list)
        for stream in found.streams:
            self._sent[stream.client_id] += self._history(("pub", stream.registration_id))[-1:]
        self._holders: set[Hashable] = set()
        self._held = {each.registration_id: self._holder(each) for each in found.streams}

    def _client(self, id: int) -> str:
        name = self._names.get(id)
        return printable(f"{name} ({id})") if name else f"client {id}"

    def _holder(self, stream: StreamMetrics) -> tuple[str | None, str]:
        """Returns the party that holds the publishers of a stream back as a name and as a sentence.

        If receivers do, and the driver receives the stream too, the slowest reader of its image is named: this image is
        the receiver, or one of several.
        """
        if stream.limited_by is None:
            return None, "not limited" if stream.window_left else "no subscriber"
        if stream.limited_by == "sender":
            return "sender", "held back by the sender"
        is_remote = stream.limited_by == "receivers"
        id, readers = self._receiving(stream) if is_remote else (stream.registration_id, [*stream.subscribers])
        if not readers:
            return "receivers", "held back by the receivers"
        slowest = readers[0]
        self._holders.add(_key(id, slowest))
        name = self._client(slowest.client_id)
        reader = f"reader {slowest.registration_id} of {name}, which lags by {amount(slowest.lag_bytes)}"
        if is_remote:
            return f"receivers: {name}", f"held back by the receivers; here by {reader}"
        return name, f"held back by {reader}"

    def _receiving(self, stream: StreamMetrics) -> tuple[int, list[SubscriberMetrics]]:
        """Returns the id of the driver's own image of a network publication, and its readers that lag."""
        image = self._images.get((stream.stream_id, stream.session_id))
        return (-1, []) if image is None else (image.image_id, [each for each in image.subscribers if each.lag_bytes])

    def stream(self, stream: StreamMetrics) -> Row:
        history = self._history(("pub", stream.registration_id))
        holder, sentence = self._held[stream.registration_id]
        channel = printable(stream.channel)
        publication = "exclusive publication" if stream.is_exclusive else "publication"
        facts = [
            ("room", f"{amount(stream.window_left)}: {sentence}"),
            ("position", count(stream.position)),
            ("limit", count(stream.limit)),
        ]
        if stream.sender_position is not None:
            facts += [
                ("sent", count(stream.sender_position)),
                ("sender limit", count(stream.sender_limit)),
                ("NAKs received", count(stream.naks_received)),
                ("back pressure of the sender", count(stream.back_pressure_events)),
            ]
        return Row(
            key=("pub", stream.registration_id),
            name=("pub", channel, stream.stream_id),
            title=f"{publication} {stream.registration_id} of {self._client(stream.client_id)}: {channel}, "
            f"stream {stream.stream_id}, session {stream.session_id}",
            cells={
                "stream": stream.stream_id,
                "session": stream.session_id,
                "kind": "pub",
                "bytes/s": history[-1] if history else None,
                "history": history,
                "lag": max((each.lag_bytes for each in stream.subscribers), default=None),
                "room": stream.window_left,
                "held back by": holder,
                "client": self._client(stream.client_id),
                "channel": channel,
            },
            facts=tuple(facts),
            history=history,
            subject=(stream.stream_id, stream.session_id),
            is_marked=holder is not None,
        )

    def image(self, image: ImageMetrics) -> Row:
        history = self._history(("img", image.image_id))
        channel = printable(image.channel)
        facts = [
            ("position", count(image.position)),
            ("received", count(image.highest_position)),
            ("missing", amount(max(image.highest_position - image.position, 0))),
            ("NAKs sent", count(image.naks_sent)),
        ]
        if image.round_trip_ns is not None:
            facts.append(("round trip", f"{image.round_trip_ns / 1000:.0f} us"))
            facts.append(("window", amount(image.window_bytes)))
        return Row(
            key=("img", image.image_id),
            name=("img", channel, image.stream_id),
            title=f"image {image.image_id}: {channel}, stream {image.stream_id}, session {image.session_id}",
            cells={
                "stream": image.stream_id,
                "session": image.session_id,
                "kind": "image",
                "bytes/s": history[-1] if history else None,
                "history": history,
                "lag": max((each.lag_bytes for each in image.subscribers), default=None),
                "room": None,
                "held back by": None,
                "client": None,
                "channel": channel,
            },
            facts=tuple(facts),
            history=history,
            subject=(image.stream_id, image.session_id),
        )

    def readers(self) -> Iterator[Row]:
        for stream in self._found.streams:
            for each in stream.subscribers:
                yield self._reader(each, stream.registration_id, "pub", (stream.stream_id, stream.session_id))
        for image in self._found.images:
            for each in image.subscribers:
                yield self._reader(each, image.image_id, "image", (image.stream_id, image.session_id))

    def _reader(self, reader: SubscriberMetrics, id: int, kind: str, subject: Subject) -> Row:
        key = _key(id, reader)
        history = self._history(key)
        channel, client = printable(reader.channel), self._client(reader.client_id)
        is_holder = key in self._holders
        tether = {None: "as the driver's setting", True: "yes", False: "no"}[reader.is_tethered]
        return Row(
            key=key,
            name=("reader", channel, subject[0], printable(self._names.get(reader.client_id, ""))),
            title=f"reader {reader.registration_id} of {client}: {channel}, stream {subject[0]}, session {subject[1]}"
            + (", holds the publisher back" if is_holder else ""),
            cells={
                "stream": subject[0],
                "session": subject[1],
                "of": kind,
                "client": client,
                "bytes/s": history[-1] if history else None,
                "history": history,
                "lag": reader.lag_bytes,
                "holds": "holds back" if is_holder else None,
                "channel": channel,
            },
            facts=(
                ("position", count(reader.position)),
                ("joined at", count(reader.joined_position)),
                ("tethered", tether),
            ),
            history=history,
            subject=subject,
            client_id=reader.client_id,
            is_marked=is_holder,
        )

    def client(self, client: ClientMetrics) -> Row:
        rates = self._sent[client.client_id]
        # The counter of a new client has no time yet.
        is_new = client.heartbeat_age_ms > self._found.time_ms - self._found.start_timestamp_ms
        heartbeat = None if is_new else client.heartbeat_age_ms
        name = printable(client.name)
        return Row(
            key=("client", client.client_id),
            name=("client", name or client.client_id),
            title=f"client {client.client_id} {name}".rstrip(),
            cells={
                "id": client.client_id,
                "name": name,
                "heartbeat": heartbeat,
                "sends/s": sum(rates) if rates else None,
                "publications": client.publications,
                "images": client.images,
                "counters": client.counters,
                "version": printable(client.version),
            },
            facts=(
                ("heartbeat", f"{age(heartbeat)} ago"),
                ("version", printable(client.version)),
                ("commit", printable(client.commit)),
            ),
            client_id=client.client_id,
            is_marked=heartbeat is not None and heartbeat > LATE_CLIENT_MS,
        )

    def recordings(self) -> Iterator[Row]:
        for each in self._found.recordings:
            key = ("recording", each.archive_id, each.recording_id)
            history = self._history(key)
            channel = printable(each.channel or "")
            yield Row(
                key=key,
                name=key,
                title=f"recording {each.recording_id} of archive {each.archive_id}: {channel}, "
                f"stream {each.stream_id}, session {each.session_id}",
                cells={
                    "id": each.recording_id,
                    "archive": each.archive_id,
                    "stream": each.stream_id,
                    "session": each.session_id,
                    "bytes/s": history[-1] if history else None,
                    "history": history,
                    "lag": each.lag_bytes,
                    "position": each.position,
                    "channel": channel,
                },
                history=history,
                subject=(each.stream_id, each.session_id),
            )

    def errors(self) -> Iterator[Row]:
        for each in self._found.errors:
            yield _event("error", each, printable(each.text.rstrip()))

    def losses(self) -> Iterator[Row]:
        for each in self._found.losses:
            text = f"{each.channel}, stream {each.stream_id}, session {each.session_id}, from {each.source}"
            lost = ("lost", amount(each.total_bytes_lost))
            yield _event("loss", each, printable(text), lost, subject=(each.stream_id, each.session_id))


def _event(
    kind: str,
    event: ErrorObservation | LossObservation,
    text: str,
    *facts: tuple[str, str],
    subject: Subject | None = None,
) -> Row:
    first, last = local_time(event.first_observation_ms), local_time(event.last_observation_ms)
    return Row(
        key=(kind, text),
        name=(kind, text),
        title=f"{kind}: {text}",
        cells={"kind": kind, "count": event.observation_count, "last": last[:19], "text": text},
        facts=(
            ("count", count(event.observation_count)),
            ("first", first),
            ("last", last),
            *facts,
        ),
        subject=subject,
    )

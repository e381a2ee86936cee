"""``aeron streams``: a driver's streams, in the forms of StreamStat and BacklogStat (docs/spec/06, section 1.6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import click

import aeron
from aeron.cli.options import directory_option, timeout_option
from aeron.cli.session import cnc_file
from aeron.cli.text import printable, printable_lines

_PUBLISHER_LIMIT, _SENDER_POSITION, _RECEIVER_HWM, _SUBSCRIBER_POSITION, _RECEIVER_POSITION = 1, 2, 3, 4, 5
_SENDER_LIMIT, _PUBLISHER_POSITION = 9, 12
_STREAM_TYPES = frozenset({1, 2, 3, 4, 5, 9, 12, 13, 19, 20})
_CHANNEL_LENGTH = 92
"""Length of the channel in the keys of a stream's counters: all of them have this beginning of a channel."""


@dataclass
class Stream:
    """One publisher's stream in this driver: its counters, in the order of their ids."""

    session_id: int
    stream_id: int
    channel: str
    counters: list[aeron.CounterSnapshot] = field(default_factory=list)

    def title(self) -> str:
        """Returns the name of the stream in both views."""
        return f"sessionId={self.session_id} streamId={self.stream_id} channel={self.channel} :"


@click.command("streams")
@directory_option
@timeout_option
@click.option("--backlog", is_flag=True, help="Show backlogs instead: the distances between positions.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def command(*, directory: str, timeout_ms: int, backlog: bool, as_json: bool) -> None:
    """Show the streams of a driver with the positions of their publishers and readers."""
    with cnc_file(directory, timeout_ms) as cnc:
        streams = streams_of(cnc.counters())
    if as_json:
        click.echo(json.dumps([_as_json(stream) for stream in streams], indent=2))
        return
    click.echo(f"Command `n Control file {directory}/cnc.dat")
    for stream in streams:
        if backlog:
            click.echo(printable_lines("\n".join([f"{printable(stream.title())} ", *backlog_lines(stream), ""])))
        else:
            click.echo(printable(" ".join([stream.title(), *_positions(stream)])))


def streams_of(counters: Iterable[aeron.CounterSnapshot]) -> list[Stream]:
    """Groups counters by session, stream and the channel, and sorts the groups in this order."""
    streams: dict[tuple[int, int, str], Stream] = {}
    for counter in counters:
        if counter.type_id not in _STREAM_TYPES:
            continue
        session_id, stream_id, channel = counter.session_id or 0, counter.stream_id or 0, counter.channel or ""
        # The labels of a stream's counters have beginnings of different lengths of a long channel.
        key = (session_id, stream_id, channel[:_CHANNEL_LENGTH])
        stream = streams.setdefault(key, Stream(session_id, stream_id, channel))
        stream.counters.append(counter)
        stream.channel = max(stream.channel, channel, key=len)
    return [streams[key] for key in sorted(streams)]


def backlog_lines(stream: Stream) -> Iterator[str]:
    """Yields the lines of the backlog view: distances between the positions of a stream."""
    publishers, senders, receivers = (
        _pairs(stream, _PUBLISHER_POSITION, _PUBLISHER_LIMIT),
        _pairs(stream, _SENDER_POSITION, _SENDER_LIMIT),
        _pairs(stream, _RECEIVER_HWM, _RECEIVER_POSITION),
    )
    published = None
    for registration_id, (published, limit) in publishers.items():
        yield (
            f"┌─for publisher {registration_id} the last sampled position is {published} "
            f"(~{limit - published} bytes before back-pressure)"
        )
    for registration_id, (sent, limit) in senders.items():
        to_send = None if published is None or published < sent else published - sent
        state = f"is at position {sent}" if to_send is None else f"has to send {to_send} bytes"
        yield f"└─sender {registration_id} {state} ({limit - sent} bytes remaining in the sender window)"
    if publishers and not senders:
        yield "└─no sender"
    for registration_id, (high_water_mark, _) in receivers.items():
        yield f"┌─receiver {registration_id} is at position {high_water_mark}"
        subscribers = _values(stream, _SUBSCRIBER_POSITION)
        for index, (subscriber_id, position) in enumerate(subscribers, start=1):
            corner = "└─" if index == len(subscribers) else "├─"
            yield f"{corner}subscriber {subscriber_id} has {high_water_mark - position} backlog bytes"


def _positions(stream: Stream) -> Iterator[str]:
    for counter in stream.counters:
        yield f"{counter.label.partition(':')[0]}:{counter._stream_registration_id}:{counter.value}"


def _values(stream: Stream, type_id: int) -> list[tuple[int, int]]:
    """Returns registration ids and values of the counters of a type."""
    return [
        (counter._stream_registration_id, counter.value) for counter in stream.counters if counter.type_id == type_id
    ]


def _pairs(stream: Stream, first_type: int, second_type: int) -> dict[int, tuple[int, int]]:
    """Returns pairs of values of two counter types, by registration id. Both counters of a pair have the same
    registration id. If there is no second counter, the value of the first one counts twice."""
    second = dict(_values(stream, second_type))
    return {id: (value, second.get(id, value)) for id, value in _values(stream, first_type)}


def _as_json(stream: Stream) -> dict[str, object]:
    return {
        "session_id": stream.session_id,
        "stream_id": stream.stream_id,
        "channel": stream.channel,
        "counters": [
            {
                "id": counter.id,
                "type_id": counter.type_id,
                "name": counter.label.partition(":")[0],
                "registration_id": counter._stream_registration_id,
                "value": counter.value,
            }
            for counter in stream.counters
        ],
    }

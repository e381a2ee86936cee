"""How a client that has lost its driver connects again, and what it reports then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Reconnect", "ReconnectReport", "StreamReport"]


@dataclass(frozen=True, kw_only=True)
class Reconnect:
    """How a client that has lost its driver connects again. Immutable.

    Args:
        min_delay: Seconds from the loss to the first look for a driver, and between two looks. A look reads one file.
            The client takes between half of the time and all of it, so that many clients do not return at once.
        max_delay: Maximum of that time, in seconds. The time doubles for each driver that is lost sooner than that
            after the client had found it.
        give_up_after: Seconds from the loss after which the client is closed for good. `None` means never.

    Example:
        ```python
        client = aeron.connect(reconnect=aeron.Reconnect(give_up_after=3600))
        ```
    """

    min_delay: float = 0.1
    max_delay: float = 5.0
    give_up_after: float | None = None


@dataclass(frozen=True, kw_only=True)
class StreamReport:
    """State of one stream of the driver that a client has lost. Immutable. `None` means that a number is not known.

    Args:
        kind: Whether the stream was a publication, an exclusive publication or an image of a subscription.
        channel: Channel as the program gave it.
        stream_id: Stream id.
        session_id: Session id in the lost driver.
        position: Position up to which the publication was written, or the image was consumed, in bytes.
        delivered_bytes: Bytes that every subscriber has certainly consumed. They are counted from the position at which
            this client joined the stream, with the headers of the frames. Over UDP, the receivers are not known.
        lost_bytes: Bytes that no subscriber will ever get. Over UDP, these are the bytes that the driver had not sent.
        possibly_lost_bytes: Bytes that a subscriber may still have in its log, or may have lost.
    """

    kind: Literal["publication", "exclusive_publication", "image"]
    channel: str
    stream_id: int
    session_id: int
    position: int
    delivered_bytes: int | None
    lost_bytes: int | None
    possibly_lost_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class ReconnectReport:
    """The losses of a client together with its driver. `on_reconnect` gets it. Immutable.

    Args:
        cause: Why the client lost its driver, such as a `DriverTimeoutError`, a `ClientTimeoutError` or a
            `ConductorServiceTimeoutError`.
        outage: Seconds from the loss until the next driver had all resources of the client.
        reconnections: Number of times that the client has connected again, with this one.
        streams: One entry for each publication, and for each image of a subscription, of the lost driver.
        refused: The errors of resources that the next driver has refused. These resources are closed.
    """

    cause: Exception
    outage: float
    reconnections: int
    streams: tuple[StreamReport, ...]
    refused: tuple[Exception, ...]


# Users import the classes from `aeron`, so reprs and pickles name that module.
for _class in (Reconnect, StreamReport, ReconnectReport):
    _class.__module__ = "aeron"

"""Deliberate loss of incoming datagrams, for tests of how a system behaves when its network does not.

>>> import aeron
>>> driver = aeron.MediaDriver(incoming_loss=aeron.RandomLoss(rate=0.05, seed=7))
>>> driver.configuration["udp_channel_incoming_interceptors"]
'loss'
>>> driver.close()

The same is there for any driver, by the ``AERON_UDP_CHANNEL_*`` settings that ``MediaDriver.settings()`` lists.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from aeron.exceptions import ArgumentRangeError, ArgumentTypeError, InvalidArgumentError

__all__ = ["FixedLoss", "FrameType", "Loss", "MultiGapLoss", "RandomLoss"]


class FrameType(IntEnum):
    """Types of the frames that drivers send each other; a datagram goes by its first frame. Immutable."""

    PAD = 0
    DATA = 1
    NAK = 2
    STATUS_MESSAGE = 3
    ERROR = 4
    SETUP = 5
    RTT_MEASUREMENT = 6
    RESOLUTION = 7


_INT32 = 2**31 - 1


def _check(name: str, value: int, low: int, high: int) -> None:
    """Refuses a number that the driver cannot read: it would start without any loss."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(f"{name}={value!r} is not an integer") from error
    if not low <= number <= high:
        raise ArgumentRangeError(f"{name}={value} is not within {low} to {high}")


DATA_FRAMES = (FrameType.PAD, FrameType.DATA)
"""What carries a stream: lost, it has to be asked for again."""


@dataclass(frozen=True)
class RandomLoss:
    """Loses incoming datagrams of these frame types with the probability `rate`, 0 to 1. Immutable.

    With a `seed` each socket loses by the same series of random numbers in every run.
    """

    interceptor: ClassVar[str] = "loss"

    rate: float
    seed: int | None = None
    frame_types: Iterable[FrameType] = DATA_FRAMES

    def __post_init__(self) -> None:
        """Refuses a rate that is no probability, and what the driver would ignore with all of the loss."""
        if not isinstance(self.rate, numbers.Real):
            raise ArgumentTypeError(f"rate={self.rate!r} is not a number from 0 to 1")
        if not isinstance(self.frame_types, Iterable):
            raise ArgumentTypeError(f"frame_types={self.frame_types!r} is not an iterable of aeron.FrameType")
        if not 0 <= self.rate <= 1:
            raise InvalidArgumentError(f"a loss rate of {self.rate} is not within 0 and 1")
        if self.seed is not None:
            _check("seed", self.seed, 0, 2**64 - 1)
        for frame_type in self.frame_types:
            _check("frame_types", frame_type, 0, 63)

    def arguments(self) -> str:
        """The text of ``AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS``."""
        mask = sum({1 << frame_type for frame_type in self.frame_types})
        seed = "" if self.seed is None else f"|seed={self.seed}"
        return f"rate={self.rate}{seed}|recv-msg-mask={mask:#x}"


@dataclass(frozen=True)
class FixedLoss:
    """Loses what comes first of a term, up to `term_offset + length`, of every stream, once: retransmits pass.

    As in the C driver the loss begins with the first datagram that is seen of the term, heartbeats included, wherever
    `term_offset` is. Immutable.
    """

    interceptor: ClassVar[str] = "fixed-loss"

    term_id: int
    term_offset: int
    length: int

    def __post_init__(self) -> None:
        """Refuses what the driver would ignore with all of the loss."""
        _check("term_id", self.term_id, -_INT32 - 1, _INT32)
        _check("term_offset", self.term_offset, 0, _INT32)
        _check("length", self.length, 0, _INT32)

    def arguments(self) -> str:
        """The text of ``AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS``."""
        return f"term-id={self.term_id}|term-offset={self.term_offset}|length={self.length}"


@dataclass(frozen=True)
class MultiGapLoss:
    """Loses `gap_length` bytes of a term at each multiple of `gap_radix`, `total_gaps` times, of every stream, once.

    The radix is rounded up to a power of two. Immutable.
    """

    interceptor: ClassVar[str] = "multi-gap-loss"

    term_id: int
    gap_radix: int
    gap_length: int
    total_gaps: int

    def __post_init__(self) -> None:
        """Refuses what the driver would ignore with all of the loss."""
        _check("term_id", self.term_id, -_INT32 - 1, _INT32)
        for name in ("gap_radix", "gap_length", "total_gaps"):
            _check(name, getattr(self, name), 0, _INT32)

    def arguments(self) -> str:
        """The text of ``AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS``."""
        return (
            f"term-id={self.term_id}|gap-radix={self.gap_radix}"
            f"|gap-length={self.gap_length}|total-gaps={self.total_gaps}"
        )


Loss = RandomLoss | FixedLoss | MultiGapLoss

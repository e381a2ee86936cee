"""Deliberate loss of incoming datagrams, for tests of a system on a bad network.

>>> import aeron
>>> driver = aeron.MediaDriver(incoming_loss=aeron.RandomLoss(rate=0.05, seed=7))
>>> driver.configuration["udp_channel_incoming_interceptors"]
'loss'
>>> driver.close()

A driver in another process takes the same losses from two environment variables. The value of
``AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS`` is the attribute ``interceptor`` of the loss. The method ``arguments``
returns the value of the other variable.
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
    """Types of the frames between drivers. The type of a datagram is the type of its first frame. Immutable."""

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
    """Refuses a number that the driver cannot parse, because the driver would then start without any loss."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(f"{name}={value!r} is not an integer") from error
    if not low <= number <= high:
        raise ArgumentRangeError(f"{name}={value} is not within {low} to {high}")


DATA_FRAMES = (FrameType.PAD, FrameType.DATA)
"""Types of the frames that contain a stream. If such a frame is lost, the receiver requests it again."""


@dataclass(frozen=True)
class RandomLoss:
    """Drops incoming datagrams at random, for tests. Immutable.

    Args:
        rate: Probability that a datagram is dropped, 0 to 1.
        seed: Seed of the random numbers. With a seed, each socket uses the same random numbers in every run.
        frame_types: Types of the frames to drop.

    Raises:
        ArgumentTypeError: If an argument has the wrong type.
        InvalidArgumentError: If ``rate`` is not within 0 and 1.
        ArgumentRangeError: If ``seed`` or a frame type is out of range.

    Example:
        ```python
        driver = aeron.MediaDriver(incoming_loss=aeron.RandomLoss(rate=0.05, seed=7))
        ```
    """

    interceptor: ClassVar[str] = "loss"

    rate: float
    seed: int | None = None
    frame_types: Iterable[FrameType] = DATA_FRAMES

    def __post_init__(self) -> None:
        """Refuses a rate outside 0 to 1, and values for which the driver would ignore the whole loss."""
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
        """Returns the text of the driver's setting for this loss.

        Returns:
            The value of ``AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS``.
        """
        mask = sum({1 << frame_type for frame_type in self.frame_types})
        seed = "" if self.seed is None else f"|seed={self.seed}"
        return f"rate={self.rate}{seed}|recv-msg-mask={mask:#x}"


@dataclass(frozen=True)
class FixedLoss:
    """Drops the beginning of a term once, for tests. Retransmitted data passes. Immutable.

    As in the C driver, the loss begins with the first datagram of the term that arrives, even if it is a heartbeat. It
    ends at the offset ``term_offset + length``.

    Args:
        term_id: Id of the term.
        term_offset: Offset in the term, in bytes. Only its sum with ``length`` has an effect.
        length: Length in bytes, which is added to ``term_offset``.

    Raises:
        ArgumentTypeError: If an argument is not an integer.
        ArgumentRangeError: If an argument is out of range.
    """

    interceptor: ClassVar[str] = "fixed-loss"

    term_id: int
    term_offset: int
    length: int

    def __post_init__(self) -> None:
        """Refuses values for which the driver would ignore the whole loss."""
        _check("term_id", self.term_id, -_INT32 - 1, _INT32)
        _check("term_offset", self.term_offset, 0, _INT32)
        _check("length", self.length, 0, _INT32)

    def arguments(self) -> str:
        """Returns the text of the driver's setting for this loss.

        Returns:
            The value of ``AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS``.
        """
        return f"term-id={self.term_id}|term-offset={self.term_offset}|length={self.length}"


@dataclass(frozen=True)
class MultiGapLoss:
    """Drops several parts of a term at regular distances, each once, for tests. Immutable.

    Args:
        term_id: Id of the term.
        gap_radix: Distance of the gaps in bytes, which is rounded up to a power of two.
        gap_length: Length of a gap, in bytes.
        total_gaps: Number of gaps.

    Raises:
        ArgumentTypeError: If an argument is not an integer.
        ArgumentRangeError: If an argument is out of range.
    """

    interceptor: ClassVar[str] = "multi-gap-loss"

    term_id: int
    gap_radix: int
    gap_length: int
    total_gaps: int

    def __post_init__(self) -> None:
        """Refuses values for which the driver would ignore the whole loss."""
        _check("term_id", self.term_id, -_INT32 - 1, _INT32)
        for name in ("gap_radix", "gap_length", "total_gaps"):
            _check(name, getattr(self, name), 0, _INT32)

    def arguments(self) -> str:
        """Returns the text of the driver's setting for this loss.

        Returns:
            The value of ``AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS``.
        """
        return (
            f"term-id={self.term_id}|gap-radix={self.gap_radix}"
            f"|gap-length={self.gap_length}|total-gaps={self.total_gaps}"
        )


Loss = RandomLoss | FixedLoss | MultiGapLoss


# Users import these names from `aeron`, so reprs, tracebacks and pickles name that module.
for _class in (FixedLoss, FrameType, MultiGapLoss, RandomLoss):
    _class.__module__ = "aeron"

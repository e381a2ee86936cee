"""Names for the types of arguments, for annotations in programs that use ``aeron``.

>>> import aeron
>>> def send(publication: aeron.AnyPublication, message: aeron.Message) -> None:
...     publication.publish(message, timeout=1)

Each name is also an attribute of ``aeron``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from aeron._aeron import (
    BufferClaim,
    ChannelUriBuilder,
    CountersReader,
    FragmentAssembler,
    Header,
    Image,
    PendingOperation,
    RefusedAttempts,
)
from aeron.results import NotSent

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

    _Array: TypeAlias = npt.NDArray[Any]
    _NumpyTime: TypeAlias = np.datetime64
elif sys.version_info >= (3, 12):
    from collections.abc import Buffer

    _Array = Buffer
    _NumpyTime = Any
else:
    Buffer = bytes | bytearray | memoryview
    _Array = Buffer
    _NumpyTime = Any

__all__ = [
    "AnyPublication",
    "ArrowArray",
    "ArrowSchema",
    "ArrowStream",
    "Channel",
    "CounterHandler",
    "Credentials",
    "ExportFormat",
    "FragmentHandler",
    "ImageHandler",
    "MalformedTreatment",
    "Message",
    "Messages",
    "Offsets",
    "SourceLocation",
    "Time",
    "ViewHandler",
]


class ArrowArray(Protocol):
    """An array or record batch of a library with the Arrow C data interface. The library determines thread-safety."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Exports the array by the Arrow C data interface.

        Args:
            requested_schema: A capsule of the schema that the consumer prefers.

        Returns:
            Capsules of the schema and of the array.
        """
        ...


class ArrowStream(Protocol):
    """A table or stream of a library with the Arrow C stream interface. The library determines thread-safety."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports the data by the Arrow C stream interface.

        Args:
            requested_schema: A capsule of the schema that the consumer prefers.

        Returns:
            A capsule of the stream.
        """
        ...


class ArrowSchema(Protocol):
    """A schema of a library with the Arrow C data interface. The library determines thread-safety."""

    def __arrow_c_schema__(self) -> object:
        """Exports the schema by the Arrow C data interface.

        Returns:
            A capsule of the schema.
        """
        ...


Channel: TypeAlias = str | ChannelUriBuilder
"""A channel: its URI, such as ``"aeron:ipc"``, or a `ChannelUriBuilder`."""
Message: TypeAlias = Buffer | bytes
"""One message: any object with the buffer protocol, such as ``bytes``, ``memoryview`` or a numpy array."""
Messages: TypeAlias = list[bytes] | Sequence[Buffer] | _Array | ArrowArray | Buffer
"""Many messages: a list, a two-dimensional array, an array of records, an Arrow array, or one buffer with offsets."""
Offsets: TypeAlias = Buffer | Iterable[int]
"""Offsets of messages in one buffer: the start of each message, and then the end of the last message."""
FragmentHandler: TypeAlias = Callable[[bytes, Header], object] | FragmentAssembler
"""A handler of fragments: ``handler(payload, header)``, where ``payload`` is ``bytes``."""
ViewHandler: TypeAlias = Callable[[memoryview, Header], object] | FragmentAssembler
"""A handler of fragments that are not copied: ``payload`` is a memoryview, valid until the handler returns."""
ImageHandler: TypeAlias = Callable[[Image], object]
"""A handler of images that become available or unavailable: ``handler(image)``.

The handler runs on the client's handler thread, or in ``do_work``. Its result is ignored, and its exceptions go to the
client's ``error_handler``.
"""
CounterHandler: TypeAlias = Callable[[CountersReader, int, int], object]
"""A handler of counters that become available or are freed: ``handler(counters_reader, registration_id, counter_id)``.

The handler runs on the client's handler thread, or in ``do_work``. Its result is ignored, and its exceptions go to the
client's ``error_handler``.
"""
Credentials: TypeAlias = bytes | Callable[[bytes | None], bytes]
"""Credentials for an archive: bytes, or a function that returns bytes.

The function is first called with ``None``, and again with the archive's challenge if there is one.
"""
ExportFormat: TypeAlias = Literal["parquet", "arrow"]
"""The format of exported files: Parquet, or Arrow IPC, which is also known as Feather."""
MalformedTreatment: TypeAlias = Literal["fail", "drop", "keep"]
"""Treatment of malformed messages: an error, no row, or a row without values that has the message's bytes in the column
``_corrupt_record``."""
SourceLocation: TypeAlias = Literal["LOCAL", "REMOTE"]
"""The source of a stream that an archive records.

``"LOCAL"`` means that the archive's driver publishes the stream, ``"REMOTE"`` that another driver does. Lower-case
letters are accepted at run time.
"""
Time: TypeAlias = datetime | _NumpyTime
"""A time: a datetime with a time zone, or a ``numpy.datetime64``, which numpy defines in UTC."""


class AnyPublication(Protocol):
    """The methods that `Publication` and `ExclusivePublication` share, for annotations.

    The class of the publication determines thread-safety.
    """

    def offer(self, message: Buffer, *, reserved_value: int | Callable[[bytes], int] | None = None) -> int | NotSent:
        """See `Publication.offer`."""

    def offer_parts(self, parts: Iterable[Buffer]) -> int | NotSent:
        """See `Publication.offer_parts`."""

    def offer_batch(self, messages: Messages, *, offsets: Offsets | None = None, start: int = 0) -> int:
        """See `Publication.offer_batch`."""

    def offer_arrow(self, data: ArrowArray | ArrowStream, *, start: int = 0, timeout: float | None = 0.0) -> int:
        """See `Publication.offer_arrow`."""

    def publish(self, message: Buffer, timeout: float | None = None) -> int:
        """See `Publication.publish`."""

    def try_claim(self, length: int, *, direct: bool = False) -> BufferClaim | NotSent:
        """See `Publication.try_claim`."""

    def claim(self, length: int, timeout: float | None = None, *, direct: bool = False) -> BufferClaim:
        """See `Publication.claim`."""

    def claim_async(
        self, length: int, timeout: float | None = None, *, direct: bool = False
    ) -> Coroutine[Any, Any, BufferClaim]:
        """See `Publication.claim_async`."""

    def offer_async(self, message: Buffer) -> Coroutine[Any, Any, int]:
        """See `Publication.offer_async`."""

    def offer_batch_async(
        self, messages: Messages, *, offsets: Offsets | None = None, start: int = 0
    ) -> Coroutine[Any, Any, int]:
        """See `Publication.offer_batch_async`."""

    def wait_connected(self, timeout: float | None = None) -> None:
        """See `Publication.wait_connected`."""

    def wait_connected_async(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """See `Publication.wait_connected_async`."""

    def flush(self, timeout: float | None = None) -> bool:
        """See `Publication.flush`."""

    def close(self) -> None:
        """See `Publication.close`."""

    def revoke(self) -> None:
        """See `Publication.revoke`."""

    def __enter__(self) -> Self:
        """See `Publication.__enter__`."""

    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None:
        """See `Publication.__exit__`."""

    def add_destination(self, channel: Channel) -> int:
        """See `Publication.add_destination`."""

    def remove_destination(self, destination: Channel | int) -> None:
        """See `Publication.remove_destination`."""

    def async_add_destination(self, channel: Channel) -> PendingOperation[int]:
        """See `Publication.async_add_destination`."""

    def async_remove_destination(self, destination: Channel | int) -> PendingOperation[None]:
        """See `Publication.async_remove_destination`."""

    @property
    def channel(self) -> str:
        """See `Publication.channel`."""

    @property
    def stream_id(self) -> int:
        """See `Publication.stream_id`."""

    @property
    def session_id(self) -> int:
        """See `Publication.session_id`."""

    @property
    def generation(self) -> int:
        """See `Publication.generation`."""

    @property
    def registration_id(self) -> int:
        """See `Publication.registration_id`."""

    @property
    def original_registration_id(self) -> int:
        """See `Publication.original_registration_id`."""

    @property
    def is_original(self) -> bool:
        """See `Publication.is_original`."""

    @property
    def initial_term_id(self) -> int:
        """See `Publication.initial_term_id`."""

    @property
    def term_buffer_length(self) -> int:
        """See `Publication.term_buffer_length`."""

    @property
    def position_bits_to_shift(self) -> int:
        """See `Publication.position_bits_to_shift`."""

    @property
    def max_message_length(self) -> int:
        """See `Publication.max_message_length`."""

    @property
    def max_payload_length(self) -> int:
        """See `Publication.max_payload_length`."""

    @property
    def max_possible_position(self) -> int:
        """See `Publication.max_possible_position`."""

    @property
    def position(self) -> int:
        """See `Publication.position`."""

    @property
    def position_limit(self) -> int:
        """See `Publication.position_limit`."""

    @property
    def position_limit_id(self) -> int:
        """See `Publication.position_limit_id`."""

    @property
    def refused(self) -> RefusedAttempts:
        """See `Publication.refused`."""

    @property
    def available_window(self) -> int:
        """See `Publication.available_window`."""

    @property
    def is_connected(self) -> bool:
        """See `Publication.is_connected`."""

    @property
    def is_closed(self) -> bool:
        """See `Publication.is_closed`."""

    @property
    def channel_status_id(self) -> int:
        """See `Publication.channel_status_id`."""

    @property
    def channel_status(self) -> int:
        """See `Publication.channel_status`."""

    @property
    def local_socket_addresses(self) -> list[str]:
        """See `Publication.local_socket_addresses`."""


# Users import these names from `aeron`, so reprs, tracebacks and pickles name that module.
for _class in (AnyPublication, ArrowArray, ArrowSchema, ArrowStream):
    _class.__module__ = "aeron"

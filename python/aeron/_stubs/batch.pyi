"""Batches of messages."""

from collections.abc import Iterator
from typing import ClassVar, Self, final, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

@final
class Batch:
    """Many whole messages in contiguous memory.

    Immutable, so thread-safe. A view keeps the memory of the batch alive.

    `batch[i]` is the payload of a message as a read-only memoryview. `batch[i:j]` is a batch of the
    messages from `i` to `j - 1`, which shares the memory of the whole batch. A slice with a step other than
    1 is a copy. Two batches are equal if their messages are equal, and a pickled batch has a copy of its
    messages. pyarrow and other Arrow libraries read a batch without a copy.

    Example:
        ```python
        batch = subscription.poll_batch()
        print(len(batch), [bytes(payload) for payload in batch])
        ```
    """
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> memoryview: ...
    @overload
    def __getitem__(self, key: slice, /) -> Batch: ...
    def __iter__(self) -> Iterator[memoryview]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def to_list(self) -> list[bytes]:
        """Copies the payloads.

        Returns:
            A list of `bytes`.
        """
    def as_records(self, dtype: npt.DTypeLike) -> npt.NDArray[np.void]:
        """Returns the payloads as a numpy array of records, without a copy.

        Args:
            dtype: A numpy dtype. The length of each message must be a multiple of the dtype's length.

        Returns:
            A read-only array.

        Raises:
            InvalidArgumentError: If the length of a message is not a multiple of the dtype's length.
            ArgumentTypeError: If `dtype` is not a dtype.

        Example:
            ```python
            trades = batch.as_records([("price", "<f8"), ("size", "<u4")])
            ```
        """
    def to_arrow(self, layout: str | npt.DTypeLike | pa.Schema | None = None) -> pa.Table:
        """Returns an Arrow table of the messages, or of the records in them.

        Args:
            layout: Layout of the records: a text such as `"ts ts_ns, px f64, sym char[8]"`, a structured numpy
                dtype, or a pyarrow schema of types with a fixed length. `None` gives the payloads as bytes.

        Returns:
            A `pyarrow.Table` with a column for each field, or with the column `payload`. Then follow `position`,
            `session_id`, `stream_id` and `reserved_value`. A message of several records is several rows.

        Raises:
            InvalidArgumentError: If the layout is not valid, or a message does not fit it.
            ArgumentTypeError: If `layout` has another type.
            ImportError: If pyarrow is not installed.

        Example:
            ```python
            table = batch.to_arrow("price f64, size u32")
            ```
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    @property
    def payload(self) -> memoryview:
        """All payloads, without gaps between them: a read-only memoryview of bytes."""
    @property
    def offsets(self) -> memoryview[int]:
        """The offset of each message in `payload`, and of the end of the last message.

        A memoryview of 32-bit integers (format `i`), with one more item than there are messages.
        """
    @property
    def positions(self) -> memoryview[int]:
        """The stream position after each message, in bytes: a memoryview of 64-bit integers (format `q`)."""
    @property
    def session_ids(self) -> memoryview[int]:
        """The session id of each message: a memoryview of 32-bit integers (format `i`)."""
    @property
    def reserved_values(self) -> memoryview[int]:
        """The reserved value of each message's first frame: a memoryview of 64-bit integers (format `q`)."""
    @property
    def stream_id(self) -> int:
        """Stream id of all messages."""

@final
class Batches:
    """An iterator over batches, which `Subscription.batches` returns.

    One thread at a time may use it: it is not thread-safe.
    """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...

def _batch_of_columns(
    stream_id: int, payload: bytes, offsets: bytes, positions: bytes, session_ids: bytes, reserved_values: bytes
) -> Batch:
    """Restores a pickled batch."""

"""The files of a driver, for tools that read them."""

from os import PathLike
from typing import Self, final

from aeron._stubs.counters import CounterSnapshot

@final
class CncFile:
    """The CnC file of a live or dead driver.

    The file is mapped read-only, and no client is created. Thread-safe. The end of a `with` block closes
    the file.

    Args:
        aeron_dir: Directory of the driver.
        timeout_ms: Milliseconds to wait for a complete file.

    Raises:
        DriverTimeoutError: If there is no complete file within `timeout_ms`.
        DriverError: If the file has another version or is damaged.

    Example:
        ```python
        with aeron.CncFile(driver.dir) as cnc:
            print(cnc.pid, len(cnc.counters()))
        ```
    """
    def __new__(cls, aeron_dir: str | PathLike[str], *, timeout_ms: int = 1000) -> Self: ...
    def counters(self) -> list[CounterSnapshot]:
        """Takes a snapshot of all allocated counters.

        Returns:
            A list in the order of the counter ids.

        Raises:
            InvalidArgumentError: If the file is closed.
        """
    def errors(self, *, since_ms: int | None = None) -> list[ErrorObservation]:
        """Returns the distinct errors of the driver's error log.

        Args:
            since_ms: Milliseconds since the epoch. Errors that were last observed before this time are left out.
                `None` returns all errors.

        Returns:
            A list in the order of the first observation.

        Raises:
            InvalidArgumentError: If the file is closed.
        """
    def close(self) -> None:
        """Unmaps the file. All other methods then raise `InvalidArgumentError`. Idempotent."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    @property
    def version(self) -> int:
        """Version of the file's layout: `major << 16 | minor << 8 | patch`."""
    @property
    def pid(self) -> int:
        """Process id of the driver."""
    @property
    def start_timestamp_ms(self) -> int:
        """Start of the driver, in milliseconds since the epoch."""
    @property
    def heartbeat_ms(self) -> int:
        """Time of the driver's last heartbeat, in milliseconds since the epoch; -1 if the driver was closed normally."""
    @property
    def client_liveness_timeout_ns(self) -> int:
        """Nanoseconds without a keepalive after which the driver closes a client."""
    @property
    def max_counter_id(self) -> int:
        """The highest possible counter id."""

@final
class ErrorObservation:
    """A distinct error of an error log, with the number of its observations and the times of the first and the last.
    Immutable. Comparison and pickling use the values.
    """
    def __new__(
        cls,
        observation_count: int,
        first_observation_ms: int,
        last_observation_ms: int,
        text: str,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, int, str]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def observation_count(self) -> int:
        """Number of observations."""
    @property
    def first_observation_ms(self) -> int:
        """Time of the first observation, in milliseconds since the epoch."""
    @property
    def last_observation_ms(self) -> int:
        """Time of the last observation, in milliseconds since the epoch."""
    @property
    def text(self) -> str:
        """Text that the driver or archive logged."""

@final
class LossObservation:
    """The losses of one image. Immutable. Comparison and pickling use the values."""
    def __new__(
        cls,
        observation_count: int,
        total_bytes_lost: int,
        first_observation_ms: int,
        last_observation_ms: int,
        session_id: int,
        stream_id: int,
        channel: str,
        source: str,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, int, int, int, int, str, str]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def observation_count(self) -> int:
        """Number of gaps."""
    @property
    def total_bytes_lost(self) -> int:
        """Length of all gaps, in bytes."""
    @property
    def first_observation_ms(self) -> int:
        """Time of the first gap, in milliseconds since the epoch."""
    @property
    def last_observation_ms(self) -> int:
        """Time of the last gap, in milliseconds since the epoch."""
    @property
    def session_id(self) -> int:
        """Session id of the stream."""
    @property
    def stream_id(self) -> int:
        """Stream id."""
    @property
    def channel(self) -> str:
        """Channel of the subscription."""
    @property
    def source(self) -> str:
        """Address of the publisher, `ip:port`."""

@final
class LogFile:
    """The log file of a publication or image.

    The file is mapped read-only. Thread-safe. The end of a `with` block closes the file.

    Args:
        path: Path of the log file.

    Raises:
        OSError: If the file cannot be mapped.
        InvalidArgumentError: If the file is not a log.
    """
    def __new__(cls, path: str | PathLike[str]) -> Self: ...
    def position(self, term_id: int, term_offset: int) -> int:
        """Returns the stream position of an offset in a term.

        Args:
            term_id: Id of the term.
            term_offset: Offset in the term, in bytes.

        Returns:
            The position, in bytes.

        Raises:
            InvalidArgumentError: If the file is closed.
        """
    def frames(self, partition: int, *, scan_over_zeroes: bool = False) -> list[LogFrame]:
        """Returns the frames of a term.

        Without `scan_over_zeroes`, the list ends at the first gap or at the unused part of the term. The last
        item then describes all bytes from there to the end of the term.

        Args:
            partition: Index of the term in the log: 0, 1 or 2.
            scan_over_zeroes: Whether frames after a gap are included.

        Returns:
            A list in the order of their offsets.

        Raises:
            IndexRangeError: If `partition` is not 0, 1 or 2.
            InvalidArgumentError: If the file is closed.
        """
    def payload(self, partition: int, frame: LogFrame, limit: int) -> bytes:
        """Copies the payload of a frame.

        Args:
            partition: Index of the term in the log: 0, 1 or 2.
            frame: A frame that `frames` returned.
            limit: Maximum number of bytes to copy.

        Returns:
            The bytes, at most `limit`.

        Raises:
            IndexRangeError: If `partition` is not 0, 1 or 2.
            InvalidArgumentError: If the file is closed.
        """
    def close(self) -> None:
        """Unmaps the file. Idempotent.

        All other methods then raise `InvalidArgumentError`. So do all attributes except `initial_term_id`,
        `term_length`, `mtu_length` and `page_size`.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    @property
    def is_connected(self) -> bool:
        """Whether the publication has subscribers."""
    @property
    def active_term_count(self) -> int:
        """Number of the active term; the first term of the stream has the number 0."""
    @property
    def end_of_stream_position(self) -> int:
        """Position at which the stream ended, in bytes; 2**63 - 1 before its end."""
    @property
    def initial_term_id(self) -> int:
        """Id of the stream's first term."""
    @property
    def term_length(self) -> int:
        """Length of each of the three terms, in bytes."""
    @property
    def mtu_length(self) -> int:
        """Length of the longest frame, in bytes."""
    @property
    def page_size(self) -> int:
        """Page size in bytes. The length of the file is a multiple of the page size."""
    @property
    def default_header(self) -> str:
        """The header with which the driver creates padding frames, as text."""
    @property
    def raw_tails(self) -> list[int]:
        """The tails of the three terms: `term id << 32 | term offset`."""

@final
class LogFrame:
    """The offset of a frame, and its header as text. Immutable. Comparison and pickling use the values."""
    def __new__(cls, term_offset: int, payload_length: int, header: str) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, str]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def term_offset(self) -> int:
        """Offset of the frame in its term, in bytes."""
    @property
    def payload_length(self) -> int:
        """Length of the payload, in bytes."""
    @property
    def header(self) -> str:
        """The fields of the header, as text."""

def read_error_log(data: bytes, offset: int = 0, *, since_ms: int | None = None) -> list[ErrorObservation]:
    """Returns the distinct errors in a copy of an error log.

    Args:
        data: The copy.
        offset: Offset of the log in `data`, in bytes.
        since_ms: Milliseconds since the epoch. Errors that were last observed before this time are left out.
            `None` returns all errors.

    Returns:
        A list in the order of the first observation.

    Raises:
        InvalidArgumentError: If `offset` is beyond the end of `data`.
    """

def read_loss_report(aeron_dir: str | PathLike[str]) -> list[LossObservation]:
    """Returns the losses of a live or dead driver's images.

    Args:
        aeron_dir: Directory of the driver.

    Returns:
        A list with one item for each image, in the order of the first gap.

    Raises:
        FileNotFoundError: If the directory has no loss report.
    """

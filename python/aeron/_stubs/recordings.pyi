"""Descriptions of recordings, and signals about them."""

from collections.abc import Iterable
from typing import Literal, Self, TypeAlias, final

from aeron._stubs.pipeline import ColumnBatch

_Signal: TypeAlias = Literal["START", "STOP", "EXTEND", "REPLICATE", "MERGE", "SYNC", "DELETE", "REPLICATE_END"]

@final
class Recording:
    """An archive's description of a recording.

    Positions are in bytes. Immutable. Comparison and pickling use the values.
    """
    def __new__(
        cls,
        recording_id: int,
        start_position: int,
        stop_position: int | None,
        start_timestamp_ms: int,
        stop_timestamp_ms: int | None,
        session_id: int,
        stream_id: int,
        stripped_channel: str,
        original_channel: str,
        source_identity: str,
        initial_term_id: int,
        term_buffer_length: int,
        segment_file_length: int,
        mtu_length: int,
    ) -> Self: ...
    def __getnewargs__(
        self,
    ) -> tuple[int, int, int | None, int, int | None, int, int, str, str, str, int, int, int, int]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def recording_id(self) -> int:
        """Id of the recording in its archive."""
    @property
    def start_position(self) -> int:
        """Position of the first byte of the recording."""
    @property
    def stop_position(self) -> int | None:
        """Position after the last byte; `None` if the recording is active."""
    @property
    def start_timestamp_ms(self) -> int:
        """Start of the recording, in milliseconds since the epoch."""
    @property
    def stop_timestamp_ms(self) -> int | None:
        """End of the recording, in milliseconds since the epoch; `None` if the recording is active."""
    @property
    def session_id(self) -> int:
        """Session id of the stream."""
    @property
    def stream_id(self) -> int:
        """Stream id."""
    @property
    def stripped_channel(self) -> str:
        """Channel, without the parameters that do not identify the stream."""
    @property
    def original_channel(self) -> str:
        """Channel in the request that started the recording."""
    @property
    def source_identity(self) -> str:
        """Source of the image: `aeron:ipc`, or the address and port of the sender."""
    @property
    def initial_term_id(self) -> int:
        """Id of the stream's first term."""
    @property
    def term_buffer_length(self) -> int:
        """Length of a term, in bytes."""
    @property
    def segment_file_length(self) -> int:
        """Length of a segment file, in bytes."""
    @property
    def mtu_length(self) -> int:
        """Maximum length of a frame, in bytes."""
    @property
    def is_active(self) -> bool:
        """Whether the recording was active when the archive described it."""

@final
class RecordingSubscription:
    """An archive's subscription to streams that it records. Immutable. Comparison and pickling use the values."""
    def __new__(
        cls,
        subscription_id: int,
        stream_id: int,
        stripped_channel: str,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, str]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def subscription_id(self) -> int:
        """Id of the subscription. `AeronArchive.stop_recording` accepts it."""
    @property
    def stream_id(self) -> int:
        """Stream id."""
    @property
    def stripped_channel(self) -> str:
        """Channel of the subscription; it has the prefix `aeron-spy:` if the subscription is a spy."""

@final
class RecordingSignal:
    """An event of a recording. Immutable. Comparison and pickling use the values."""
    def __new__(
        cls,
        signal: _Signal,
        recording_id: int,
        subscription_id: int,
        position: int,
        correlation_id: int,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[_Signal, int, int, int, int]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def signal(self) -> _Signal:
        """`START`, `STOP`, `EXTEND`, `REPLICATE`, `MERGE`, `SYNC`, `DELETE` or `REPLICATE_END`."""
    @property
    def recording_id(self) -> int:
        """Id of the recording; -1 if a replication ended before it had a recording."""
    @property
    def subscription_id(self) -> int:
        """Id of the archive's subscription; -1 if the signal belongs to no subscription."""
    @property
    def position(self) -> int:
        """Position of the recording, in bytes; -1 with `DELETE` and `REPLICATE_END`."""
    @property
    def correlation_id(self) -> int:
        """Correlation id of the request, or the id of the replication."""

@final
class RecordingSignals:
    """An iterator over recording signals, which `AeronArchive.signals` returns.

    Thread-safe: if several threads use it, each signal goes to one of them.
    """
    def __iter__(self) -> Self: ...
    def __next__(self) -> RecordingSignal: ...

def _recording_columns(recordings: Iterable[Recording]) -> ColumnBatch:
    """Returns a record batch with a row for each recording and a column for each field of a recording."""

FROM_LIVE: int

FROM_START: int

REPLAY_ALL_AND_FOLLOW: int

REPLAY_ALL_AND_STOP: int

"""Named readers, retention policies, and names and metadata of recordings."""

from typing import Literal, Self, TypeAlias, final

_Holder: TypeAlias = Literal["READER", "REPLAY", "CHANGE"]

@final
class NamedReader:
    """x"""
    def __new__(
        cls,
        recording_id: int,
        name: str,
        position: int,
        committed_timestamp_ms: int,
        max_age_ms: int | None,
        max_lag_bytes: int | None,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, str, int, int, int | None, int | None]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def recording_id(self) -> int:
        """x"""
    @property
    def name(self) -> str:
        """x"""
    @property
    def position(self) -> int:
        """x"""
    @property
    def committed_timestamp_ms(self) -> int:
        """x"""
    @property
    def max_age_ms(self) -> int | None:
        """x"""
    @property
    def max_lag_bytes(self) -> int | None:
        """x"""

@final
class RetentionPolicy:
    """x"""
    def __new__(
        cls,
        recording_id: int | None,
        stream_id: int | None,
        channel: str | None,
        max_bytes: int | None,
        max_age_ms: int | None,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int | None, int | None, str | None, int | None, int | None]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def recording_id(self) -> int | None:
        """x"""
    @property
    def stream_id(self) -> int | None:
        """x"""
    @property
    def channel(self) -> str | None:
        """x"""
    @property
    def max_bytes(self) -> int | None:
        """x"""
    @property
    def max_age_ms(self) -> int | None:
        """x"""

@final
class RetentionOutcome:
    """x"""
    def __new__(
        cls,
        recording_id: int,
        start_position: int,
        new_start_position: int,
        allowed_position: int,
        is_purge: bool,
        held_by: _Holder | None,
        reader: str | None,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, int, int, bool, _Holder | None, str | None]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def recording_id(self) -> int:
        """x"""
    @property
    def start_position(self) -> int:
        """x"""
    @property
    def new_start_position(self) -> int:
        """x"""
    @property
    def allowed_position(self) -> int:
        """x"""
    @property
    def is_purge(self) -> bool:
        """x"""
    @property
    def held_by(self) -> _Holder | None:
        """x"""
    @property
    def reader(self) -> str | None:
        """x"""

@final
class RecordingInfo:
    """x"""
    def __new__(
        cls,
        recording_id: int,
        name: str,
        metadata: bytes,
        predecessor_id: int | None,
        gap_from: int | None,
        gap_to: int | None,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, str, bytes, int | None, int | None, int | None]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def recording_id(self) -> int:
        """x"""
    @property
    def name(self) -> str:
        """x"""
    @property
    def metadata(self) -> bytes:
        """x"""
    @property
    def predecessor_id(self) -> int | None:
        """x"""
    @property
    def gap_from(self) -> int | None:
        """x"""
    @property
    def gap_to(self) -> int | None:
        """x"""

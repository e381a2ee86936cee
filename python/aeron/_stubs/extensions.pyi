"""Named readers, retention policies, names and metadata of recordings, and positions by time."""

from typing import Literal, Self, TypeAlias, final

_Holder: TypeAlias = Literal["READER", "REPLAY", "CHANGE", "COPY", "CLOCK"]

@final
class AuthenticatingSession:
    """A client that wants to connect to an `Archive`. Immutable. Comparison and pickling use the values."""
    def __new__(cls, control_session_id: int, source: str, challenge: bytes | None) -> Self: ...
    def __getnewargs__(self) -> tuple[int, str, bytes | None]: ...
    def __hash__(self) -> int: ...
    @property
    def control_session_id(self) -> int:
        """Id of the control session."""
    @property
    def source(self) -> str:
        """IP address of the client's host without port; `client 42` for the client with this id that uses the
        driver of the archive over IPC.
        """
    @property
    def challenge(self) -> bytes | None:
        """The challenge to which the credentials respond; `None` for the first credentials."""

@final
class AuthenticationDecision:
    """The decision of an authenticator: `accept`, `challenge` or `reject`. Immutable. Comparison and pickling use the
    values.
    """
    def __new__(cls, kind: str, data: bytes) -> Self: ...
    def __getnewargs__(self) -> tuple[str, bytes]: ...
    def __hash__(self) -> int: ...
    @property
    def kind(self) -> str:
        """`ACCEPT`, `CHALLENGE` or `REJECT`."""
    @property
    def data(self) -> bytes:
        """Name of the user, or the challenge."""
    @staticmethod
    def accept(name: str | bytes | None = None) -> AuthenticationDecision:
        """Accepts the client.

        Args:
            name: Name of the user as str, or its bytes. If the archive has a `users_file`, the user of this name in the
                file has the role; a name that is not in the file may send no request.

        Returns:
            The decision.
        """
    @staticmethod
    def challenge(data: bytes) -> AuthenticationDecision:
        """Sends a challenge to the client. The function is called again with the client's response.

        Args:
            data: The challenge. It should be random: a response to a known challenge can be repeated.

        Returns:
            The decision.
        """
    @staticmethod
    def reject() -> AuthenticationDecision:
        """Rejects the client.

        Returns:
            The decision.
        """

@final
class NamedReader:
    """A reader of a recording that stores its position in the archive.

    Immutable. Comparison and pickling use the values.
    """
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
        """Id of the recording."""
    @property
    def name(self) -> str:
        """Name, unique for the recording."""
    @property
    def position(self) -> int:
        """Position up to which the reader has processed the recording, in bytes."""
    @property
    def committed_timestamp_ms(self) -> int:
        """Time of the last commit, in milliseconds since the epoch."""
    @property
    def max_age_ms(self) -> int | None:
        """Milliseconds without a commit after which the reader expires; `None` if there is no limit."""
    @property
    def max_lag_bytes(self) -> int | None:
        """Maximum number of bytes recorded after the position. With more bytes, the reader expires. `None` if there is
        no limit.
        """

@final
class RetentionPolicy:
    """Limits for one recording, or for all recordings that match. Immutable. Comparison and pickling use the values."""
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
        """Id of the recording; `None` if the policy is for all recordings that match."""
    @property
    def stream_id(self) -> int | None:
        """Stream id of the recordings; `None` if all streams match."""
    @property
    def channel(self) -> str | None:
        """Text that the original channel of the recordings contains; `None` if all channels match."""
    @property
    def max_bytes(self) -> int | None:
        """Maximum number of bytes of all recordings of the policy together; `None` if there is no limit."""
    @property
    def max_age_ms(self) -> int | None:
        """Maximum age of the data in milliseconds; `None` if there is no limit."""

@final
class RetentionOutcome:
    """A part of a recording that retention has deleted, or would delete.

    Immutable. Comparison and pickling use the values. Positions are in bytes.
    """
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
        """Id of the recording."""
    @property
    def start_position(self) -> int:
        """Start position before the deletion."""
    @property
    def new_start_position(self) -> int:
        """Start position after the deletion; the stop position if the whole recording is deleted."""
    @property
    def allowed_position(self) -> int:
        """Start position after the deletion if nothing held back data. `held_by` lists the possible reasons."""
    @property
    def is_purge(self) -> bool:
        """Whether the whole recording is deleted."""
    @property
    def held_by(self) -> _Holder | None:
        """The reason why data stays that the policy would delete: `READER`, `REPLAY`, `CHANGE`, `COPY` or `CLOCK`.
        `CHANGE`: a deletion, a migration, a start or an extension of the recording is in progress. `COPY`: a
        segment has no copy in object storage yet. `CLOCK`: the wall clock is not trusted. `None` if no such data
        stays.
        """
    @property
    def reader(self) -> str | None:
        """Name of the reader, if a reader keeps data; otherwise `None`."""

@final
class RecordingInfo:
    """Name, metadata and link of a recording. Immutable. Comparison and pickling use the values."""
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
        """Id of the recording."""
    @property
    def name(self) -> str:
        """Name, unique in the archive; empty if the recording has no name."""
    @property
    def metadata(self) -> bytes:
        """Metadata; empty if the recording has no metadata."""
    @property
    def predecessor_id(self) -> int | None:
        """Id of the earlier recording of the same stream that this recording continues; `None` if there is none."""
    @property
    def gap_from(self) -> int | None:
        """Position at which the earlier recording ends, in bytes; `None` if there is no earlier recording."""
    @property
    def gap_to(self) -> int | None:
        """Position at which this recording begins, in bytes; `None` if there is no earlier recording, or if the
        earlier recording is of another session.
        """

@final
class CopiedRange:
    """The parts of a recording that are on the archive's disk and in object storage.

    Immutable; pickled and compared by its values. Positions are in bytes.
    """
    def __new__(
        cls, recording_id: int, start_position: int, local_start_position: int, copied_position: int
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, int, int]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def recording_id(self) -> int:
        """Id of the recording."""
    @property
    def start_position(self) -> int:
        """First position that can be replayed. It is in object storage, if it is before the local start position."""
    @property
    def local_start_position(self) -> int:
        """First position on the disk: the start position in the catalog."""
    @property
    def copied_position(self) -> int:
        """Position up to which all segments have verified copies, from the start position on."""

@final
class FoundPosition:
    """A position of a recording that was found by time. Immutable. Comparison and pickling use the values."""
    def __new__(cls, recording_id: int, position: int, timestamp_us: int | None, is_approximate: bool) -> Self: ...
    def __getnewargs__(self) -> tuple[int, int, int | None, bool]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @property
    def recording_id(self) -> int:
        """Id of the recording."""
    @property
    def position(self) -> int:
        """Position between two messages, in bytes."""
    @property
    def timestamp_us(self) -> int | None:
        """Arrival time of the first message after the position, in microseconds since the epoch. `None` if the time is
        not known, or if there is no such message.
        """
    @property
    def is_approximate(self) -> bool:
        """Whether the position is only the start or end of a segment, because the archive has no index for the time."""

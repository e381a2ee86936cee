"""The files of an archive, for the command line."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Self, final

from aeron._stubs.driver_files import ErrorObservation
from aeron._stubs.extensions import CopiedRange
from aeron._stubs.pipeline import ColumnBatch
from aeron._stubs.recordings import Recording
from aeron.types import MalformedTreatment

@final
class _ArchiveMark:
    """Contents of the mark file of an archive."""
    @property
    def path(self) -> Path: ...
    @property
    def version(self) -> int: ...
    @property
    def activity_timestamp_ms(self) -> int: ...
    @property
    def start_timestamp_ms(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def archive_id(self) -> int: ...
    @property
    def control_stream_id(self) -> int: ...
    @property
    def local_control_stream_id(self) -> int: ...
    @property
    def events_stream_id(self) -> int: ...
    @property
    def error_buffer_length(self) -> int: ...
    @property
    def control_channel(self) -> str: ...
    @property
    def local_control_channel(self) -> str: ...
    @property
    def events_channel(self) -> str: ...
    @property
    def aeron_directory(self) -> str: ...
    @property
    def is_active(self) -> bool: ...
    @property
    def errors(self) -> list[ErrorObservation]: ...

@final
class _CatalogEntry:
    """An entry of the catalog. It may be valid, invalid or deleted."""
    @property
    def state(self) -> str: ...
    @property
    def length(self) -> int: ...
    @property
    def checksum(self) -> int: ...
    @property
    def control_session_id(self) -> int: ...
    @property
    def correlation_id(self) -> int: ...
    @property
    def recording(self) -> Recording: ...

@final
class _Verification:
    """The result of the verification of a recording."""
    @property
    def recording_id(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def recorded_stop_position(self) -> int: ...
    @property
    def torn_file(self) -> str | None:
        """Name of the segment file whose last fragment may be torn; `None` if there is no such fragment, or if the index
        proves that the fragment was not acknowledged.
        """
    @property
    def torn_position(self) -> int | None:
        """Position at which the fragment that may be torn begins."""
    def stop_position(self, keep_torn: bool) -> int:
        """Returns the stop position in the files. A fragment that may be torn counts if `keep_torn` is set."""
    def problem(self, keep_torn: bool) -> str | None:
        """Returns the reason why the recording is broken; `None` if it is not. A fragment that may be torn counts as
        recorded if `keep_torn` is set.
        """

@final
class _Compaction:
    """Counts of the entries, bytes and files that a compaction removed."""
    @property
    def entries(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def files(self) -> int: ...

@final
class _RecordedFrame:
    """A frame of a recording."""
    @property
    def position(self) -> int: ...
    @property
    def end_position(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def is_padding(self) -> bool: ...
    @property
    def reserved_value(self) -> int: ...
    @property
    def payload(self) -> bytes: ...

@final
class _RecordedFrames:
    """An iterator over the frames of a recording."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _RecordedFrame: ...

@final
class _RecordedRows:
    """An iterator over record batches with the rows of a recording's messages.

    The rows are from all messages that begin in the range, in the order of their positions. Thread-safe. Batches are
    decoded without the GIL.
    """
    def __new__(
        cls,
        directory: str | PathLike[str],
        recording_id: int,
        *,
        from_position: int | None = None,
        to_position: int | None = None,
        layout: str | None = None,
        text: bool = False,
        columns: Sequence[str] | None = None,
        malformed: MalformedTreatment = "fail",
        verify_checksums: bool = True,
        sbe: str | None = None,
    ) -> Self: ...
    @property
    def recording(self) -> Recording:
        """The recording, as the catalog describes it."""
    @property
    def from_position(self) -> int:
        """Position at which the range begins."""
    @property
    def to_position(self) -> int:
        """Position at which the range ends."""
    @property
    def position(self) -> int:
        """Position up to which all complete messages were returned."""
    @property
    def malformed(self) -> int:
        """Number of malformed messages and records so far: left out, or kept as rows without values."""
    @property
    def skipped(self) -> int:
        """Number of messages so far that were left out because they have another template or schema."""
    @property
    def unknown(self) -> int:
        """Number of values of enums so far that the schema does not know. They are null."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> ColumnBatch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class _ArchiveFiles:
    """The files of an archive. If `write` is set, no archive can use the directory until the end of the `with` block."""
    def __new__(cls, directory: str | PathLike[str], *, write: bool = False) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    @property
    def capacity(self) -> int: ...
    def grow(self, capacity: int) -> None: ...
    def entries(self) -> list[_CatalogEntry]: ...
    def copied_ranges(self) -> list[CopiedRange]:
        """Returns the ranges of the recordings with copies in object storage."""
    def entry(self, recording_id: int) -> _CatalogEntry: ...
    def frames(self, recording_id: int, *, since_us: int | None = None, until_us: int | None = None) -> _RecordedFrames:
        """Returns the frames of a recording, or of a range of time in microseconds since the epoch."""
    def frame_checksum(self, recording_id: int) -> str | None:
        """Returns the checksum of a recording's frames: its name, ``"no checksums"``, or `None` if no frame can be read."""
    def mark(self, recording_id: int, is_valid: bool) -> bool: ...
    def segment_bytes(self, recording_id: int, all_segments: bool) -> int: ...
    def verify(
        self, recording_id: int, all_segments: bool, checksum: str | None, on_progress: Callable[[int], object]
    ) -> _Verification: ...
    def repair(self, verification: _Verification, keep_torn: bool) -> str:
        """Corrects the catalog entry of the recording. Returns its new state."""
    def write_checksums(
        self, recording_id: int, checksum: str, all_segments: bool, on_progress: Callable[[int], object]
    ) -> int:
        """Writes the checksums of frames. Returns the number of these frames."""
    def orphans(self, recording_id: int | None) -> list[str]: ...
    def delete_orphan(self, name: str) -> None: ...
    def compact(self) -> _Compaction: ...

def _rebuild_archive_catalog(
    directory: str | PathLike[str], channel: str | None, on_progress: Callable[[int], object]
) -> tuple[list[tuple[int, list[str]]], list[tuple[int, str]]]:
    """Writes a lost catalog again from the segment files of an archive. Returns the recordings with notes about their
    entries, and the recordings that were left out with the reason.
    """

def _read_archive_mark(directory: str | PathLike[str]) -> _ArchiveMark | None:
    """Reads the mark file of the archive in `directory`. Returns `None` if there is no mark file.

    The mark file may be in another directory. A link file in `directory` then contains the path of that directory.
    """

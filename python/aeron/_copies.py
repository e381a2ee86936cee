"""`Copies`: looks up where recordings begin, if object storage has segments that the archive's disk no longer has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron.exceptions import NotSupportedByArchiveError

if TYPE_CHECKING:
    from aeron._aeron import AeronArchive, Recording

__all__ = ["Copies"]


class Copies:
    """Looks up the first positions of recordings in an archive.

    An archive of another project has no copies. It gets only one request, because its refusal takes a second.
    """

    def __init__(self, archive: AeronArchive) -> None:
        self._archive = archive
        self._is_supported = True

    def start_of(self, recording: Recording) -> int:
        """Returns the first position that the archive can replay, in object storage or on its disk."""
        on_disk = recording.start_position
        if on_disk == 0 or not self._is_supported:
            return on_disk
        try:
            ranges = self._archive.list_copied_ranges(recording_id=recording.recording_id)
        except NotSupportedByArchiveError:
            self._is_supported = False
            return on_disk
        return min((one.start_position for one in ranges), default=on_disk)

"""`Links`: looks up recordings that continue an earlier recording. An archive begins such a recording if it did not run
for a while and the publisher continued.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron.exceptions import NotSupportedByArchiveError

if TYPE_CHECKING:
    from aeron._aeron import AeronArchive, Recording, RecordingInfo

__all__ = ["Links"]


class Links:
    """Looks up the links of recordings in an archive. The link of each recording is requested once.

    An archive of another project has no links, and its refusal of a request for links takes a second. So it gets only
    one such request.
    """

    def __init__(self, archive: AeronArchive) -> None:
        self._archive = archive
        self._known: dict[int, RecordingInfo | None] = {}
        self._is_supported = True

    def chain(self, recording: Recording) -> list[Recording]:
        """Returns a recording and the recordings that continue it, the oldest first."""
        chain = [recording]
        while (successor := self._successor(chain[-1])) is not None:
            chain.append(successor)
        return chain

    def _successor(self, recording: Recording) -> Recording | None:
        if recording.stop_position is None or not self._is_supported:
            return None
        # A link joins recordings of one session. The later recording has the higher id.
        first_id, stream_id = recording.recording_id + 1, recording.stream_id
        # With the empty text, which every channel contains, the archive itself selects the stream.
        for later in self._archive.list_recordings(channel="", stream_id=stream_id, from_recording_id=first_id):
            is_candidate = later.session_id == recording.session_id
            link = self._link(later) if is_candidate else None
            if link is not None and link.predecessor_id == recording.recording_id:
                return later
        return None

    def _link(self, recording: Recording) -> RecordingInfo | None:
        recording_id = recording.recording_id
        if recording_id not in self._known and self._is_supported:
            try:
                found = self._archive.list_recording_info(recording_id=recording_id)
            except NotSupportedByArchiveError:
                self._is_supported = False
                return None
            self._known[recording_id] = next((one for one in found if one.predecessor_id is not None), None)
        return self._known.get(recording_id)

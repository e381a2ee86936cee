"""`ReaderCommits`: stores the position of a named reader in the archive without waiting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from aeron.exceptions import InvalidPositionError

if TYPE_CHECKING:
    from aeron._aeron import AeronArchive, PendingOperation

__all__ = ["ReaderCommits"]


class ReaderCommits:
    """Stores the position of a named reader in the archive, one request at a time."""

    def __init__(self, archive: AeronArchive, name: str, max_age_ms: int | None, max_lag_bytes: int | None) -> None:
        self._archive = archive
        self._name = name
        self._limits: dict[str, Any] = {"max_age_ms": max_age_ms, "max_lag_bytes": max_lag_bytes}
        self._wanted: tuple[int, int] | None = None
        self._sent: tuple[int, int] | None = None
        self._pending: PendingOperation[int] | None = None
        self._not_before = 0.0
        self.is_refused = False
        """Whether the archive refused the last position, because the recording had not reached it yet."""

    def use(self, archive: AeronArchive) -> None:
        """Uses another connection to the archive. The next call sends the last position again, because a response may
        have been lost."""
        self._archive = archive
        self._pending = self._sent = None

    def stored_in(self, recording_ids: list[int]) -> dict[int, int]:
        """Returns the stored positions of the reader, by recording id."""
        readers = self._archive.list_readers(name=self._name)
        return {one.recording_id: one.position for one in readers if one.recording_id in recording_ids}

    def store(self, recording_id: int, position: int) -> None:
        """Requests that the archive stores a position, and does not wait. The archive refuses a position that it has
        not recorded yet. Later calls then repeat the request."""
        self._wanted = (recording_id, position)
        self._advance()

    def remove(self, recording_id: int) -> None:
        """Removes the named reader from a recording that it has read to the end."""
        self._archive.remove_reader(recording_id, self._name)

    def wait(self, timeout: float) -> bool:
        """Waits until the position is stored, at most `timeout` seconds. Returns whether it is stored."""
        deadline = time.monotonic() + timeout
        while self._advance():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.001)
        return True

    def forget(self) -> None:
        """Sends no more requests for a position that is not stored yet."""
        self._wanted = None

    def _advance(self) -> bool:
        """Sends a request or processes its response. Returns `True` while the position is not stored yet."""
        if self._pending is not None:
            if not self._pending.done():
                return True
            pending, self._pending = self._pending, None
            try:
                pending.result(0)
                self.is_refused = False
            except InvalidPositionError:
                # The archive refuses a position that it has not recorded yet: the live stream is ahead of the
                # recording.
                self._sent = None
                self.is_refused = True
                self._not_before = time.monotonic() + 0.01
        if self._sent == self._wanted or self._wanted is None:
            return False
        if time.monotonic() >= self._not_before:
            self._sent = self._wanted
            self._pending = self._archive.async_commit_reader(
                self._wanted[0], self._name, self._wanted[1], **self._limits
            )
        return True

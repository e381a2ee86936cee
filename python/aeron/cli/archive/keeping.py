"""Named readers and retention of a running archive at one moment: lags of readers, and data that is deleted next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import aeron
from aeron._pipeline import _policy_of
from aeron.cli.archive.reader import reader_as_json
from aeron.cli.archive.retention import policy_as_json
from aeron.cli.text import printable


@dataclass(frozen=True)
class Keeping:
    """The named readers of a recording, and what its retention policy deletes next."""

    readers: tuple[aeron.NamedReader, ...] = ()
    """The readers, the slowest first."""
    policy: aeron.RetentionPolicy | None = None
    """The policy of the recording."""
    room_bytes: int | None = None
    """Bytes that may still be recorded before `max_bytes` of the policy is reached. Negative above that limit."""
    outcome: aeron.RetentionOutcome | None = None
    """The part that the policy deletes now, or the reader or replay that prevents the deletion."""


class KeepingSampler:
    """Requests readers, policies and due deletions. An archive of another project is asked once."""

    def __init__(self, archive: aeron.AeronArchive) -> None:
        self._archive = archive
        self._is_supported = True

    def sample(self, recorded: Mapping[int, tuple[aeron.Recording, int]]) -> dict[int, Keeping] | None:
        """Returns readers and retention by recording id; `None` if the archive does not support them.

        Args:
            recorded: All recordings of the archive with their recorded positions, by id.
        """
        if not self._is_supported:
            return None
        try:
            readers = self._archive.list_readers()
            policies = self._archive.list_retention()
            outcomes = self._archive.apply_retention(dry_run=True) if policies else []
        except aeron.NotSupportedByArchiveError:
            self._is_supported = False
            return None
        return _by_recording(recorded, readers, policies, {each.recording_id: each for each in outcomes})


def _by_recording(
    recorded: Mapping[int, tuple[aeron.Recording, int]],
    readers: Iterable[aeron.NamedReader],
    policies: list[aeron.RetentionPolicy],
    outcomes: Mapping[int, aeron.RetentionOutcome],
) -> dict[int, Keeping]:
    chosen = {id_: _policy_of(policies, recording) for id_, (recording, _) in recorded.items()}
    # A policy limits the bytes of all its recordings together.
    used: dict[aeron.RetentionPolicy, int] = {}
    for id_, policy in chosen.items():
        if policy is not None:
            recording, position = recorded[id_]
            used[policy] = used.get(policy, 0) + position - recording.start_position
    found: dict[int, Keeping] = {}
    for id_, policy in chosen.items():
        of_recording = sorted((each for each in readers if each.recording_id == id_), key=lambda each: each.position)
        room = None if policy is None or policy.max_bytes is None else policy.max_bytes - used[policy]
        found[id_] = Keeping(tuple(of_recording), policy, room, outcomes.get(id_))
    return found


def lag_cell(keeping: Keeping, position: int) -> str:
    """Returns the lag of the slowest reader in bytes with its name, and the number of other readers."""
    if not keeping.readers:
        return ""
    slowest, *others = keeping.readers
    more = f" (+{len(others)})" if others else ""
    return f"{position - slowest.position:,} {printable(slowest.name)}{more}"


def retention_cell(keeping: Keeping) -> str:
    """Returns what retention does next."""
    policy, outcome = keeping.policy, keeping.outcome
    if policy is None:
        return ""
    if outcome is not None:
        freed = outcome.new_start_position - outcome.start_position
        if freed or outcome.is_purge:
            return f"deletes {freed:,}"
        holder = (outcome.held_by or "").lower()
        return f"held by {holder}" if outcome.reader is None else f"held by {holder} {printable(outcome.reader)}"
    limits = []
    if keeping.room_bytes is not None:
        # Only whole segments are deleted, so the bytes may be above the limit by less than a segment.
        limits.append(f"after {max(keeping.room_bytes, 0):,} bytes")
    if policy.max_age_ms is not None:
        limits.append(f"after {policy.max_age_ms:,} ms")
    return " or ".join(limits)


def keeping_as_json(keeping: Keeping | None, position: int) -> dict[str, object]:
    """Returns readers and retention of a recording. Both are null if the archive does not support them."""
    if keeping is None:
        return {"readers": None, "retention": None}
    readers = [reader_as_json(each) | {"lag_bytes": position - each.position} for each in keeping.readers]
    if keeping.policy is None:
        return {"readers": readers, "retention": None}
    outcome = keeping.outcome
    return {
        "readers": readers,
        "retention": {
            "policy": policy_as_json(keeping.policy),
            "room_bytes": keeping.room_bytes,
            "deletes_bytes": 0 if outcome is None else outcome.new_start_position - outcome.start_position,
            "is_purge": outcome is not None and outcome.is_purge,
            "held_by": None if outcome is None else outcome.held_by,
            "reader": None if outcome is None else outcome.reader,
        },
    }

"""The state of an exactly-once sink. The archive keeps the state as metadata of the query's recording."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from aeron.spark.errors import AeronSparkError

__all__ = ["MAX_STATE_LENGTH", "DecidedBatch", "SinkState"]

MAX_STATE_LENGTH = 16 * 1024
"""Maximum length of the state in bytes: the limit of an archive for metadata."""


@dataclass(frozen=True)
class DecidedBatch:
    """A batch, and the staged recordings of which it consists.

    After the archive has stored this decision, the batch is appended completely, even if processes are killed.

    `position` is the end of the recording before the batch, in bytes. `recordings` are the ids of the staged recordings
    in the order of the partitions, and `messages` is the number of messages in all of them.
    """

    batch_id: int
    position: int
    messages: int
    recordings: tuple[int, ...]


@dataclass(frozen=True)
class SinkState:
    """The last batch that is in the recording completely, and the batch that is being appended after it.

    `position` is the end of the recording after the last complete batch, in bytes. It is `None` before the first batch,
    and in a state that an earlier version has stored.
    """

    batch_id: int = -1
    decided: DecidedBatch | None = None
    position: int | None = None

    @property
    def minimum_position(self) -> int:
        """Position up to which the recording has rows, in bytes. If the recording ends earlier, rows were removed."""
        known = self.position if self.decided is None else self.decided.position
        return 0 if known is None else known

    def decide(self, batch: DecidedBatch) -> SinkState:
        """Returns the state in which this batch is decided and not yet complete."""
        return replace(self, decided=batch)

    def complete(self, position: int) -> SinkState:
        """Returns the state after the decided batch was appended, up to a position in bytes."""
        return self if self.decided is None else SinkState(self.decided.batch_id, position=position)

    def encode(self) -> bytes:
        """Returns the state as JSON.

        Raises :class:`~aeron.spark.errors.AeronSparkError` if the text is longer than :data:`MAX_STATE_LENGTH`.
        """
        value: dict[str, object] = {"spark-sink": 1, "batch": self.batch_id}
        if self.position is not None:
            value["position"] = self.position
        if (decided := self.decided) is not None:
            value["decided"] = {
                "batch": decided.batch_id,
                "position": decided.position,
                "messages": decided.messages,
                "recordings": ",".join(_runs(decided.recordings)),
            }
        text = json.dumps(value, separators=(",", ":")).encode()
        if len(text) > MAX_STATE_LENGTH:
            count = 0 if decided is None else len(decided.recordings)
            raise AeronSparkError(
                f"the list of the {count} partitions with rows takes {len(text)} bytes, more than {MAX_STATE_LENGTH}: "
                "use fewer partitions by coalesce(n) before writeStream"
            )
        return text

    @classmethod
    def decode(cls, metadata: bytes) -> SinkState:
        """Parses the text that :meth:`encode` returned. Raises ``ValueError`` for any other text."""
        try:
            value = json.loads(metadata)
            if value["spark-sink"] != 1:
                raise ValueError(f"unknown version {value['spark-sink']}")
            batch_id, decided = int(value["batch"]), value.get("decided")
            end = value.get("position")
            state = cls(batch_id, position=None if end is None else int(end))
            if decided is None:
                return state
            decided_id, position, messages = (int(decided[name]) for name in ("batch", "position", "messages"))
            return state.decide(DecidedBatch(decided_id, position, messages, tuple(_ids(decided["recordings"]))))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no state of a sink: {error!r}") from error


def _runs(ids: Iterable[int]) -> Iterator[str]:
    """Yields texts of ascending runs, such as ``3-7`` and ``9``, in the order of the ids."""
    first = last = None
    for number in ids:
        if first is not None and last is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            yield f"{first}" if first == last else f"{first}-{last}"
        first = last = number
    if first is not None:
        yield f"{first}" if first == last else f"{first}-{last}"


def _ids(text: str) -> Iterator[int]:
    for run in filter(None, text.split(",")):
        match = re.fullmatch(r"([0-9]{1,19})(?:-([0-9]{1,19}))?", run)
        if match is None:
            raise ValueError(f"{run!r} is no range of recording ids")
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        if last - first > MAX_STATE_LENGTH * 1024:
            raise ValueError(f"{run!r} has too many recording ids")
        yield from range(first, last + 1)

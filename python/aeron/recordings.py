"""`Recordings`: a list of an archive's recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron._aeron import Recording
from aeron._pipeline import _recording_columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Recordings"]


class Recordings(tuple[Recording, ...]):
    """Recordings in the order of their ids: a tuple with `to_arrow`. Immutable, so thread-safe.

    Args:
        iterable: Objects of the class `Recording`.
    """

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """Returns an Arrow table with a row for each recording.

        Returns:
            A table with a column for each value of ``Recording``. Timestamps are milliseconds in UTC. For active
            recordings ``stop_position`` and ``stop_timestamp`` are null.

        Raises:
            ImportError: If pyarrow is not installed.
        """
        import pyarrow as pa

        return pa.Table.from_batches([pa.record_batch(_recording_columns(self))])

    def _repr_html_(self) -> str:
        """Returns the first recordings as an HTML table, for notebooks."""
        from aeron._html import of_recordings

        return of_recordings(self)

    def __repr__(self) -> str:
        """Returns the recordings as text."""
        return f"Recordings({list(self)!r})"


# Users import the class from `aeron`, so reprs and pickles name that module.
Recordings.__module__ = "aeron"

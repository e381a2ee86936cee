"""Listings of recordings of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron._aeron import Recording

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Recordings"]


class Recordings(tuple[Recording, ...]):
    """Recordings in the order of their ids: a tuple with :meth:`to_arrow`. Immutable, so thread-safe."""

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """Makes an Arrow table with a row for each recording; needs pyarrow.

        Returns:
            A table with a column for each attribute of ``Recording``. Timestamps are milliseconds in UTC. For active
            recordings ``stop_position`` and ``stop_timestamp`` are null.
        """
        import pyarrow as pa

        time = pa.timestamp("ms", tz="UTC")
        columns = {
            "recording_id": ("recording_id", pa.int64()),
            "start_timestamp": ("start_timestamp_ms", time),
            "stop_timestamp": ("stop_timestamp_ms", time),
            "start_position": ("start_position", pa.int64()),
            "stop_position": ("stop_position", pa.int64()),
            "session_id": ("session_id", pa.int32()),
            "stream_id": ("stream_id", pa.int32()),
            "stripped_channel": ("stripped_channel", pa.string()),
            "original_channel": ("original_channel", pa.string()),
            "source_identity": ("source_identity", pa.string()),
            "initial_term_id": ("initial_term_id", pa.int32()),
            "term_buffer_length": ("term_buffer_length", pa.int32()),
            "segment_file_length": ("segment_file_length", pa.int32()),
            "mtu_length": ("mtu_length", pa.int32()),
        }
        arrays = [pa.array([getattr(each, name) for each in self], kind) for name, kind in columns.values()]
        return pa.Table.from_arrays(arrays, names=list(columns))

    def __repr__(self) -> str:
        """The recordings."""
        return f"Recordings({list(self)!r})"

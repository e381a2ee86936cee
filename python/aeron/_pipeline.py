"""Private names of the native module for other modules of this package: data pipelines and tools for files.

Programs must not use these names: arguments and results may change with each release.
"""

from aeron._aeron import (
    ColumnBatch,
    Layout,
    LiveSource,
    PartitionReader,
    SharedPublications,
    SinkTask,
    _ArchiveFiles,
    _ArchiveMark,
    _CatalogEntry,
    _Compaction,
    _ended_archives,
    _left_directories,
    _read_archive_mark,
    _RecordedFrame,
    _RecordedFrames,
    _RecordedRows,
    _recording_columns,
    _Verification,
    plan_recordings,
)

__all__ = [
    "ColumnBatch",
    "Layout",
    "LiveSource",
    "PartitionReader",
    "SharedPublications",
    "SinkTask",
    "_ArchiveFiles",
    "_ArchiveMark",
    "_CatalogEntry",
    "_Compaction",
    "_RecordedFrame",
    "_RecordedFrames",
    "_RecordedRows",
    "_Verification",
    "_ended_archives",
    "_left_directories",
    "_read_archive_mark",
    "_recording_columns",
    "plan_recordings",
]

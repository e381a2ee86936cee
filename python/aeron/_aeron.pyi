"""The native module. Programs import ``aeron`` instead. Each concept has a stub file in ``aeron/_stubs``."""

from aeron._stubs.archive_client import AeronArchive, async_connect_archive, connect_archive
from aeron._stubs.archive_files import (
    _ArchiveFiles,
    _ArchiveMark,
    _CatalogEntry,
    _Compaction,
    _read_archive_mark,
    _RecordedFrame,
    _RecordedFrames,
    _Verification,
)
from aeron._stubs.archive_server import Archive, _ended_archives, aeronarchive_main
from aeron._stubs.batch import Batch, Batches, _batch_of_columns
from aeron._stubs.channel import ChannelUriBuilder
from aeron._stubs.client import Aeron, _close_all, async_connect
from aeron._stubs.counters import Counter, CounterSnapshot, CountersReader
from aeron._stubs.driver import (
    MediaDriver,
    _left_directories,
    aeronmd_main,
    default_directory,
    is_driver_active,
    request_driver_termination,
)
from aeron._stubs.driver_files import (
    CncFile,
    ErrorObservation,
    LogFile,
    LogFrame,
    LossObservation,
    read_error_log,
    read_loss_report,
)
from aeron._stubs.handlers import Action, FragmentAssembler, Header
from aeron._stubs.idle import (
    BackoffIdleStrategy,
    BusySpinIdleStrategy,
    IdleStrategy,
    NoOpIdleStrategy,
    SleepingIdleStrategy,
    SleepingMillisIdleStrategy,
    YieldingIdleStrategy,
)
from aeron._stubs.operations import PendingOperation, _Condition, _Timer
from aeron._stubs.persistent import PersistentBatches, PersistentSubscription
from aeron._stubs.pipeline import (
    ColumnBatch,
    Layout,
    LiveSource,
    PartitionReader,
    SharedPublications,
    SinkTask,
    plan_recordings,
)
from aeron._stubs.publication import BufferClaim, ExclusivePublication, Publication, PublicationErrorFrame
from aeron._stubs.recorded_publisher import RecordedPublisher
from aeron._stubs.recordings import (
    FROM_LIVE,
    FROM_START,
    REPLAY_ALL_AND_FOLLOW,
    REPLAY_ALL_AND_STOP,
    Recording,
    RecordingSignal,
    RecordingSignals,
    RecordingSubscription,
    _recording_columns,
)
from aeron._stubs.replay_merge import ReplayMerge
from aeron._stubs.subscription import Image, Subscription
from aeron._stubs.values import (
    __version__,
    _archive_settings,
    _channel_parameters,
    _driver_settings,
    parse_duration_ns,
    parse_size,
)

__all__ = [
    "FROM_LIVE",
    "FROM_START",
    "REPLAY_ALL_AND_FOLLOW",
    "REPLAY_ALL_AND_STOP",
    "Action",
    "Aeron",
    "AeronArchive",
    "Archive",
    "BackoffIdleStrategy",
    "Batch",
    "Batches",
    "BufferClaim",
    "BusySpinIdleStrategy",
    "ChannelUriBuilder",
    "CncFile",
    "ColumnBatch",
    "Counter",
    "CounterSnapshot",
    "CountersReader",
    "ErrorObservation",
    "ExclusivePublication",
    "FragmentAssembler",
    "Header",
    "IdleStrategy",
    "Image",
    "Layout",
    "LiveSource",
    "LogFile",
    "LogFrame",
    "LossObservation",
    "MediaDriver",
    "NoOpIdleStrategy",
    "PartitionReader",
    "PendingOperation",
    "PersistentBatches",
    "PersistentSubscription",
    "Publication",
    "PublicationErrorFrame",
    "RecordedPublisher",
    "Recording",
    "RecordingSignal",
    "RecordingSignals",
    "RecordingSubscription",
    "ReplayMerge",
    "SharedPublications",
    "SinkTask",
    "SleepingIdleStrategy",
    "SleepingMillisIdleStrategy",
    "Subscription",
    "YieldingIdleStrategy",
    "_ArchiveFiles",
    "_ArchiveMark",
    "_CatalogEntry",
    "_Compaction",
    "_Condition",
    "_RecordedFrame",
    "_RecordedFrames",
    "_Timer",
    "_Verification",
    "__version__",
    "_archive_settings",
    "_batch_of_columns",
    "_channel_parameters",
    "_close_all",
    "_driver_settings",
    "_ended_archives",
    "_left_directories",
    "_read_archive_mark",
    "_recording_columns",
    "aeronarchive_main",
    "aeronmd_main",
    "async_connect",
    "async_connect_archive",
    "connect_archive",
    "default_directory",
    "is_driver_active",
    "parse_duration_ns",
    "parse_size",
    "plan_recordings",
    "read_error_log",
    "read_loss_report",
    "request_driver_termination",
]

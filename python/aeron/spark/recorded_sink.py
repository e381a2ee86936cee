"""The exactly-once sink: ``df.writeStream`` into a recording of a running archive.

A task does not publish on the stream of the query's recording. It *stages* its rows: it publishes them on another
stream, and the archive records them in a separate recording. The commit of the batch (:class:`BatchCommit`) then runs
on the Spark driver's machine:

1. It opens the recording of the query. Only one process at a time can have this recording open.
2. It *decides* the batch: it stores the batch id and the ids of the staged recordings in the metadata of the recording.
   From then on, the batch has exactly these rows, even if Spark runs the batch again.
3. It appends the staged messages to the recording, and waits until all are recorded.
4. It stores that the batch is complete, and deletes the staged recordings of the batch.

If a commit is killed after the decision, the next commit counts the messages that were appended, and appends the
others. A complete batch is not decided again. So each row is in the recording once, and no appended row is ever
removed.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import aeron
from aeron._pipeline import SharedPublications
from aeron._staged import query_alias, staged_batch
from aeron.exceptions import (
    ActiveRecordingError,
    AeronError,
    AuthenticationRejectedError,
    BackPressureTimeoutError,
    NotSupportedByArchiveError,
    UnauthorisedActionError,
    UnknownRecordingError,
)
from aeron.spark.clients import client_settings, replay_channel
from aeron.spark.errors import AeronDataLossError, AeronOptionError, AeronSparkError
from aeron.spark.logs import logger
from aeron.spark.options import RecordedWriteOptions, recorded_write_options
from aeron.spark.payloads import payload_of
from aeron.spark.recorded_archive import (
    PURGE_TIMEOUT_S,
    connected,
    named_channel,
    purge_stopped,
    source_location,
    wait_recorded,
)
from aeron.spark.recorded_state import DecidedBatch, SinkState
from aeron.spark.recorded_target import RecordedTarget
from aeron.spark.sink import check_schema, reserved_value_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AeronRecordedStreamWriter", "BatchCommit", "StagedPartition", "TaskName", "stage"]

RETRY_TIMEOUT_S = 60.0
"""Seconds for which a failed commit is repeated, counted from the first error after the last progress of the commit."""

_RETRY_INTERVAL_S = 0.2

_FINAL = (AuthenticationRejectedError, UnauthorisedActionError)
"""Refusals that another attempt cannot change."""

_log = logger()


@dataclass(frozen=True)
class TaskName:
    """One attempt at one partition of a batch."""

    query: str
    batch_id: int
    partition: int
    attempt: int

    @property
    def alias(self) -> str:
        """Alias of the staged recording."""
        return f"{query_alias(self.query)}.{self.batch_id}.{self.partition}.{self.attempt}"


@dataclass(frozen=True)
class StagedPartition(WriterCommitMessage):
    """The rows that a task staged. `recording_id` is `None` if the partition has no rows."""

    task: TaskName
    recording_id: int | None
    rows: int
    messages: int
    bytes: int


# ---- tasks ----------------------------------------------------------------------------------------------------------


def stage(
    batches: Iterator[pa.RecordBatch], options: RecordedWriteOptions, reserved_value: str, task: TaskName
) -> StagedPartition:
    """Records the rows of a partition, and returns when the archive has recorded all of them."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return StagedPartition(task, None, 0, 0, 0)
    session_id = secrets.randbits(32) - 2**31
    channel = named_channel(options, task.alias, session_id).build()
    stream_id = options.archive_staging_stream_id
    with connected(options) as archive, contextlib.closing(SharedPublications(1)) as publications:
        archive.start_recording(channel, stream_id, source=source_location(options), auto_stop=True)
        rows = publications.task(
            channel,
            stream_id,
            query=task.query[:8],
            partition=task.partition,
            attempt=task.attempt,
            connect_timeout_ms=options.connect_timeout_ms,
            offer_timeout_ms=options.offer_timeout_ms,
            reserved_value=reserved_value,
            batch_id=task.batch_id,
            value_format=options.value_format,
            value_schema=payload_of(options).native_schema,
            records_per_message=options.records_per_message or 1,
            client=client_settings(options),
            exclusive=True,
        )
        for batch in itertools.chain([first], batches):
            rows.write(batch)
        published = rows.finish()
        [(_, _, _, end, _)] = published["streams"]
        recording = wait_recorded(archive, stream_id, session_id, end, options.offer_timeout_ms / 1000)
        archive.try_stop_recording_by_identity(recording.recording_id)
    return StagedPartition(task, recording.recording_id, published["rows"], published["messages"], published["bytes"])


# ---- the commit -----------------------------------------------------------------------------------------------------


class BatchCommit:
    """Appends the staged partitions of a batch to the recording of its query, exactly once.

    A commit may run any number of times, even in several processes at the same time. The steps are methods, in the
    order in which they run.
    """

    def __init__(self, options: RecordedWriteOptions, batch_id: int, staged: Sequence[StagedPartition]) -> None:
        """Checks that the partitions belong to one query and batch. At least one partition is required."""
        tasks = {(partition.task.query, partition.task.batch_id) for partition in staged}
        if len(tasks) != 1 or next(iter(tasks))[1] != batch_id:
            raise AeronSparkError(f"batch {batch_id} on {options.channel}: its tasks were for {sorted(tasks)}")
        self._options = options
        self._query = staged[0].task.query
        self._batch_id = batch_id
        self._staged = sorted(staged, key=lambda partition: partition.task.partition)
        self._progress: tuple[SinkState, int] | None = None
        """State and end of the recording when the latest attempt opened it."""

    def run(self) -> None:
        """Runs all steps. After an error of the archive or the driver, tries again for :data:`RETRY_TIMEOUT_S`."""
        failed_since, progress = None, self._progress
        while True:
            started = time.monotonic()
            try:
                with connected(self._options) as archive:
                    self._attempt(archive)
                return
            except NotSupportedByArchiveError as error:
                raise AeronOptionError(
                    f"option archive.controlChannel: {error}; each row is recorded exactly once only by an archive of "
                    "this project, which keeps the last batch of the query"
                ) from None
            except (AeronSparkError, *_FINAL):
                raise
            except AeronError as error:
                if failed_since is None or self._progress != progress:
                    failed_since, progress = time.monotonic(), self._progress
                if started - failed_since > RETRY_TIMEOUT_S:
                    raise AeronSparkError(
                        f"batch {self._batch_id} on {self._options.channel} was not committed for "
                        f"{RETRY_TIMEOUT_S:g} s: {error}; its rows are staged, start the query again"
                    ) from None
                _log.warning("batch %d: the commit tries again: %s", self._batch_id, error)
                time.sleep(_RETRY_INTERVAL_S)

    def _attempt(self, archive: aeron.AeronArchive) -> None:
        with RecordedTarget.opened(archive, self._options, self._query, self._batch_id) as target:
            state = target.state()
            self._progress = (state, target.position)
            if state.decided is not None:
                state = self._complete(target, state, self._appended(target, state.decided))
            if state.batch_id > self._batch_id:
                raise AeronSparkError(
                    f"batch {self._batch_id} on {self._options.channel}: the recording already has batch "
                    f"{state.batch_id} of this query; the checkpoint is older than the recording, or another "
                    "application uses a copy of it: start with a new checkpoint and startingOffsets of the source"
                )
            if state.batch_id < self._batch_id:
                state = self._complete(target, self._decide(target, state), 0)
        self._discard(archive, state)

    def _decide(self, target: RecordedTarget, state: SinkState) -> SinkState:
        """Stores the ids of the staged recordings that make up the batch."""
        recordings = tuple(part.recording_id for part in self._staged if part.recording_id is not None)
        messages = sum(part.messages for part in self._staged)
        position = target.publication.position
        return target.store(state.decide(DecidedBatch(self._batch_id, position, messages, recordings)))

    def _appended(self, target: RecordedTarget, decided: DecidedBatch) -> int:
        """Returns the number of messages of a decided batch that earlier commits have appended.

        A message of which only a part was recorded does not count. Readers of the recording drop such a message too.
        """
        if target.position == decided.position:
            return 0
        return sum(map(len, self._replayed(target.archive, target.recording_id, decided.position, target.position)))

    def _complete(self, target: RecordedTarget, state: SinkState, appended: int) -> SinkState:
        """Appends the decided messages after the first `appended` ones, and stores that the batch is complete."""
        decided = state.decided
        assert decided is not None
        seen = 0
        for recording_id in decided.recordings:
            for batch in self._staged_messages(target.archive, decided, recording_id):
                self._append(target.publication, batch[max(appended - seen, 0) :])
                seen += len(batch)
        if seen != decided.messages:
            raise AeronDataLossError(
                f"batch {decided.batch_id} on {self._options.channel}: its staged recordings have {seen} of "
                f"{decided.messages} messages; the archive has lost data, or something else has deleted them"
            )
        end = target.publication.position
        target.archive.wait_recorded(target.publication, end, self._options.offer_timeout_ms / 1000)
        return target.store(state.complete(end))

    def _append(self, publication: aeron.ExclusivePublication, messages: aeron.Batch) -> None:
        import pyarrow as pa

        columns = pa.record_batch(messages)
        rows = pa.record_batch({"value": columns["payload"], "reserved_value": columns["reserved_value"]})
        timeout_s = self._options.offer_timeout_ms / 1000
        begin = 0
        while begin < rows.num_rows:
            sent = publication.offer_arrow(rows, start=begin, timeout=timeout_s)
            if not sent:
                raise BackPressureTimeoutError(f"the archive has recorded no message for {timeout_s:g} s")
            begin += sent

    def _staged_messages(
        self, archive: aeron.AeronArchive, decided: DecidedBatch, recording_id: int
    ) -> Iterator[aeron.Batch]:
        try:
            # The staged recording may still be active. It has all messages, because the task waited for them.
            archive.try_stop_recording_by_identity(recording_id)
            end = archive.get_max_recorded_position(recording_id)
            yield from self._replayed(archive, recording_id, 0, end)
        except UnknownRecordingError:
            raise AeronDataLossError(
                f"batch {decided.batch_id} on {self._options.channel}: staged recording {recording_id} was deleted"
            ) from None

    def _replayed(self, archive: aeron.AeronArchive, recording_id: int, begin: int, end: int) -> Iterator[aeron.Batch]:
        channel, stream_id = replay_channel(self._options), self._options.archive_replay_stream_id
        with archive.replay(recording_id, channel, stream_id, position=begin, length=end - begin) as replay:
            yield from replay.batches()

    def _discard(self, archive: aeron.AeronArchive, state: SinkState) -> None:
        """Deletes the staged recordings of complete batches, including those of failed tasks.

        If a deletion fails, this is only logged. The next commit tries again.
        """
        complete = [
            recording.recording_id
            for recording in archive.list_recordings(stream_id=self._options.archive_staging_stream_id)
            if (staged := staged_batch(recording)) is not None
            and staged[0] == self._query
            and staged[1] <= state.batch_id
        ]
        deadline = time.monotonic() + PURGE_TIMEOUT_S
        for recording_id in complete:
            with contextlib.suppress(AeronError):
                archive.try_stop_recording_by_identity(recording_id)
            if (error := purge_stopped(archive, recording_id, deadline - time.monotonic())) is not None:
                _log.warning("staged recording %d stays until the next commit: %s", recording_id, error)
                if not isinstance(error, ActiveRecordingError):
                    return


# ---- the writer -----------------------------------------------------------------------------------------------------


class AeronRecordedStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query to a recording, each row exactly once.

    Raises :class:`~aeron.spark.errors.AeronOptionError` for an option or a column that is wrong.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = recorded_write_options(options)
        if "stream_id" in schema.fieldNames():
            raise AeronOptionError(
                "column 'stream_id' is not for a recorded stream: a query records one stream; drop the column, and "
                "start a query for each stream"
            )
        check_schema(schema, self._options)
        self._reserved_value = reserved_value_of(schema, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPartition:
        """Stages the rows of one partition of a batch, in a worker."""
        context = TaskContext.get()
        if context is None:
            raise AeronSparkError("rows are staged in a task of a streaming query only")
        query = context.getLocalProperty("sql.streaming.queryId") or ""
        batch_id = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        task = TaskName(query, batch_id, context.partitionId(), context.attemptNumber())
        return stage(iterator, self._options, self._reserved_value, task)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Appends the rows of a batch to the recording."""
        staged = [message for message in messages if isinstance(message, StagedPartition)]
        if len(staged) != len(messages):
            raise AeronSparkError(
                f"batch {batchId} on {self._options.channel}: {len(messages) - len(staged)} of {len(messages)} tasks "
                "did not say what they staged"
            )
        if staged:
            BatchCommit(self._options, batchId, staged).run()

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Logs that a batch failed. If the commit of the batch was killed after the decision, the next commit completes
        the batch."""
        _log.warning("batch %d on %s: aborted; the next start of the query commits it", batchId, self._options.channel)

//! [`ArchiveCounters`]: the archive's own counters in its driver.

use std::sync::Arc;

use aeron_agent::version::{COMMIT, TEXT as VERSION};
use aeron_agent::{DutyCycle, DutyCycleTracker, NanoClock};
use aeron_client::{Aeron, Counter, CountersReader, PendingOperation, SharedBuffer};
use aeron_memory::counters::types;

/// Counters of an archive. The driver frees these counters when the client of the archive is closed.
pub(super) struct ArchiveCounters {
    /// Number of errors, including those in the error log.
    pub errors: Counter,
    /// Duty cycles of the conductor.
    pub conductor_cycles: CycleCounters,
    /// Duty cycles of the recorder; `None` if the conductor runs it.
    pub recorder_cycles: Option<CycleCounters>,
    /// Duty cycles of the replayer; `None` if the conductor runs it.
    pub replayer_cycles: Option<CycleCounters>,
    /// Number of control sessions.
    pub control_sessions: Counter,
    /// Number of active recordings.
    pub recording_sessions: Counter,
    /// Number of active replays.
    pub replay_sessions: Counter,
    /// Writes of the recorder.
    pub writes: TransferCounters,
    /// Reads of the replayer.
    pub reads: TransferCounters,
    /// Deletions by retention.
    pub retention: RetentionCounters,
    /// Results of scrubbing.
    pub scrub: ScrubCounters,
    /// Copies in object storage.
    pub objects: ObjectCounters,
    /// Number of connect requests that were dropped because of the limits of connect requests.
    pub dropped_connects: Counter,
    /// Images that the archive does not read, because their recordings have failed.
    pub blocked_images: Counter,
    /// Bytes that were read and not recorded, because their recordings have failed.
    pub lost_bytes: Counter,
}

/// Counters for object storage since the archive started.
pub(super) struct ObjectCounters {
    /// Segments that were copied and read back.
    pub copied_segments: Counter,
    /// Bytes of local files that were deleted.
    pub freed_bytes: Counter,
    /// Bytes that were fetched for replays.
    pub fetched_bytes: Counter,
    /// Number of reported failures, such as failed copies and fetches.
    pub failures: Counter,
}

/// Counters for the frames that scrubbing has read since the archive started.
pub(super) struct ScrubCounters {
    /// Number of bytes of valid frames.
    pub checked_bytes: Counter,
    /// Number of damaged frames.
    pub findings: Counter,
}

/// Counters for the deletions by retention since the archive started.
#[derive(Clone)]
pub(super) struct RetentionCounters {
    /// Number of deleted bytes of recordings.
    pub freed_bytes: Counter,
    /// Number of deleted segments.
    pub freed_segments: Counter,
    /// Number of named readers that have expired.
    pub expired_readers: Counter,
}

/// Counters for the duration of an agent's duty cycles.
#[derive(Clone)]
pub(super) struct CycleCounters {
    max_time_ns: Counter,
    exceeded: Counter,
    tracker: DutyCycleTracker,
}

/// Counters for the bytes that were written or read, and the duration of the writes or reads.
#[derive(Clone)]
pub(super) struct TransferCounters {
    max_time_ns: Counter,
    total_bytes: Counter,
    total_time_ns: Counter,
}

/// Measures the transfers of an agent's sessions.
pub(super) struct TransferMeter {
    counters: TransferCounters,
    clock: Arc<dyn NanoClock>,
}

/// The values in the labels of the counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct CounterLabels<'a> {
    /// Id of the archive.
    pub archive_id: i64,
    /// Name of the threading mode.
    pub threading_mode: &'a str,
    /// Whether the recorder and the replayer have threads of their own.
    pub is_dedicated: bool,
    /// Thresholds of conductor, recorder and replayer, in nanoseconds. Duty cycles that take longer
    /// are counted.
    pub cycle_thresholds_ns: [i64; 3],
}

/// Counters that the driver has been asked to add.
pub(super) struct PendingCounters {
    /// The operations in the order in which [`PendingCounters::poll`] reads them.
    operations: Vec<PendingOperation<Counter>>,
    is_dedicated: bool,
    cycle_thresholds_ns: [i64; 3],
}

impl ArchiveCounters {
    /// Asks the driver to add the counters, in Aeron's order. Does not wait.
    ///
    /// # Errors
    /// The command cannot be sent to the driver.
    pub fn ask(aeron: &Aeron, labels: &CounterLabels<'_>) -> aeron_client::Result<PendingCounters> {
        let id = labels.archive_id;
        let errors = format!("Archive Errors - archiveId={id} version={VERSION} commit={COMMIT}");
        let mut wanted = vec![(types::ARCHIVE_ERRORS, errors)];
        let mut want =
            |type_id, label: String| wanted.push((type_id, format!("{label} - archiveId={id}")));
        let agents = ["conductor", "recorder", "replayer"];
        for (agent, threshold_ns) in agents
            .into_iter()
            .zip(labels.cycle_thresholds_ns)
            .take(if labels.is_dedicated { 3 } else { 1 })
        {
            let mode = labels.threading_mode;
            let threshold_ms = threshold_ns / 1_000_000;
            want(
                types::ARCHIVE_MAX_CYCLE_TIME,
                format!("archive-{agent} max cycle time in ns: {mode}"),
            );
            want(
                types::ARCHIVE_CYCLE_TIME_EXCEEDED,
                format!(
                    "archive-{agent} work cycle time exceeded count: threshold={threshold_ms}ms {mode}"
                ),
            );
        }
        for (type_id, label) in SESSION_AND_TRANSFER_COUNTERS
            .into_iter()
            .chain(OWN_COUNTERS)
        {
            want(type_id, label.to_owned());
        }
        let operations = wanted
            .iter()
            .map(|(type_id, label)| aeron.async_add_counter(*type_id, &id.to_le_bytes(), label))
            .collect::<aeron_client::Result<_>>()?;
        Ok(PendingCounters {
            operations,
            is_dedicated: labels.is_dedicated,
            cycle_thresholds_ns: labels.cycle_thresholds_ns,
        })
    }
}

/// The counters that all archives have, after the counters of the duty cycles, in Aeron's order.
const SESSION_AND_TRANSFER_COUNTERS: [(i32, &str); 9] = [
    (types::ARCHIVE_CONTROL_SESSIONS, "Archive Control Sessions"),
    (
        types::ARCHIVE_RECORDING_SESSIONS,
        "Archive Recording Sessions",
    ),
    (types::ARCHIVE_REPLAY_SESSIONS, "Archive Replay Sessions"),
    (
        types::ARCHIVE_RECORDER_MAX_WRITE_TIME,
        "archive-recorder max write time in ns",
    ),
    (
        types::ARCHIVE_RECORDER_WRITE_BYTES,
        "archive-recorder total write bytes",
    ),
    (
        types::ARCHIVE_RECORDER_WRITE_TIME,
        "archive-recorder total write time in ns",
    ),
    (
        types::ARCHIVE_REPLAYER_MAX_READ_TIME,
        "archive-replayer max read time in ns",
    ),
    (
        types::ARCHIVE_REPLAYER_READ_BYTES,
        "archive-replayer total read bytes",
    ),
    (
        types::ARCHIVE_REPLAYER_READ_TIME,
        "archive-replayer total read time in ns",
    ),
];

/// The counters that this project adds.
const OWN_COUNTERS: [(i32, &str); 12] = [
    (
        types::ARCHIVE_RETENTION_FREED_BYTES,
        "archive-retention freed bytes",
    ),
    (
        types::ARCHIVE_RETENTION_FREED_SEGMENTS,
        "archive-retention freed segments",
    ),
    (
        types::ARCHIVE_RETENTION_EXPIRED_READERS,
        "archive-retention expired readers",
    ),
    (
        types::ARCHIVE_SCRUB_CHECKED_BYTES,
        "archive-scrub checked bytes",
    ),
    (types::ARCHIVE_SCRUB_FINDINGS, "archive-scrub findings"),
    (
        types::ARCHIVE_OBJECTS_COPIED_SEGMENTS,
        "archive-objects copied segments",
    ),
    (
        types::ARCHIVE_OBJECTS_FREED_BYTES,
        "archive-objects freed bytes",
    ),
    (
        types::ARCHIVE_OBJECTS_FETCHED_BYTES,
        "archive-objects fetched bytes",
    ),
    (types::ARCHIVE_OBJECTS_FAILURES, "archive-objects failures"),
    (
        types::ARCHIVE_CONNECTS_DROPPED,
        "Archive connect requests dropped",
    ),
    (
        types::ARCHIVE_BLOCKED_IMAGES,
        "archive-recorder blocked images of failed recordings",
    ),
    (
        types::ARCHIVE_LOST_BYTES,
        "archive-recorder dropped bytes of failed recordings",
    ),
];

impl PendingCounters {
    /// Returns the counters when the driver has added all of them. Does not wait.
    ///
    /// # Errors
    /// The driver refuses a counter.
    pub fn poll(&mut self, now_ns: i64) -> aeron_client::Result<Option<ArchiveCounters>> {
        let mut counters = Vec::with_capacity(self.operations.len());
        for operation in &mut self.operations {
            match operation.poll()? {
                Some(counter) => counters.push(counter),
                None => return Ok(None),
            }
        }
        let mut counters = counters.into_iter();
        let mut next = || counters.next().expect("all counters were added");
        let errors = next();
        let [conductor_ns, recorder_ns, replayer_ns] = self.cycle_thresholds_ns;
        let mut cycles = |threshold_ns| CycleCounters {
            max_time_ns: next(),
            exceeded: next(),
            tracker: DutyCycleTracker::new(threshold_ns, now_ns),
        };
        let conductor_cycles = cycles(conductor_ns);
        let (mut recorder_cycles, mut replayer_cycles) = (None, None);
        if self.is_dedicated {
            recorder_cycles = Some(cycles(recorder_ns));
            replayer_cycles = Some(cycles(replayer_ns));
        }
        let [control_sessions, recording_sessions, replay_sessions] = [next(), next(), next()];
        let mut transfers = || TransferCounters {
            max_time_ns: next(),
            total_bytes: next(),
            total_time_ns: next(),
        };
        let (writes, reads) = (transfers(), transfers());
        Ok(Some(ArchiveCounters {
            errors,
            conductor_cycles,
            recorder_cycles,
            replayer_cycles,
            control_sessions,
            recording_sessions,
            replay_sessions,
            writes,
            reads,
            retention: RetentionCounters {
                freed_bytes: next(),
                freed_segments: next(),
                expired_readers: next(),
            },
            scrub: ScrubCounters {
                checked_bytes: next(),
                findings: next(),
            },
            objects: ObjectCounters {
                copied_segments: next(),
                freed_bytes: next(),
                fetched_bytes: next(),
                failures: next(),
            },
            dropped_connects: next(),
            blocked_images: next(),
            lost_bytes: next(),
        }))
    }
}

impl CycleCounters {
    /// Ends the measurement of a duty cycle and begins the measurement of the next duty cycle.
    pub fn measure(&mut self, now_ns: i64) {
        let DutyCycle {
            duration_ns,
            is_stalled,
        } = self.tracker.measure(now_ns);
        self.max_time_ns.propose_max(duration_ns);
        if is_stalled {
            self.exceeded.fetch_add(1);
        }
    }
}

impl TransferCounters {
    /// Counts a transfer.
    pub fn note(&self, bytes: usize, duration_ns: i64) {
        self.max_time_ns.propose_max(duration_ns);
        self.total_bytes.fetch_add(bytes as i64);
        self.total_time_ns.fetch_add(duration_ns);
    }
}

impl TransferMeter {
    /// Creates the meter for an agent.
    pub fn new(counters: TransferCounters, clock: Arc<dyn NanoClock>) -> Self {
        Self { counters, clock }
    }

    /// Runs `turn`, which returns a result and the number of transferred bytes. If this number is
    /// not 0, counts the bytes and the time.
    pub fn measure<T>(&self, turn: impl FnOnce() -> (T, usize)) -> T {
        let begin_ns = self.clock.nano_time();
        let (result, bytes) = turn();
        if bytes > 0 {
            self.counters.note(bytes, self.clock.nano_time() - begin_ns);
        }
        result
    }
}

/// Returns whether an archive with this id is running: then the driver has counters of this
/// archive.
pub(super) fn is_archive_there(counters: &CountersReader<SharedBuffer>, archive_id: i64) -> bool {
    counters.records().any(|record| {
        matches!(
            record.type_id,
            types::ARCHIVE_ERRORS | types::ARCHIVE_RECORDER_MAX_WRITE_TIME
        ) && record.key.get(..8) == Some(&archive_id.to_le_bytes()[..])
    })
}

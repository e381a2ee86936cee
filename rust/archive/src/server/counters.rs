//! [`ArchiveCounters`]: the archive's own counters in its driver.

use std::sync::Arc;

use aeron_agent::version::{COMMIT, TEXT as VERSION};
use aeron_agent::{DutyCycle, DutyCycleTracker, NanoClock};
use aeron_client::{Aeron, Counter, CountersReader, SharedBuffer};

/// Types of the counters. Keys hold the archive id.
mod type_id {
    pub const ERRORS: i32 = 101;
    pub const CONTROL_SESSIONS: i32 = 102;
    pub const MAX_CYCLE_TIME: i32 = 103;
    pub const CYCLES_EXCEEDED: i32 = 104;
    pub const MAX_WRITE_TIME: i32 = 105;
    pub const TOTAL_WRITE_BYTES: i32 = 106;
    pub const TOTAL_WRITE_TIME: i32 = 107;
    pub const MAX_READ_TIME: i32 = 108;
    pub const TOTAL_READ_BYTES: i32 = 109;
    pub const TOTAL_READ_TIME: i32 = 110;
    pub const RECORDING_SESSIONS: i32 = 111;
    pub const REPLAY_SESSIONS: i32 = 112;
}

/// Counters of an archive. They are freed with the archive's client.
pub(super) struct ArchiveCounters {
    /// Errors, also those in the error log.
    pub errors: Counter,
    /// Duty cycles of the conductor.
    pub conductor_cycles: CycleCounters,
    /// Duty cycles of the recorder; `None` if the conductor runs it.
    pub recorder_cycles: Option<CycleCounters>,
    /// Duty cycles of the replayer; `None` if the conductor runs it.
    pub replayer_cycles: Option<CycleCounters>,
    /// Control sessions.
    pub control_sessions: Counter,
    /// Recordings that run.
    pub recording_sessions: Counter,
    /// Replays that run.
    pub replay_sessions: Counter,
    /// Writes of the recorder.
    pub writes: TransferCounters,
    /// Reads of the replayer.
    pub reads: TransferCounters,
}

/// How long the duty cycles of an agent take.
#[derive(Clone)]
pub(super) struct CycleCounters {
    max_time_ns: Counter,
    exceeded: Counter,
    tracker: DutyCycleTracker,
}

/// Bytes that were written or read, and how long that took.
#[derive(Clone)]
pub(super) struct TransferCounters {
    max_time_ns: Counter,
    total_bytes: Counter,
    total_time_ns: Counter,
}

/// Measures the turns of the sessions of an agent.
pub(super) struct TransferMeter {
    counters: TransferCounters,
    clock: Arc<dyn NanoClock>,
}

/// The values in the labels of the counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct CounterLabels<'a> {
    /// Id of the archive.
    pub archive_id: i64,
    /// Threading mode, as its property names it.
    pub threading_mode: &'a str,
    /// Whether recorder and replayer have threads of their own.
    pub is_dedicated: bool,
    /// Longest duty cycles of conductor, recorder and replayer that do not count as exceeded, in nanoseconds.
    pub cycle_thresholds_ns: [i64; 3],
}

impl ArchiveCounters {
    /// Adds the counters in Aeron's order. Waits for the driver.
    ///
    /// # Errors
    /// The driver refuses a counter.
    pub fn add(
        aeron: &Aeron,
        labels: &CounterLabels<'_>,
        now_ns: i64,
    ) -> aeron_client::Result<Self> {
        let id = labels.archive_id;
        let add = |type_id, label: &str| {
            aeron.add_counter(
                type_id,
                &id.to_le_bytes(),
                &format!("{label} - archiveId={id}"),
            )
        };
        let errors_label =
            format!("Archive Errors - archiveId={id} version={VERSION} commit={COMMIT}");
        let errors = aeron.add_counter(type_id::ERRORS, &id.to_le_bytes(), &errors_label)?;
        let cycles = |agent: &str, threshold_ns: i64| {
            let mode = labels.threading_mode;
            let threshold_ms = threshold_ns / 1_000_000;
            Ok::<_, aeron_client::Error>(CycleCounters {
                max_time_ns: add(
                    type_id::MAX_CYCLE_TIME,
                    &format!("{agent} max cycle time in ns: {mode}"),
                )?,
                exceeded: add(
                    type_id::CYCLES_EXCEEDED,
                    &format!(
                        "{agent} work cycle time exceeded count: threshold={threshold_ms}ms {mode}"
                    ),
                )?,
                tracker: DutyCycleTracker::new(threshold_ns, now_ns),
            })
        };
        let [conductor_ns, recorder_ns, replayer_ns] = labels.cycle_thresholds_ns;
        let conductor_cycles = cycles("archive-conductor", conductor_ns)?;
        let (mut recorder_cycles, mut replayer_cycles) = (None, None);
        if labels.is_dedicated {
            recorder_cycles = Some(cycles("archive-recorder", recorder_ns)?);
            replayer_cycles = Some(cycles("archive-replayer", replayer_ns)?);
        }
        Ok(Self {
            errors,
            conductor_cycles,
            recorder_cycles,
            replayer_cycles,
            control_sessions: add(type_id::CONTROL_SESSIONS, "Archive Control Sessions")?,
            recording_sessions: add(type_id::RECORDING_SESSIONS, "Archive Recording Sessions")?,
            replay_sessions: add(type_id::REPLAY_SESSIONS, "Archive Replay Sessions")?,
            writes: TransferCounters {
                max_time_ns: add(
                    type_id::MAX_WRITE_TIME,
                    "archive-recorder max write time in ns",
                )?,
                total_bytes: add(
                    type_id::TOTAL_WRITE_BYTES,
                    "archive-recorder total write bytes",
                )?,
                total_time_ns: add(
                    type_id::TOTAL_WRITE_TIME,
                    "archive-recorder total write time in ns",
                )?,
            },
            reads: TransferCounters {
                max_time_ns: add(
                    type_id::MAX_READ_TIME,
                    "archive-replayer max read time in ns",
                )?,
                total_bytes: add(
                    type_id::TOTAL_READ_BYTES,
                    "archive-replayer total read bytes",
                )?,
                total_time_ns: add(
                    type_id::TOTAL_READ_TIME,
                    "archive-replayer total read time in ns",
                )?,
            },
        })
    }
}

impl CycleCounters {
    /// Ends the measurement of a duty cycle and begins that of the next.
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
    /// Notes a transfer.
    pub fn note(&self, bytes: usize, duration_ns: i64) {
        self.max_time_ns.propose_max(duration_ns);
        self.total_bytes.fetch_add(bytes as i64);
        self.total_time_ns.fetch_add(duration_ns);
    }
}

impl TransferMeter {
    /// A meter of an agent.
    pub fn new(counters: TransferCounters, clock: Arc<dyn NanoClock>) -> Self {
        Self { counters, clock }
    }

    /// Runs a turn of a session, which returns its result and the bytes that it moved; notes these and their time, if there are any.
    pub fn measure<T>(&self, turn: impl FnOnce() -> (T, usize)) -> T {
        let begin_ns = self.clock.nano_time();
        let (result, bytes) = turn();
        if bytes > 0 {
            self.counters.note(bytes, self.clock.nano_time() - begin_ns);
        }
        result
    }
}

/// Whether an archive with this id works with the driver: its counters are there.
pub(super) fn is_archive_there(counters: &CountersReader<SharedBuffer>, archive_id: i64) -> bool {
    counters.records().any(|record| {
        matches!(record.type_id, type_id::ERRORS | type_id::MAX_WRITE_TIME)
            && record.key.get(..8) == Some(&archive_id.to_le_bytes()[..])
    })
}

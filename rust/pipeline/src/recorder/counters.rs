//! The recorder's numbers as Aeron counters, so that `aeron stat` shows them without Spark.

use std::collections::HashMap;

use aeron_client::{Aeron, Counter, PendingOperation};

use super::{STATISTICS, Statistics};
use crate::private::RecordingInfo;

/// Type of the counters; far from those that Aeron gives a meaning. Never 100: a client would take such a counter for a
/// recording of an archive server.
pub(super) const COUNTER_TYPE_ID: i32 = 20_808;
/// Positions are shown of this many recordings at most: the driver's counters are a common good.
const MAX_POSITIONS: usize = 256;

/// A counter that was asked for.
enum Asked {
    Waiting(PendingOperation<Counter>),
    There(Counter),
    /// The driver had no room for it.
    Refused,
}

/// The counters of one client. They go with the client.
pub(super) struct Counters {
    archive: String,
    numbers: Vec<Asked>,
    positions: HashMap<i64, Asked>,
}

impl Counters {
    /// Asks for the counters of the query that owns this archive.
    pub fn new(aeron: &Aeron, archive_id: &str) -> Self {
        let archive = archive_id[..archive_id.len().min(8)].to_owned();
        let ask = |name: &str| Asked::ask(aeron, &format!("spark-source {name} archive={archive}"));
        Self {
            numbers: STATISTICS.into_iter().map(ask).collect(),
            archive,
            positions: HashMap::new(),
        }
    }

    /// Shows the numbers, and how far each recording that runs is recorded.
    pub fn update(&mut self, aeron: &Aeron, statistics: &Statistics, recordings: &[RecordingInfo]) {
        for (asked, number) in self.numbers.iter_mut().zip(statistics.all()) {
            asked.show(number.get());
        }
        let running = || recordings.iter().filter(|recording| recording.is_live);
        let is_running = |id: i64| running().any(|recording| recording.stream.recording_id() == id);
        self.positions.retain(|id, _| is_running(*id));
        for recording in running().take(MAX_POSITIONS) {
            let position = recording.published.recorded_position();
            let asked = self
                .positions
                .entry(recording.stream.recording_id())
                .or_insert_with(|| Asked::ask(aeron, &position_label(&self.archive, recording)));
            asked.show(position);
        }
    }
}

impl Asked {
    fn ask(aeron: &Aeron, label: &str) -> Self {
        match aeron.async_add_counter(COUNTER_TYPE_ID, &[], label) {
            Ok(operation) => Self::Waiting(operation),
            Err(_) => Self::Refused,
        }
    }

    fn show(&mut self, value: i64) {
        if let Self::Waiting(operation) = self {
            match operation.poll() {
                Ok(None) => return,
                Ok(Some(counter)) => *self = Self::There(counter),
                Err(_) => *self = Self::Refused,
            }
        }
        if let Self::There(counter) = self {
            counter.set(value);
        }
    }
}

fn position_label(archive: &str, recording: &RecordingInfo) -> String {
    format!(
        "spark-source recordedPosition archive={archive} recording={} stream={} session={}",
        recording.stream.recording_id(),
        recording.stream_id,
        recording.session_id
    )
}

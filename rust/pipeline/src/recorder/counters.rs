//! The recorder's statistics as Aeron counters, so that `aeron stat` shows them without Spark.

use std::collections::HashMap;

use aeron_client::{Aeron, Counter, PendingOperation};

use super::{STATISTICS, Statistics};
use crate::private::RecordingInfo;

/// Type id of the counters, outside the ranges that Aeron uses. The id must not be 100: clients treat a counter of type
/// 100 as the recorded position of a recording in an archive.
pub(super) const COUNTER_TYPE_ID: i32 = 20_808;
/// Maximum number of recordings with a position counter. It is limited because all clients share the driver's counters.
const MAX_POSITIONS: usize = 256;

/// State of a requested counter.
enum RequestedCounter {
    Waiting(PendingOperation<Counter>),
    There(Counter),
    /// The driver has no room for the counter.
    Refused,
}

/// The recorder's counters. The driver removes them when the recorder's client ends.
pub(super) struct Counters {
    archive: String,
    numbers: Vec<RequestedCounter>,
    positions: HashMap<i64, RequestedCounter>,
}

impl Counters {
    /// Requests the counters of the query that owns this archive.
    pub fn new(aeron: &Aeron, archive_id: &str) -> Self {
        let archive = archive_id[..archive_id.len().min(8)].to_owned();
        let ask = |name: &str| {
            RequestedCounter::ask(aeron, &format!("spark-source {name} archive={archive}"))
        };
        Self {
            numbers: STATISTICS.into_iter().map(ask).collect(),
            archive,
            positions: HashMap::new(),
        }
    }

    /// Updates the counters: the statistics and the recorded position of each running recording.
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
                .or_insert_with(|| {
                    RequestedCounter::ask(aeron, &position_label(&self.archive, recording))
                });
            asked.show(position);
        }
    }
}

impl RequestedCounter {
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

//! [`PositionQuery`]: repeatedly requests the position of a recording.

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::error::Result;
use super::super::operation::ArchiveOperation;

/// Shortest time between two requests, in nanoseconds.
const MIN_INTERVAL_NS: i64 = 16_000_000;
/// Longest time between two requests, in nanoseconds.
const MAX_INTERVAL_NS: i64 = 500_000_000;

/// Repeated requests for the position of one recording. The first request is sent at once. The interval doubles after
/// each request.
pub(super) struct PositionQuery {
    recording_id: i64,
    asking: Option<ArchiveOperation<i64>>,
    interval_ns: i64,
    /// Time of the next request; `None` if it is due now.
    due_ns: Option<i64>,
}

impl PositionQuery {
    pub(super) const fn new(recording_id: i64) -> Self {
        Self {
            recording_id,
            asking: None,
            interval_ns: MIN_INTERVAL_NS,
            due_ns: None,
        }
    }

    /// Makes progress without waiting. Returns the position when the archive has responded.
    pub(super) fn poll(&mut self, archive: &AeronArchive, now_ns: i64) -> Result<Option<i64>> {
        if self.asking.is_none() && self.due_ns.is_none_or(|due_ns| now_ns - due_ns >= 0) {
            let call = ArchiveCall::max_recorded_position(self.recording_id);
            self.asking = Some(archive.begin(call)?);
            self.due_ns = Some(now_ns + self.interval_ns);
            self.interval_ns = (2 * self.interval_ns).min(MAX_INTERVAL_NS);
        }
        let Some(asking) = &mut self.asking else {
            return Ok(None);
        };
        let Some(position) = asking.poll()? else {
            return Ok(None);
        };
        self.asking = None;
        // A negative value means that the archive does not know the position yet.
        Ok((position >= 0).then_some(position))
    }
}

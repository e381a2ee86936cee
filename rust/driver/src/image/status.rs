//! [`ImageStatus`]: the state that the conductor's and the receiver's half of an image share.
//!
//! Each value has one writer, the conductor or the receiver. Only the request for a status message has two: the
//! conductor sets it, and the receiver clears it. Values that belong together are in a [`Snapshot`]: a position with
//! its window, and the three numbers of a gap. The receiver acts once on each published snapshot, and only after it has
//! read all values of the snapshot.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use aeron_memory::{SharedBuffer, Snapshot};

/// Content of the next status messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledStatusMessage {
    /// Increases with each scheduled message.
    pub change_number: i64,
    /// Position up to which the slowest subscriber has consumed the stream.
    pub position: i64,
    /// Bytes that the sender may send from the position, at most half a term.
    pub window_length: i64,
}

/// A range of missing bytes in a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingRange {
    /// Increases with each report, even if the range is the same as before.
    pub change_number: i64,
    /// Id of the term.
    pub term_id: i32,
    /// Offset of the first missing byte in the term.
    pub term_offset: usize,
    /// Number of missing bytes.
    pub length: usize,
}

/// The value of `response_session_id` without a response publication.
const NO_SESSION: i64 = i64::MIN;

/// The state that the halves of an image share.
#[derive(Debug)]
pub struct ImageStatus {
    // Written by the conductor.
    status_message: Snapshot<SharedBuffer, 2>,
    missing: Snapshot<SharedBuffer, 3>,
    allocated_end: AtomicI64,
    response_session_id: AtomicI64,
    is_ending: AtomicBool,
    // Set by the conductor, cleared by the receiver.
    is_status_message_due: AtomicBool,
    // Written by the receiver.
    high_water_mark: AtomicI64,
    time_of_last_packet_ns: AtomicI64,
    is_end_of_stream: AtomicBool,
    is_revoked: AtomicBool,
    is_ending_reported: AtomicBool,
}

impl ImageStatus {
    /// Creates the status of an image that begins at `position` and first offers `window_length` bytes.
    ///
    /// All pages of its log up to the position `allocated_end` are allocated.
    pub fn new(position: i64, window_length: i64, allocated_end: i64, now_ns: i64) -> Self {
        Self {
            status_message: Snapshot::new([position, window_length]),
            missing: Snapshot::new([0; 3]),
            allocated_end: AtomicI64::new(allocated_end),
            response_session_id: AtomicI64::new(NO_SESSION),
            is_ending: AtomicBool::new(false),
            is_status_message_due: AtomicBool::new(false),
            high_water_mark: AtomicI64::new(position),
            time_of_last_packet_ns: AtomicI64::new(now_ns),
            is_end_of_stream: AtomicBool::new(false),
            is_revoked: AtomicBool::new(false),
            is_ending_reported: AtomicBool::new(false),
        }
    }
}

/// Operations of the conductor.
impl ImageStatus {
    /// Makes the receiver send this status message in its next duty cycle and repeat the message at intervals.
    pub fn schedule_status_message(&self, position: i64, window_length: i64) {
        debug_assert!(
            window_length >= 0,
            "no receiver can offer a window of {window_length} bytes"
        );
        self.status_message.publish([position, window_length]);
    }

    /// Makes the receiver request these bytes once. If the stream is not reliable, the receiver fills the gap with
    /// padding.
    pub fn report_missing(&self, term_id: i32, term_offset: usize, length: usize) {
        debug_assert!(length > 0, "a gap of no bytes is reported");
        self.missing
            .publish([term_id.into(), term_offset as i64, length as i64]);
    }

    /// Makes the receiver send a status message in its next duty cycle, without waiting for the timer.
    pub fn request_status_message(&self) {
        self.is_status_message_due.store(true, Ordering::Release);
    }

    /// Makes status messages announce, from now on, that this receiver is about to leave the stream.
    pub fn begin_ending(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// Returns whether a status message has announced that this receiver leaves the stream.
    pub fn is_ending_reported(&self) -> bool {
        self.is_ending_reported.load(Ordering::Acquire)
    }

    /// Sets the session of the publication that responds to this stream. `None` stops the announcement of the session.
    pub fn set_response_session_id(&self, session_id: Option<i32>) {
        self.response_session_id
            .store(session_id.map_or(NO_SESSION, i64::from), Ordering::Release);
    }

    /// Sets the position up to which all pages of the log are allocated.
    pub fn set_allocated_end(&self, position: i64) {
        self.allocated_end.store(position, Ordering::Release);
    }

    /// Returns the end of the highest data received, with or without gaps before it.
    ///
    /// The counter of the same name is not used, because clients can write to counters.
    pub fn high_water_mark(&self) -> i64 {
        self.high_water_mark.load(Ordering::Acquire)
    }

    /// Returns the time at which the last datagram was accepted.
    pub fn time_of_last_packet_ns(&self) -> i64 {
        self.time_of_last_packet_ns.load(Ordering::Acquire)
    }

    /// Returns whether every source of the stream has announced the end of the stream.
    ///
    /// The log's metadata then contains the end position.
    pub fn is_end_of_stream(&self) -> bool {
        self.is_end_of_stream.load(Ordering::Acquire)
    }

    /// Returns whether the publisher revoked the stream.
    pub fn is_revoked(&self) -> bool {
        self.is_revoked.load(Ordering::Acquire)
    }
}

/// Operations of the receiver.
impl ImageStatus {
    /// Returns the number of scheduled status messages.
    #[inline]
    pub fn status_message_change_number(&self) -> i64 {
        self.status_message.change_number()
    }

    /// Returns the scheduled status message; `None` while the conductor is changing it.
    pub fn scheduled_status_message(&self) -> Option<ScheduledStatusMessage> {
        let row = self.status_message.read()?;
        let [position, window_length] = row.values;
        Some(ScheduledStatusMessage {
            change_number: row.change_number,
            position,
            window_length,
        })
    }

    /// Returns the number of reports of missing bytes.
    #[inline]
    pub fn missing_change_number(&self) -> i64 {
        self.missing.change_number()
    }

    /// Returns the reported gap; `None` while the conductor is changing it.
    pub fn missing(&self) -> Option<MissingRange> {
        let row = self.missing.read()?;
        let [term_id, term_offset, length] = row.values;
        Some(MissingRange {
            change_number: row.change_number,
            term_id: term_id as i32,
            term_offset: term_offset as usize,
            length: length as usize,
        })
    }

    /// Returns whether a status message was requested since the last call.
    #[inline]
    pub fn take_status_message_request(&self) -> bool {
        self.is_status_message_due.load(Ordering::Relaxed)
            && self.is_status_message_due.swap(false, Ordering::Acquire)
    }

    /// Returns whether status messages announce that this receiver is about to leave.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Records that a status message has announced that this receiver leaves the stream.
    pub fn on_ending_reported(&self) {
        self.is_ending_reported.store(true, Ordering::Release);
    }

    /// Returns the session of the publication that responds to this stream.
    pub fn response_session_id(&self) -> Option<i32> {
        match self.response_session_id.load(Ordering::Acquire) {
            NO_SESSION => None,
            session_id => Some(session_id as i32),
        }
    }

    /// Returns the position up to which the log is allocated. Nothing may be stored at or after this position.
    #[inline]
    pub fn allocated_end(&self) -> i64 {
        self.allocated_end.load(Ordering::Acquire)
    }

    /// Sets the end of the highest data received.
    #[inline]
    pub fn set_high_water_mark(&self, position: i64) {
        self.high_water_mark.store(position, Ordering::Release);
    }

    /// Records that a datagram was accepted.
    #[inline]
    pub fn on_packet(&self, now_ns: i64) {
        self.time_of_last_packet_ns.store(now_ns, Ordering::Release);
    }

    /// Records that the stream has ended. The log's metadata contains the end position.
    pub fn end_stream(&self, is_revoked: bool) {
        // The reason is stored before the end: the conductor must not drain a revoked stream like any other.
        self.is_revoked.store(is_revoked, Ordering::Release);
        self.is_end_of_stream.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_and_every_report_counts_as_a_change() {
        let status = ImageStatus::new(64, 4096, i64::MAX, 5);
        let first = status.scheduled_status_message().unwrap();
        assert_eq!(
            (first.change_number, first.position, first.window_length),
            (0, 64, 4096)
        );
        status.schedule_status_message(128, 2048);
        status.schedule_status_message(128, 2048);
        assert_eq!(status.status_message_change_number(), 2);
        status.report_missing(-7, 96, 64);
        status.report_missing(-7, 96, 64);
        let missing = MissingRange {
            change_number: 2,
            term_id: -7,
            term_offset: 96,
            length: 64,
        };
        assert_eq!(status.missing(), Some(missing));
    }

    #[test]
    fn a_request_for_a_status_message_is_returned_once() {
        let status = ImageStatus::new(0, 0, 0, 0);
        assert!(!status.take_status_message_request());
        status.request_status_message();
        assert!(status.take_status_message_request());
        assert!(!status.take_status_message_request());
    }

    #[test]
    fn any_number_can_be_a_response_session_id() {
        let status = ImageStatus::new(0, 0, 0, 0);
        assert_eq!(status.response_session_id(), None);
        for session_id in [0, -1, i32::MIN, i32::MAX] {
            status.set_response_session_id(Some(session_id));
            assert_eq!(status.response_session_id(), Some(session_id));
        }
        status.set_response_session_id(None);
        assert_eq!(status.response_session_id(), None);
    }
}

//! [`RecordedPosition`]: the position up to which the archive has recorded a stream.
//!
//! If the archive uses the publisher's driver, this driver has a counter for each active recording. If the archive uses
//! another driver, the publisher sends requests to the archive.

use aeron_client::Aeron;
use aeron_memory::counters::RecordingPositionKey;

use super::super::call::{ArchiveCall, Ticket};
use super::super::link::{Answered, ArchiveLink};

/// Interval between two requests to an archive on another driver, in nanoseconds.
pub(super) const QUERY_INTERVAL_NS: i64 = 20_000_000;

/// The recorded position of an active recording.
#[derive(Debug)]
pub(super) struct RecordedPosition {
    recording_id: i64,
    session_id: i32,
    counter_id: Option<i32>,
    query: Option<Ticket<Option<i64>>>,
    next_query_ns: i64,
}

/// Result of a poll for the recorded position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PositionNews {
    Nothing,
    At(i64),
    /// The recording is not active any more.
    Ended,
}

impl RecordedPosition {
    /// Creates the recorded position of an active recording. Its counter is not known yet.
    pub(super) const fn of_recording(recording_id: i64, session_id: i32) -> Self {
        Self {
            recording_id,
            session_id,
            counter_id: None,
            query: None,
            next_query_ns: i64::MIN,
        }
    }

    /// Finds the counter of the active recording of a session. Returns `None` if the archive is on
    /// another driver, or does not record the session yet.
    pub(super) fn find(aeron: &Aeron, archive: &ArchiveLink, session_id: i32) -> Option<Self> {
        let (counters, archive_id) = (&aeron.counters_reader(), archive.archive_id());
        let counter_id = RecordingPositionKey::find_by_session(counters, session_id, archive_id)?;
        let key = RecordingPositionKey::of(counters, counter_id)?;
        Some(Self {
            counter_id: Some(counter_id),
            ..Self::of_recording(key.recording_id, session_id)
        })
    }

    /// Returns the recording id.
    pub(super) const fn recording_id(&self) -> i64 {
        self.recording_id
    }

    /// Reads the counter. Without a counter, sends a request if a request is due and the caller
    /// waits for the position (`is_awaited`).
    pub(super) fn poll(
        &mut self,
        aeron: &Aeron,
        archive: &mut ArchiveLink,
        is_awaited: bool,
        now_ns: i64,
    ) -> PositionNews {
        match self.counter_id {
            Some(counter_id) => self.read(aeron, counter_id),
            None => self.ask(aeron, archive, is_awaited, now_ns),
        }
    }

    /// Drops the request, because its session with the archive has ended.
    pub(super) fn forget_request(&mut self) {
        self.query = None;
    }

    /// Reads the value of the counter, and then its key. If another recording now has this counter
    /// id, the key shows it, and the value is not used.
    fn read(&self, aeron: &Aeron, counter_id: i32) -> PositionNews {
        let counters = &aeron.counters_reader();
        match counters.value(counter_id) {
            Some(value)
                if RecordingPositionKey::is_active(counters, counter_id, self.recording_id) =>
            {
                PositionNews::At(value)
            }
            _ => PositionNews::Ended,
        }
    }

    fn ask(
        &mut self,
        aeron: &Aeron,
        archive: &mut ArchiveLink,
        is_awaited: bool,
        now_ns: i64,
    ) -> PositionNews {
        if let Some(ticket) = &self.query {
            let answer = archive.take(ticket);
            if !matches!(answer, Answered::Pending) {
                self.query = None;
            }
            return match answer {
                Answered::Pending | Answered::Expired => PositionNews::Nothing,
                Answered::Value(Some(position)) => PositionNews::At(position),
                Answered::Value(None) | Answered::Refused(_) => PositionNews::Ended,
            };
        }
        if is_awaited && now_ns >= self.next_query_ns {
            self.next_query_ns = now_ns.saturating_add(QUERY_INTERVAL_NS);
            // The archive may have added the counter after the first search for it.
            if let Some(found) = Self::find(aeron, archive, self.session_id)
                && found.recording_id == self.recording_id
            {
                self.counter_id = found.counter_id;
                return PositionNews::Nothing;
            }
            self.query =
                archive.submit(&ArchiveCall::recording_position(self.recording_id), now_ns);
        }
        PositionNews::Nothing
    }
}

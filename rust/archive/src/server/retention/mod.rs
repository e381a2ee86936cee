//! Retention of the archive. A [`Round`] applies the policies to all recordings. This module
//! decides when a round begins, and makes new recordings wait while a round frees space. The module
//! [`crate::retention`] computes the deletions.
//!
//! A round begins when a recording enters a new segment or stops, when policies change, when a segment was copied to
//! object storage, and otherwise every five seconds. Without policies and named readers, no such round begins. A round
//! also begins when a client requests it, and when a new recording needs space. A round works in small steps, one in
//! each duty cycle of the conductor.

mod clock;
mod file;
mod linked;
mod log;
mod room;
mod round;

pub use file::RetentionFileError;
pub(super) use file::load_policies;
pub(super) use log::RetentionLog;
pub(super) use room::HeldRecordings;

use std::collections::VecDeque;

use aeron_protocol::archive::RequestIds;

use clock::ClockNotes;
use room::Room;
use round::Round;

use super::ArchiveError;
use super::conductor::ArchiveConductor;
use super::context::StepSizes;
use super::extension::{not_stored, outcomes_page};
use super::listing::Listing;
use crate::extensions::{ExtensionChange, NamedReader};
use crate::retention::{Holders, RetentionClock, RetentionOutcome, expiry_of};
use crate::storage::Storage;

/// Longest time between two rounds, in nanoseconds.
const ROUND_INTERVAL_NS: i64 = 5_000_000_000;
/// Maximum number of requests that wait for their rounds.
const MAX_REQUESTS: usize = 64;

/// A request to apply the policies, or to report the deletions that they would cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApplyRequest {
    /// Control session id and correlation id of the request.
    pub requester: RequestIds,
    /// Recording to which the policies are applied; `None` for all recordings.
    pub recording_id: Option<i64>,
    /// Whether the deletions are only reported.
    pub dry_run: bool,
}

/// State of retention. The conductor runs it.
pub(super) struct Retention<S> {
    log: RetentionLog<S>,
    requests: VecDeque<ApplyRequest>,
    round: Option<Round>,
    /// Whether a round without a request must begin.
    is_due: bool,
    next_round_ns: i64,
    room: Room,
    held: HeldRecordings,
    clock: RetentionClock,
    notes: ClockNotes,
    steps: StepSizes,
}

impl<S: Storage> Retention<S> {
    /// Creates the state of an archive that starts. Deletions are written to `log`.
    pub fn new(log: RetentionLog<S>, clock: RetentionClock, steps: StepSizes) -> Self {
        Self {
            log,
            requests: VecDeque::new(),
            round: None,
            is_due: true,
            next_round_ns: i64::MIN,
            room: Room::default(),
            held: HeldRecordings::default(),
            notes: ClockNotes::new(&clock),
            clock,
            steps,
        }
    }

    /// Requests a round, because recordings have grown or have stopped, or a segment was copied to object storage.
    pub fn trigger(&mut self) {
        self.is_due = true;
    }

    /// Returns the time by which ages are measured, in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Begins the running round again. Call it if policies or files of a recording have changed,
    /// because the results of the round do not take such changes into account.
    pub fn restart(&mut self) {
        self.is_due = true;
        if let Some(round) = &mut self.round {
            round.restart();
        }
    }

    /// Adds a request. The response is sent at the end of the request's round.
    ///
    /// # Errors
    /// Too many requests are waiting.
    pub fn request(&mut self, request: ApplyRequest) -> Result<(), ArchiveError> {
        if self.requests.len() >= MAX_REQUESTS {
            return Err(ArchiveError::generic(format!(
                "max requests to apply retention reached {MAX_REQUESTS}: wait for their responses"
            )));
        }
        self.requests.push_back(request);
        Ok(())
    }

    /// Returns the round that this duty cycle begins or continues.
    fn take_round(&mut self, now_ns: i64, has_work: bool) -> Option<Round> {
        if self.round.is_some() {
            return self.round.take();
        }
        // Recordings wait for this round, even if the last policy was removed in the meantime.
        if self.room.is_requested() {
            return Some(Round::new(None, true));
        }
        if let Some(request) = self.requests.pop_front() {
            return Some(Round::new(Some(request), false));
        }
        if !self.is_due && now_ns < self.next_round_ns {
            return None;
        }
        self.is_due = false;
        self.next_round_ns = now_ns.saturating_add(ROUND_INTERVAL_NS);
        has_work.then(|| Round::new(None, false))
    }
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Continues the round in progress, or begins a round if one is due. Then starts the recordings
    /// that have waited for room. Returns the work count.
    pub(super) fn run_retention(&mut self) -> usize {
        let mut work = 0;
        let extensions = self.store.extensions();
        let has_work = extensions.policy_count() > 0 || extensions.reader_count() > 0;
        self.update_clock(has_work);
        if let Some(mut round) = self.retention.take_round(self.now_ns, has_work) {
            work += 1;
            match round.step(self) {
                true => self.end_round(round),
                false => self.retention.round = Some(round),
            }
        }
        work + self.start_held_recordings()
    }

    fn end_round(&mut self, round: Round) {
        if round.is_for_room() {
            self.retention.room.on_round_ended();
        }
        self.tell_doubted(round.doubted());
        if let Some((requester, outcomes)) = round.into_response() {
            let page = outcomes_page(requester, &outcomes);
            self.list(
                requester,
                Listing::descriptors(requester.correlation_id, page),
            );
        }
    }

    /// Returns the readers, replays and operations that still need a part of a recording. Expired
    /// readers are left out. The caller adds what the policy allows without regard to ages.
    pub(super) fn holders(&self, recording_id: i64, end_position: i64) -> Holders<'_> {
        let has_expired = |reader: &NamedReader| self.has_expired(reader, end_position);
        let readers = self.store.extensions().readers_of(recording_id);
        let readers = readers.filter(|reader| !has_expired(reader));
        let readers = readers.map(|reader| (reader.name.as_str(), reader.position));
        let recording = self.store.recording(recording_id).ok();
        let copied_base = recording.and_then(|recording| {
            let end_base = recording.segment_base(end_position);
            self.objects.copied_base(recording, end_base)
        });
        let activity = recording.map(|recording| self.local_activity(recording));
        Holders {
            copied_base,
            doubted: None,
            readers: readers
                .chain(self.arriving_readers(recording_id, end_position))
                .collect(),
            leaving_reader: self.leaving_reader(recording_id, end_position),
            lowest_replay_position: activity.and_then(|it| it.lowest_replay_position),
            is_changing: self.store.is_changing(recording_id)
                || self.recordings.is_starting(recording_id),
            is_to_be_extended: self.recordings.is_to_be_extended(recording_id)
                || self.replications.is_destination(recording_id),
        }
    }

    fn has_expired(&self, reader: &NamedReader, end_position: i64) -> bool {
        expiry_of(reader, end_position, &self.retention.clock).is_some()
    }

    /// Removes the readers of a recording that have expired.
    fn expire_readers(&mut self, recording_id: i64, end_position: i64) {
        let readers = self.store.extensions().readers_of(recording_id);
        let expired: Vec<_> = readers
            .filter_map(|reader| {
                let expiry = expiry_of(reader, end_position, &self.retention.clock)?;
                Some((reader.clone(), expiry))
            })
            .collect();
        for (reader, expiry) in expired {
            let name = reader.name.clone();
            let removal = ExtensionChange::ReaderRemoved { recording_id, name };
            match self.store.extensions_mut().apply(vec![removal]) {
                Ok(()) => {
                    self.counters.retention.expired_readers.fetch_add(1);
                    self.retention.log.on_expired(self.now_ms, &reader, &expiry);
                }
                // An expired reader does not keep data, even if it cannot be removed. The next round tries again.
                Err(error) => self.report(&not_stored(error).message),
            }
        }
    }

    /// Executes the outcome of a round for one recording. Later duty cycles delete the files.
    fn remove(&mut self, outcome: &RetentionOutcome, first_base: i64) {
        let id = outcome.recording_id;
        let (activity, segment_length) = match self.store.recording(id) {
            Ok(recording) => (
                self.local_activity(recording),
                i64::from(recording.segment_length),
            ),
            Err(_) => return,
        };
        match self.store.remove(outcome, &activity) {
            Ok(operation) => {
                // Before the first file is deleted: a replay that finds no file compares its position with this start.
                self.replays.set_local_start(id, outcome.new_start_position);
                let bytes = outcome.new_start_position - first_base;
                debug_assert!(
                    bytes >= 0,
                    "recording {id}: retention cannot free {bytes} bytes"
                );
                let counters = &self.counters.retention;
                counters.freed_bytes.fetch_add(bytes);
                let segments = (bytes + segment_length - 1) / segment_length;
                counters.freed_segments.fetch_add(segments);
                self.retention.log.on_freed(self.now_ms, outcome, bytes);
                self.deletions.begin_unrequested(operation);
            }
            Err(error) => self.report(&format!("retention of recording {id}: {error}")),
        }
    }
}

//! [`ArchiveConductor`]: executes the requests of clients and of the process that embeds the archive, and continues
//! their operations.
//!
//! * The interface: `requests` (the table of [`ConductorRequest`], [`Requesters`]).
//! * An operation that needs several owners has a file with its name: `start_recording`, `start_replay`, `replicate`,
//!   `maintenance` (truncate, purge, detach, migrate), `queries`, `named_readers`, `recording_labels`,
//!   `retention_policies`, `find_position`, `copied_ranges`, `copy_segments`.
//! * The owners have modules of their own beside this one: `recording`, `replay`, `replication`, `retention`,
//!   `deletions`, `objects`, `scrub`. If an owner's method uses other owners, they are arguments of the method.

mod copied_ranges;
mod copy_segments;
mod find_position;
mod held;
mod maintenance;
mod named_readers;
mod queries;
mod recording_labels;
mod replicate;
mod requests;
mod retention_policies;
mod start_recording;
mod start_replay;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use aeron_agent::crash;
use aeron_client::Aeron;

use super::counters::ArchiveCounters;
use super::deletions::Deletions;
use super::listing::{ListingSource, SubscriptionEntry};
use super::objects::ObjectCopies;
use super::outlets::ArchiveOutlets;
use super::recording::Recordings;
use super::replay::Replays;
use super::replication::Replications;
use super::retention::{Retention, RetentionTurn};
use super::scrub::Scrubber;
use crate::catalog::RecordingDescriptor;
use crate::storage::Storage;
use crate::store::{ArchiveStore, RecordingActivity};
use copied_ranges::RangesRequest;
use find_position::TimeSearches;
use held::HeldRequests;
use start_recording::HeldRecording;
use start_replay::HeldReplay;

pub(super) use requests::{
    Caller, ConductorRequest, Execution, Later, ReaderCommit, Requesters, WantedPosition,
};

/// Owns the archive's state. Runs on one thread. The recorder and the replayer run on the same thread or on threads of
/// their own.
pub(super) struct ArchiveConductor<S: Storage + Clone> {
    archive_id: i64,
    /// Id of the next control session or replication.
    next_id: i64,
    aeron: Aeron,
    store: ArchiveStore<S>,
    recordings: Recordings<S>,
    replays: Replays,
    replications: Replications,
    deletions: Deletions,
    retention: Retention<S>,
    objects: ObjectCopies,
    scrubber: Scrubber<S>,
    searches: TimeSearches,
    /// Requests that wait until retention has made room.
    held_recordings: HeldRequests<HeldRecording>,
    /// Requests that wait for the position counter or the copies of their recording.
    held_replays: HeldRequests<HeldReplay>,
    /// Requests that wait until the copies are known, because the archive has just started.
    held_searches: HeldRequests<WantedPosition>,
    held_ranges: HeldRequests<RangesRequest>,
    /// File of the policies of streams and channels; `None` if requests set them.
    retention_file: Option<PathBuf>,
    outlets: ArchiveOutlets,
}

/// The parts of which a conductor is made.
pub(super) struct ArchiveParts<S: Storage + Clone> {
    pub archive_id: i64,
    /// Id of the first control session or replication.
    pub first_id: i64,
    pub aeron: Aeron,
    pub store: ArchiveStore<S>,
    pub recordings: Recordings<S>,
    pub replays: Replays,
    pub replications: Replications,
    pub retention: Retention<S>,
    pub objects: ObjectCopies,
    pub scrubber: Scrubber<S>,
    pub retention_file: Option<PathBuf>,
    pub outlets: ArchiveOutlets,
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    pub fn new(parts: ArchiveParts<S>) -> Self {
        Self {
            archive_id: parts.archive_id,
            next_id: parts.first_id,
            aeron: parts.aeron,
            store: parts.store,
            recordings: parts.recordings,
            replays: parts.replays,
            replications: parts.replications,
            deletions: Deletions::default(),
            retention: parts.retention,
            objects: parts.objects,
            scrubber: parts.scrubber,
            searches: TimeSearches::default(),
            held_recordings: HeldRequests::default(),
            held_replays: HeldRequests::default(),
            held_searches: HeldRequests::default(),
            held_ranges: HeldRequests::default(),
            retention_file: parts.retention_file,
            outlets: parts.outlets,
        }
    }

    /// Resumes the recording subscriptions of the archive's former process.
    pub fn resume_recordings(&mut self) {
        self.recordings
            .resume(&self.aeron, &mut self.store, &mut self.outlets);
    }

    /// Returns the archive's client.
    pub fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    pub fn counters(&self) -> &ArchiveCounters {
        &self.outlets.counters
    }

    /// Returns the outlets, for a requester that adds replies after those of the conductor.
    pub fn outlets(&mut self) -> &mut ArchiveOutlets {
        &mut self.outlets
    }

    /// Returns the monotonic time of the duty cycle.
    pub fn now_ns(&self) -> i64 {
        self.outlets.now_ns()
    }

    /// Returns the next id of the sequence that control sessions and replications share.
    pub fn take_id(&mut self) -> i64 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1) & i64::MAX;
        id
    }

    /// Runs the client, serves requests, and continues the operations in progress. Returns the work count.
    pub fn do_work(&mut self, requesters: &mut impl Requesters<S>) -> usize {
        self.outlets.begin_cycle();
        let mut work = self.aeron.do_work() + self.start_replays();
        work += self.run_recordings();
        work += requesters.send_requests(self);
        work += self.begin_held_replays()
            + self.list_held_ranges()
            + self.begin_held_searches()
            + self.run_replications();
        work += self.poll_replays() + self.run_retention() + self.delete_files();
        work += self.search_by_time() + self.scrub() + self.copy_segments();
        if !self.aeron.is_closed() {
            // Images also end when the driver has died. Then the subscriptions must stay stored for the next start.
            self.recordings
                .store_memory(&mut self.store, &mut self.outlets);
        }
        let notices = self.outlets.take_notices();
        work += requesters.receive(notices, self);
        self.count();
        self.outlets.end_cycle();
        work
    }

    /// Ends the archive: stores the stop positions that the recorder reported, sends the signals of
    /// these recordings, and closes all resources. [`end_client`](Self::end_client) must follow.
    ///
    /// If the Aeron client has ended (`is_abort`), the catalog is not changed. The recovery at the
    /// next start finds the ends of the recordings.
    pub fn close(&mut self, is_abort: bool, requesters: &mut impl Requesters<S>) {
        for report in crash::take_reports() {
            let text = report.lines().next().unwrap_or_default();
            self.outlets.report_evidence(text, &report);
        }
        // Ends the object thread first, because it writes into the directory. After this function, another archive may
        // take over the directory.
        self.objects.close();
        if !is_abort {
            self.end_replications();
            self.retention.store_clock(&mut self.store, &self.outlets);
            self.recordings.close(&mut self.store, &mut self.outlets);
            let notices = self.outlets.take_notices();
            requesters.receive(notices, self);
        }
        self.replays.close_all();
    }

    /// Closes the client and releases the directory, after the requesters have ended.
    pub fn end_client(&mut self) {
        self.aeron.close();
        self.outlets.close();
    }

    /// Runs the recordings. It runs before the requests. Otherwise a client could request the stop position after the
    /// response to its stop request, but before the position is stored.
    fn run_recordings(&mut self) -> usize {
        let (now_ns, now_ms) = (self.outlets.now_ns(), self.outlets.now_ms());
        let is_waiting_for_room = self.recordings.has_arrivals(now_ms)
            && self.retention.is_making_room(&self.store, now_ns);
        let work = self.recordings.do_work(
            &self.aeron,
            &mut self.store,
            &self.replays,
            is_waiting_for_room,
            &mut self.outlets,
        );
        if self.recordings.take_new_segment() {
            self.retention.trigger();
            self.objects.trigger();
        }
        work
    }

    /// Applies the retention policies, then starts the recordings that have waited for room.
    fn run_retention(&mut self) -> usize {
        let mut turn = RetentionTurn {
            store: &mut self.store,
            recordings: &self.recordings,
            replays: &self.replays,
            replications: &self.replications,
            objects: &mut self.objects,
            deletions: &mut self.deletions,
            outlets: &mut self.outlets,
        };
        self.retention.do_work(&mut turn) + self.start_held_recordings()
    }

    /// Deletes the next file of the unfinished deletions, or compacts the catalog if no deletion is in progress.
    fn delete_files(&mut self) -> usize {
        let Self {
            deletions,
            store,
            outlets,
            ..
        } = self;
        deletions.do_work(store, &self.replays, outlets) + deletions.compact_catalog(store, outlets)
    }

    fn scrub(&mut self) -> usize {
        self.scrubber
            .do_work(&self.store, &self.recordings, &mut self.outlets)
    }

    fn count(&self) {
        let counters = &self.outlets.counters;
        let set = |counter: &aeron_client::Counter, value: usize| counter.set(value as i64);
        set(&counters.recording_sessions, self.recordings.count());
        set(&counters.replay_sessions, self.replays.count());
        set(&counters.blocked_images, self.recordings.blocked_count());
        counters.lost_bytes.set(self.recordings.lost_bytes() as i64);
    }

    fn activity(&self, recording_id: i64) -> RecordingActivity {
        RecordingActivity {
            recorded_position: self.recordings.position(recording_id),
            lowest_replay_position: self.replays.lowest_replay_position(recording_id),
        }
    }

    /// Returns whether a request must wait until the copies of a recording are known. If `recording_id` is `None`, the
    /// request needs the copies of all recordings.
    fn must_wait_for_copies(&self, recording_id: Option<i64>) -> bool {
        self.objects
            .unknown()
            .is_awaited(recording_id, self.now_ns())
    }
}

impl<S: Storage + Clone> ListingSource for ArchiveConductor<S> {
    fn next_recording(&self, recording_id: i64) -> Option<&RecordingDescriptor> {
        self.store.listed_from(recording_id).next()
    }

    fn subscription(&self, index: usize) -> Option<SubscriptionEntry<'_>> {
        self.recordings.subscription(index)
    }
}

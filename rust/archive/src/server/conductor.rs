//! [`ArchiveConductor`]: one function for each operation of the archive, and the conductor's duty
//! cycle.

use std::path::PathBuf;
use std::sync::Arc;

use aeron_agent::{EpochClock, NanoClock, crash};
use aeron_client::Aeron;
use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use super::control::{ControlStreams, Response, connect_failure};
use super::counters::ArchiveCounters;
use super::extension::{HeldRanges, TimeSearches};
use super::listing::{Listing, ListingSource, SubscriptionEntry};
use super::maintenance::Deletions;
use super::objects::ObjectCopies;
use super::outbox::Outbox;
use super::recording::{RecordingRequest, Recordings};
use super::reload::ConductorNotes;
use super::replay::Replays;
use super::replaying::HeldReplays;
use super::replication::Replications;
use super::retention::Retention;
use super::scrub::Scrubber;
use super::sessions::ControlSessions;
use super::{ArchiveError, ErrorReports};
use crate::catalog::RecordingDescriptor;
use crate::storage::Storage;
use crate::store::{ArchiveStore, StoreError};

/// Owns the archive's state, and serves its requests. Runs on one thread. The recorder and the
/// replayer run on the same thread or on threads of their own.
pub(super) struct ArchiveConductor<S: Storage + Clone> {
    pub(super) archive_id: i64,
    pub(super) aeron: Aeron,
    pub(super) store: ArchiveStore<S>,
    pub(super) recordings: Recordings<S>,
    pub(super) replays: Replays,
    pub(super) held_replays: HeldReplays,
    pub(super) replications: Replications,
    pub(super) deletions: Deletions,
    pub(super) retention: Retention<S>,
    pub(super) searches: TimeSearches,
    pub(super) objects: ObjectCopies,
    pub(super) held_ranges: HeldRanges,
    pub(super) scrubber: Scrubber<S>,
    pub(super) sessions: ControlSessions,
    pub(super) streams: ControlStreams,
    pub(super) outbox: Outbox,
    pub(super) counters: ArchiveCounters,
    pub(super) reports: Box<dyn ErrorReports>,
    pub(super) notes: ConductorNotes,
    /// File of the policies of streams and channels; `None` if requests set them.
    pub(super) retention_file: Option<PathBuf>,
    pub(super) clocks: Clocks,
    pub(super) now_ns: i64,
    pub(super) now_ms: i64,
}

/// Clocks of an archive.
#[derive(Clone)]
pub(super) struct Clocks {
    /// Wall clock.
    pub epoch: Arc<dyn EpochClock>,
    /// Monotonic clock.
    pub nano: Arc<dyn NanoClock>,
}

/// Recording.
impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Subscribes to a stream and records each of its images. Responds with the registration id
    /// when the driver has added the subscription.
    ///
    /// # Errors
    /// See [`Recordings::start`].
    pub fn start_recording_now(
        &mut self,
        request: &RecordingRequest<'_>,
    ) -> Result<(), ArchiveError> {
        self.recordings.start(&self.aeron, &self.store, request)
    }

    /// Subscribes to a stream and extends a recording by its image. Responds like
    /// [`start_recording_now`](Self::start_recording_now).
    ///
    /// # Errors
    /// See [`Recordings::extend`].
    pub fn extend_recording_now(
        &mut self,
        recording_id: i64,
        request: &RecordingRequest<'_>,
    ) -> Result<(), ArchiveError> {
        self.recordings
            .extend(&self.aeron, &self.store, recording_id, request)
            .map(drop)
    }

    /// Stops the recordings of the subscription with this stream id and channel.
    ///
    /// # Errors
    /// No subscription has the channel and stream.
    pub fn stop_recording(&mut self, stream_id: i32, channel: &str) -> Result<i64, ArchiveError> {
        self.recordings
            .stop_by_channel(stream_id, channel)
            .map(|()| 0)
    }

    /// Stops the recordings of the subscription with this id.
    ///
    /// # Errors
    /// No subscription has the id.
    pub fn stop_recording_subscription(
        &mut self,
        subscription_id: i64,
    ) -> Result<i64, ArchiveError> {
        self.recordings
            .stop_by_subscription(subscription_id)
            .map(|()| 0)
    }

    /// Stops one recording. Returns 1 if it was active, otherwise 0.
    ///
    /// # Errors
    /// The recording does not exist.
    pub fn stop_recording_by_identity(&mut self, recording_id: i64) -> Result<i64, ArchiveError> {
        self.store.recording(recording_id)?;
        Ok(self.recordings.stop_by_identity(recording_id).into())
    }
}

/// Queries.
impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Returns the start position of a recording.
    ///
    /// # Errors
    /// The recording does not exist.
    pub fn start_position(&self, recording_id: i64) -> Result<i64, ArchiveError> {
        Ok(self.store.recording(recording_id)?.start_position)
    }

    /// Returns the recorded position of an active recording; −1 if the recording is not active.
    ///
    /// # Errors
    /// The recording does not exist.
    pub fn recording_position(&self, recording_id: i64) -> Result<i64, ArchiveError> {
        self.store.recording(recording_id)?;
        Ok(self.recordings.position(recording_id).unwrap_or(NULL_VALUE))
    }

    /// Returns the stop position of a recording; −1 while the recording is active.
    ///
    /// # Errors
    /// The recording does not exist.
    pub fn stop_position(&self, recording_id: i64) -> Result<i64, ArchiveError> {
        Ok(self.store.recording(recording_id)?.stop_position)
    }

    /// Returns the recorded position of an active recording, or the stop position of another
    /// recording.
    ///
    /// # Errors
    /// The recording does not exist.
    pub fn max_recorded_position(&self, recording_id: i64) -> Result<i64, ArchiveError> {
        let stop_position = self.stop_position(recording_id)?;
        Ok(self
            .recordings
            .position(recording_id)
            .unwrap_or(stop_position))
    }

    /// Finds the recording with the highest id that has this session id and stream id and a channel
    /// that contains a text. The id is at least `min_recording_id`.
    ///
    /// Returns −1 if no recording matches.
    ///
    /// # Errors
    /// `min_recording_id` is negative.
    pub fn find_last_matching_recording(
        &self,
        min_recording_id: i64,
        session_id: i32,
        stream_id: i32,
        channel_fragment: &[u8],
    ) -> Result<i64, ArchiveError> {
        if min_recording_id < 0 {
            return Err(ArchiveError::new(
                aeron_protocol::archive::ArchiveErrorCode::UnknownRecording,
                format!("minRecordingId={min_recording_id} < 0"),
            ));
        }
        let matches = |recording: &&RecordingDescriptor| {
            recording.session_id == session_id
                && recording.stream_id == stream_id
                && super::listing::contains(recording.original_channel.as_bytes(), channel_fragment)
        };
        let newest = self
            .store
            .recordings()
            .rev()
            .take_while(|recording| recording.recording_id >= min_recording_id)
            .find(matches);
        Ok(newest.map_or(NULL_VALUE, |recording| recording.recording_id))
    }

    /// Begins a listing. The client's session then sends some descriptors in each duty cycle.
    pub fn list(&mut self, requester: RequestIds, listing: Listing) {
        if let Err(error) = self.sessions.begin_listing(requester, listing) {
            self.outbox.refuse(requester, error);
        }
    }

    /// Replaces the channel of a recording.
    pub fn update_channel(&mut self, requester: RequestIds, recording_id: i64, channel: &str) {
        if self.sessions.is_listing(requester.control_session_id) {
            let error = ArchiveError::new(
                aeron_protocol::archive::ArchiveErrorCode::ActiveListing,
                "active listing already in progress",
            );
            return self.outbox.refuse(requester, error);
        }
        match self.store.recording(recording_id) {
            Ok(_) => {}
            Err(error @ StoreError::Unserved { .. }) => {
                return self.outbox.refuse(requester, error.into());
            }
            Err(_) => {
                let unknown = Response::RecordingUnknown(recording_id);
                return self.outbox.respond(requester, unknown);
            }
        }
        let updated = crate::channel::stripped(channel)
            .map_err(ArchiveError::from)
            .and_then(|stripped| {
                Ok(self
                    .store
                    .update_channel(recording_id, channel, &stripped)?)
            });
        let response = Response::of(updated.map(|()| 0));
        self.outbox.respond(requester, response);
    }
}

/// The duty cycle.
impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Runs the client, serves requests, and continues the operations in progress. Returns the work count.
    pub fn do_work(&mut self) -> usize {
        self.now_ns = self.clocks.nano.nano_time();
        self.now_ms = self.clocks.epoch.time_ms();
        let mut work = self.aeron.do_work() + self.start_replays();
        // Runs before the requests. Otherwise a client could request the stop position after the response to its stop
        // request, but before the position is stored.
        let is_waiting_for_room =
            self.recordings.has_arrivals(self.now_ms) && self.is_making_room();
        work += self.recordings.do_work(
            &self.aeron,
            &mut self.store,
            &self.replays,
            self.now_ms,
            is_waiting_for_room,
            &mut self.outbox,
        );
        if self.recordings.take_new_segment() {
            self.retention.trigger();
            self.objects.trigger();
        }
        self.report_notes();
        work += self.poll_requests();
        work += self.begin_held_replays()
            + self.list_held_ranges()
            + self.begin_held_searches()
            + self.run_replications();
        work += self.poll_replays() + self.run_retention() + self.delete_files();
        work += self.compact_catalog();
        work += self.search_by_time() + self.scrub() + self.copy_segments();
        if !self.aeron.is_closed() {
            // Images also end when the driver has died. Then the subscriptions must stay stored for the next start.
            self.recordings.store_memory(&mut self.store);
        }
        work += self.sessions.deliver(&mut self.outbox, self.now_ns);
        work += self.run_sessions() + self.take_notes();
        self.reports.heartbeat(self.now_ms);
        self.count();
        work
    }

    /// Ends the archive: stores the stop positions that the recorder reported, sends the signals of
    /// these recordings, and closes all resources.
    ///
    /// If the Aeron client has ended (`is_abort`), the catalog is not changed. The recovery at the
    /// next start finds the ends of the recordings.
    pub fn close(&mut self, is_abort: bool) {
        self.take_notes();
        for report in crash::take_reports() {
            let text = report.lines().next().unwrap_or_default();
            self.reports.report_evidence(self.now_ms, text, &report);
        }
        // Ends the object thread first, because it writes into the directory. After this function, another archive may
        // take over the directory.
        self.objects.close();
        if !is_abort {
            self.end_replications();
            self.store_clock();
            self.recordings
                .close(&mut self.store, self.now_ms, &mut self.outbox);
            self.report_notes();
            self.sessions.deliver(&mut self.outbox, self.now_ns);
        }
        self.replays.close_all();
        self.sessions.close_all();
        self.aeron.close();
        self.reports.close();
    }

    /// Reports what the recordings tell the operator.
    fn report_notes(&mut self) {
        for note in self.recordings.take_notes() {
            self.report(&note);
        }
        for note in self.recordings.take_client_notes() {
            self.report_client(&note);
        }
    }

    /// Reports an error of the archive or its data to the operator of the archive.
    pub fn report(&mut self, error: &str) {
        self.reports.report(self.now_ms, error);
    }

    /// Reports an error that a client has caused. Without authentication, anybody can cause it any number of times. So
    /// the text has no session id, correlation id or length that the client chose.
    pub fn report_client(&mut self, error: &str) {
        self.reports.report_client(self.now_ms, error);
    }

    fn poll_requests(&mut self) -> usize {
        // The streams are moved out of `self`, because serving a request changes the other fields.
        let mut streams = std::mem::take(&mut self.streams);
        let polled = streams.poll(|image, request| self.on_request(image, request));
        self.streams = streams;
        polled.unwrap_or_else(|error| {
            self.report(&error.message);
            0
        })
    }

    fn count(&mut self) {
        self.counters.conductor_cycles.measure(self.now_ns);
        let counters = &self.counters;
        counters.control_sessions.set(self.sessions.count() as i64);
        counters
            .recording_sessions
            .set(self.recordings.count() as i64);
        counters.replay_sessions.set(self.replays.count() as i64);
        let (blocked, lost_bytes) = (
            self.recordings.blocked_count(),
            self.recordings.lost_bytes(),
        );
        counters.blocked_images.set(blocked as i64);
        counters.lost_bytes.set(lost_bytes as i64);
    }

    fn run_sessions(&mut self) -> usize {
        let source = Lists {
            store: &self.store,
            recordings: &self.recordings,
        };
        let (reports, now_ms) = (&mut self.reports, self.now_ms);
        let replays = &mut self.replays;
        let admitted = self
            .sessions
            .admit(&self.aeron, self.now_ns, now_ms, |error| {
                reports.report_client(now_ms, &connect_failure(&error));
            });
        let dropped = self.sessions.take_dropped();
        if dropped > 0 {
            self.counters.dropped_connects.fetch_add(dropped as i64);
        }
        let worked = self
            .sessions
            .do_work(self.now_ns, now_ms, &source, |session_id, reason| {
                replays.on_control_session_ended(session_id);
                if let Some(reason) = reason {
                    reports.report_client(now_ms, &format!("WARN - {reason}"));
                }
            });
        if let Some(failure) = self.sessions.take_authenticator_failure() {
            self.reports.report_client(now_ms, &failure);
        }
        admitted + worked
    }
}

/// The recordings and subscriptions that clients may list.
struct Lists<'a, S: Storage + Clone> {
    store: &'a ArchiveStore<S>,
    recordings: &'a Recordings<S>,
}

impl<S: Storage + Clone> ListingSource for Lists<'_, S> {
    fn next_recording(&self, recording_id: i64) -> Option<&RecordingDescriptor> {
        self.store.listed_from(recording_id).next()
    }

    fn subscription(&self, index: usize) -> Option<SubscriptionEntry<'_>> {
        self.recordings.subscription(index)
    }
}

//! The conductor's operations for replay requests.

use aeron_client::Image;
use aeron_protocol::archive::extension::ReplayAtRateRequest;
use aeron_protocol::archive::{BoundedReplayRequest, NULL_VALUE, ReplayRequest, RequestIds};

use super::ArchiveError;
use super::conductor::ArchiveConductor;
use super::control::Response;
use super::replay::{ReplayEvent, ReplayRange, ReplayRequested, RequestedPace};
use crate::storage::Storage;
use crate::store::StoreError;

/// A replay request: bounded by a counter or unbounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayOrder<'a> {
    pub requester: RequestIds,
    pub recording_id: i64,
    pub range: ReplayRange,
    pub pace: RequestedPace,
    pub limit_counter_id: Option<i32>,
    pub stream_id: i32,
    pub channel: &'a str,
    /// Correlation id of the image whose response channel receives the replay.
    pub response_correlation_id: Option<i64>,
}

/// Replay requests that must wait, for one of two reasons. The recording is starting: the archive does not have the
/// position counter yet, although the client may have found the counter. Or the archive has just started, and does not
/// know the copies in object storage yet.
#[derive(Debug, Default)]
pub(super) struct HeldReplays {
    held: Vec<HeldReplay>,
}

#[derive(Debug)]
struct HeldReplay {
    channel: String,
    /// The order without its channel.
    order: ReplayOrder<'static>,
}

impl HeldReplays {
    fn hold(&mut self, order: &ReplayOrder<'_>) {
        self.held.push(HeldReplay {
            channel: order.channel.to_owned(),
            order: ReplayOrder {
                channel: "",
                ..*order
            },
        });
    }
}

impl<'a> ReplayOrder<'a> {
    /// Creates the order from a replay request.
    pub fn of(requester: RequestIds, request: &ReplayRequest<'_>, channel: &'a str) -> Self {
        Self {
            requester,
            recording_id: request.recording_id,
            range: ReplayRange {
                position: request.position,
                length: request.length,
                file_io_max_length: request.file_io_max_length,
            },
            pace: RequestedPace::default(),
            limit_counter_id: None,
            stream_id: request.replay_stream_id,
            channel,
            response_correlation_id: None,
        }
    }

    /// Creates the order from a bounded replay request.
    pub fn of_bounded(
        requester: RequestIds,
        request: &BoundedReplayRequest<'_>,
        channel: &'a str,
    ) -> Self {
        Self {
            requester,
            recording_id: request.recording_id,
            range: ReplayRange {
                position: request.position,
                length: request.length,
                file_io_max_length: request.file_io_max_length,
            },
            pace: RequestedPace::default(),
            limit_counter_id: Some(request.limit_counter_id),
            stream_id: request.replay_stream_id,
            channel,
            response_correlation_id: None,
        }
    }

    /// Creates the order from a request for a replay at a rate.
    ///
    /// # Errors
    /// A value of the pace is neither positive nor −1.
    pub fn of_paced(
        requester: RequestIds,
        request: &ReplayAtRateRequest<'_>,
        channel: &'a str,
    ) -> Result<Self, ArchiveError> {
        Ok(Self {
            requester,
            recording_id: request.recording_id,
            range: ReplayRange {
                position: request.position,
                length: request.length,
                file_io_max_length: request.file_io_max_length,
            },
            pace: RequestedPace::new(request.max_bytes_per_second, request.speed_millionths)?,
            limit_counter_id: None,
            stream_id: request.replay_stream_id,
            channel,
            response_correlation_id: None,
        })
    }
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Begins a replay at once, or when the position counter and the copies of its recording are known. The response is
    /// sent when the segment file of the replay's first position is open.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub fn replay(&mut self, order: &ReplayOrder<'_>) -> Result<(), ArchiveError> {
        if !self.must_wait(order) {
            return self.begin_replay(order);
        }
        self.replays.check_room(self.held_replays.held.len())?;
        self.held_replays.hold(order);
        Ok(())
    }

    /// Begins the held replays that need not wait any more. Returns the work count.
    pub(super) fn begin_held_replays(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.held_replays.held);
        let is_ready = |held: &mut HeldReplay| !self.must_wait(&held.order);
        let ready: Vec<HeldReplay> = held.extract_if(.., is_ready).collect();
        self.held_replays.held = held;
        for held in &ready {
            let order = ReplayOrder {
                channel: &held.channel,
                ..held.order
            };
            if let Err(error) = self.begin_replay(&order) {
                self.outbox.refuse(order.requester, error);
            }
        }
        ready.len()
    }

    fn must_wait(&self, order: &ReplayOrder<'_>) -> bool {
        let id = order.recording_id;
        let unknown = &self.objects.unknown;
        self.recordings.is_starting(id)
            || (self.begins_before_start(order) && unknown.is_awaited(Some(id), self.now_ns))
    }

    /// Returns whether a replay begins before the start position of its recording in the catalog.
    fn begins_before_start(&self, order: &ReplayOrder<'_>) -> bool {
        let recording = self.store.recording(order.recording_id);
        order.range.position != NULL_VALUE
            && recording.is_ok_and(|recording| order.range.position < recording.start_position)
    }

    fn begin_replay(&mut self, order: &ReplayOrder<'_>) -> Result<(), ArchiveError> {
        if self.begins_before_start(order) {
            self.objects.unknown.check(order.recording_id)?;
        }
        let recording = match self.store.recording(order.recording_id) {
            Err(error @ StoreError::Unserved { .. }) => return Err(error.into()),
            found => found.ok(),
        };
        let copied = recording.and_then(|it| self.objects.extended(it, order.range.position));
        let request = ReplayRequested {
            requester: order.requester,
            owner: self.sessions.principal(order.requester.control_session_id),
            recording_id: order.recording_id,
            recording: copied.as_ref().or(recording),
            local_start: recording.map_or(0, |recording| recording.start_position),
            active_position: self.recordings.position_counter(order.recording_id),
            limit_counter_id: order.limit_counter_id,
            range: order.range,
            pace: order.pace,
            channel: order.channel,
            stream_id: order.stream_id,
            response_correlation_id: order.response_correlation_id,
        };
        self.replays.request(&self.aeron, &request)
    }

    /// Creates a token with which a client can request a replay on another publication.
    pub fn replay_token(&mut self, requester: RequestIds, recording_id: i64) -> i64 {
        self.replays
            .issue_token(requester.control_session_id, recording_id, self.now_ns)
    }

    /// Stops a replay. It is not an error if the replay has ended.
    ///
    /// # Errors
    /// Another user has requested the replay, and the role of this user may not record.
    pub fn stop_replay(
        &mut self,
        requester: RequestIds,
        replay_session_id: i64,
    ) -> Result<i64, ArchiveError> {
        let owner = self.replays.owner(replay_session_id);
        self.sessions
            .check_owner(requester.control_session_id, owner)?;
        self.replays.stop(replay_session_id);
        Ok(0)
    }

    /// Stops all replays of a recording; −1 stops all replays.
    pub fn stop_all_replays(&mut self, recording_id: i64) -> i64 {
        let recording_id = (recording_id != NULL_VALUE).then_some(recording_id);
        self.replays.stop_all(recording_id);
        0
    }

    /// Returns the order of a request with a token. Such a request was received from another image
    /// than that of its control session. The response goes to the control session of the token.
    ///
    /// # Errors
    /// The token is unknown or expired.
    pub fn with_token<'a>(
        &mut self,
        mut order: ReplayOrder<'a>,
        token: i64,
        image: &Image,
    ) -> Result<ReplayOrder<'a>, ArchiveError> {
        let session = self
            .replays
            .token_session(token, order.recording_id, self.now_ns)
            .ok_or_else(|| ArchiveError::generic("Unknown session or token timeout"))?;
        order.requester.control_session_id = session;
        order.response_correlation_id = Some(image.correlation_id());
        Ok(order)
    }

    /// Stops the replays of a recording that is being truncated.
    pub(super) fn stop_replays_of(&mut self, recording_id: i64) {
        self.replays.stop_all(Some(recording_id));
    }

    /// Starts the replays whose publications the driver has added. Returns the work count.
    pub(super) fn start_replays(&mut self) -> usize {
        let mut events = Vec::new();
        let now_ns = self.now_ns;
        let work = self
            .replays
            .poll_publications(now_ns, |event| events.push(event));
        self.on_replay_events(events);
        work
    }

    /// Processes the events of the replayer. Returns the work count.
    pub(super) fn poll_replays(&mut self) -> usize {
        let mut events = Vec::new();
        let work = self.replays.poll(self.now_ns, |event| events.push(event));
        self.on_replay_events(events);
        work
    }

    fn on_replay_events(&mut self, events: Vec<ReplayEvent>) {
        for event in events {
            match event {
                ReplayEvent::Started {
                    requester,
                    replay_session_id,
                } => self
                    .outbox
                    .respond(requester, Response::Ok(replay_session_id)),
                ReplayEvent::Failed {
                    requester,
                    error,
                    damage,
                } => {
                    match damage {
                        Some(damage) => self.report(&damage),
                        None => self.report_client(&error.message),
                    }
                    self.outbox.refuse(requester, error);
                }
                ReplayEvent::Ended { .. } => {}
            }
        }
    }
}

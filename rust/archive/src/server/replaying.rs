//! The conductor's requests about replays.

use aeron_client::Image;
use aeron_protocol::archive::{BoundedReplayRequest, NULL_VALUE, ReplayRequest, RequestIds};

use super::ArchiveError;
use super::conductor::ArchiveConductor;
use super::control::Response;
use super::replay::{ReplayEvent, ReplayRange, ReplayRequested};
use crate::storage::Storage;

/// A request to replay, bounded or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayOrder<'a> {
    pub requester: RequestIds,
    pub recording_id: i64,
    pub range: ReplayRange,
    pub limit_counter_id: Option<i32>,
    pub stream_id: i32,
    pub channel: &'a str,
    /// Image whose response channel the replay goes to.
    pub response_correlation_id: Option<i64>,
}

/// Replays of recordings whose counters the driver has not announced yet: clients may see a counter before the archive does.
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
    /// Reads a replay request.
    pub fn of(requester: RequestIds, request: &ReplayRequest<'_>, channel: &'a str) -> Self {
        Self {
            requester,
            recording_id: request.recording_id,
            range: ReplayRange {
                position: request.position,
                length: request.length,
                file_io_max_length: request.file_io_max_length,
            },
            limit_counter_id: None,
            stream_id: request.replay_stream_id,
            channel,
            response_correlation_id: None,
        }
    }

    /// Reads a bounded replay request.
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
            limit_counter_id: Some(request.limit_counter_id),
            stream_id: request.replay_stream_id,
            channel,
            response_correlation_id: None,
        }
    }
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Begins a replay, at once or when the counter of its recording is there. The response comes when its first frame is there.
    ///
    /// # Errors
    /// The request is refused.
    pub fn replay(&mut self, order: &ReplayOrder<'_>) -> Result<(), ArchiveError> {
        if !self.recordings.is_starting(order.recording_id) {
            return self.begin_replay(order);
        }
        self.replays.check_room(self.held_replays.held.len())?;
        self.held_replays.hold(order);
        Ok(())
    }

    /// Begins the held replays of recordings that are no longer starting. Returns the work count.
    pub(super) fn begin_held_replays(&mut self) -> usize {
        let recordings = &self.recordings;
        let is_ready = |held: &mut HeldReplay| !recordings.is_starting(held.order.recording_id);
        let ready: Vec<HeldReplay> = self.held_replays.held.extract_if(.., is_ready).collect();
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

    fn begin_replay(&mut self, order: &ReplayOrder<'_>) -> Result<(), ArchiveError> {
        let recording = self.store.recording(order.recording_id).ok();
        let request = ReplayRequested {
            requester: order.requester,
            recording_id: order.recording_id,
            recording,
            active_position: self.recordings.position_counter(order.recording_id),
            limit_counter_id: order.limit_counter_id,
            range: order.range,
            channel: order.channel,
            stream_id: order.stream_id,
            response_correlation_id: order.response_correlation_id,
        };
        self.replays.request(&self.aeron, &request)
    }

    /// Gives a token with which a replay can be requested over another connection.
    pub fn replay_token(&mut self, requester: RequestIds, recording_id: i64) -> i64 {
        self.replays
            .give_token(requester.control_session_id, recording_id, self.now_ns)
    }

    /// Stops a replay; one that is over is no error.
    pub fn stop_replay(&mut self, replay_session_id: i64) -> i64 {
        self.replays.stop(replay_session_id);
        0
    }

    /// Stops all replays of a recording, or with −1 of all.
    pub fn stop_all_replays(&mut self, recording_id: i64) -> i64 {
        let recording_id = (recording_id != NULL_VALUE).then_some(recording_id);
        self.replays.stop_all(recording_id);
        0
    }

    /// The order of a request that came with a token over another connection than its session's, addressed to the session of the token.
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

    /// Stops the replays of a recording that is cut.
    pub(super) fn stop_replays_of(&mut self, recording_id: i64) {
        self.replays.stop_all(Some(recording_id));
    }

    /// Takes what the replayer has done since. Returns the work count.
    pub(super) fn poll_replays(&mut self) -> usize {
        let outbox = &mut self.outbox;
        let mut failures = Vec::new();
        let work = self.replays.poll(self.now_ns, |event| match event {
            ReplayEvent::Started {
                requester,
                replay_session_id,
            } => outbox.respond(requester, Response::Ok(replay_session_id)),
            ReplayEvent::Failed { requester, error } => {
                failures.push(error.message.clone());
                outbox.refuse(requester, error);
            }
            ReplayEvent::Ended { .. } => {}
        });
        for failure in failures {
            self.report(&failure);
        }
        work
    }
}

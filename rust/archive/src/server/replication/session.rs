//! [`ReplicationSession`]: copies one recording of another archive.

use aeron_client::{Aeron, Image, Subscription};
use aeron_protocol::archive::{
    ArchiveErrorCode, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, RecordingSignal, RequestIds,
    SourceLocation,
};

use super::live::{LiveJoin, LiveOutcome, LiveTarget, not_live};
use super::permission::ReplayPermission;
use super::request::{ReplicationRequest, ReplicationSettings};
use super::source::{ReplicationSource, disconnected};
use super::state::{ReplicationState, ReplicationStep};
use super::streams::{
    RecordingChannel, has_wildcard_port, is_response_mode, recording_channel, replay_channel,
};
use crate::catalog::RecordingDescriptor;
use crate::client::{ArchiveCall, ReplayParams};
use crate::server::ArchiveError;
use crate::server::objects::ObjectCopies;
use crate::server::outlets::{ArchiveOutlets, SignalPlace};
use crate::server::recording::{RecordingRequest, Recordings, SubscriptionReply};
use crate::storage::Storage;
use crate::store::ArchiveStore;

/// The parts of the archive that a replication uses in a duty cycle.
pub(in crate::server) struct ReplicationTurn<'a, S: Storage + Clone> {
    pub aeron: &'a Aeron,
    pub store: &'a mut ArchiveStore<S>,
    pub recordings: &'a mut Recordings<S>,
    pub objects: &'a mut ObjectCopies,
    pub outlets: &'a mut ArchiveOutlets,
}

/// A replication in progress.
///
/// These events end a replication that waits:
///
/// - a deadline of the message timeout: in the stages of
///   [`ReplicationStage::awaited_with_deadline`](super::state::ReplicationStage::awaited_with_deadline), while it
///   connects, and for each request to the source;
/// - a refusal or an error of the source, or the end of its response stream or of the Aeron client;
/// - a refusal of the driver, or no response of the driver within the driver timeout;
/// - while it copies: the end of the source's recording or of the requested range, or of the copy or its image;
/// - while it follows a live source: the merge, or the end of the source's recording, or of the copy or its image;
/// - the request `StopReplication`, and the end of the archive.
///
/// A replication that copies, or that catches up with a live source, waits for data without a limit.
pub(super) struct ReplicationSession {
    id: i64,
    request: ReplicationRequest,
    /// Control session id and correlation id of all messages about the replication.
    requester: RequestIds,
    replication_channel: String,
    message_timeout_ns: i64,
    source: ReplicationSource,
    state: ReplicationState,
    /// Time of the last progress. A change of the state is also progress.
    progress_ns: i64,
    recording: Option<CopiedRecording>,
    replay_session_id: Option<i64>,
    /// Whether the recording continues after the replication ends.
    is_merged: bool,
}

/// The source recording, and its copy.
struct CopiedRecording {
    source: RecordingDescriptor,
    destination_id: i64,
    /// Position at which the replay begins.
    replay_position: i64,
    /// Session id in the channel of the replay. In response mode, this channel has no session id.
    session_id: i32,
    /// Number of the subscription in this archive; `None` until the subscription is requested.
    subscription_number: Option<u64>,
}

impl ReplicationSession {
    /// Begins to connect to the source archive.
    ///
    /// # Errors
    /// A channel is not valid, or the command cannot be sent to the driver.
    pub fn new(
        id: i64,
        control_session_id: i64,
        request: ReplicationRequest,
        settings: &ReplicationSettings,
        aeron: &Aeron,
        now_ns: i64,
    ) -> Result<Self, ArchiveError> {
        let source = ReplicationSource::new(id, &request, settings);
        let connecting = source.connect(aeron, now_ns)?;
        Ok(Self {
            id,
            requester: RequestIds {
                control_session_id,
                correlation_id: id,
            },
            replication_channel: request
                .replication_channel
                .clone()
                .unwrap_or_else(|| settings.replication_channel.clone()),
            message_timeout_ns: settings.message_timeout_ns,
            source,
            state: ReplicationState::Connecting(Box::new(connecting)),
            progress_ns: now_ns,
            recording: None,
            replay_session_id: None,
            is_merged: false,
            request,
        })
    }

    pub fn id(&self) -> i64 {
        self.id
    }

    /// Returns whether the session copies into this recording, or will copy into it.
    pub fn is_destination(&self, recording_id: i64) -> bool {
        let copy = self.recording.as_ref().map(|copied| copied.destination_id);
        copy.or(self.request.destination_recording_id) == Some(recording_id)
    }

    /// Runs one duty cycle. Returns the work count, or `None` if the replication has ended. Then
    /// the caller calls [`end`](Self::end).
    pub fn do_work<S: Storage + Clone>(
        &mut self,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Option<usize> {
        let (before, now_ns) = (self.state.stage(), turn.outlets.now_ns());
        let mut state = std::mem::replace(&mut self.state, ReplicationState::Finished);
        let outcome = self
            .source
            .poll(now_ns)
            .and_then(|work| Ok((work, self.step(&mut state, turn)?)));
        let (work, state) = match outcome {
            Ok((work, ReplicationStep::Wait)) => {
                self.state = state;
                return self.check_progress(now_ns, turn.outlets).then_some(work);
            }
            Ok((work, ReplicationStep::Advanced)) => (work, state),
            Ok((work, ReplicationStep::Next(next))) => (work, next),
            Ok((_, ReplicationStep::Done)) => return None,
            Err(error) => {
                turn.outlets.refuse(self.requester, error);
                return None;
            }
        };
        debug_assert!(
            before.may_become(state.stage()),
            "replication {} must not go from step {before:?} to {:?}",
            self.id,
            state.stage()
        );
        debug_assert!(
            now_ns >= self.progress_ns,
            "replication {} has made progress at {} ns, after {now_ns} ns",
            self.id,
            self.progress_ns
        );
        self.state = state;
        self.progress_ns = now_ns;
        Some(work + 1)
    }

    /// Returns whether the replication may go on waiting. Refuses its request if a step takes too long.
    fn check_progress(&self, now_ns: i64, outlets: &mut ArchiveOutlets) -> bool {
        let Some(awaited) = self.state.stage().awaited_with_deadline() else {
            return true;
        };
        let is_late = now_ns - self.progress_ns > self.message_timeout_ns;
        if is_late {
            let timeout_ms = self.message_timeout_ns / 1_000_000;
            let error = format!("failed to make progress for {timeout_ms} ms: {awaited}");
            outlets.refuse(self.requester, ArchiveError::generic(error));
        }
        !is_late
    }

    /// Ends the replication: stops the recording unless the replication has merged, stops the replay at the source, and
    /// notifies the client.
    pub fn end<S: Storage + Clone>(&mut self, turn: &mut ReplicationTurn<'_, S>) {
        if let Some(number) = self.subscription_number()
            && !self.is_merged
        {
            turn.recordings.stop_by_number(number);
        }
        let now_ns = turn.outlets.now_ns();
        self.source.close(self.replay_session_id.take(), now_ns);
        let recording_id = self
            .recording
            .as_ref()
            .map_or(NULL_VALUE, |recording| recording.destination_id);
        let place = SignalPlace::recording(recording_id);
        self.signal(turn.outlets, RecordingSignal::ReplicateEnd, place);
    }

    fn subscription_number(&self) -> Option<u64> {
        self.recording.as_ref()?.subscription_number
    }

    fn signal(&self, outlets: &mut ArchiveOutlets, signal: RecordingSignal, place: SignalPlace) {
        outlets.signal(self.requester, signal, place);
    }

    fn step<S: Storage + Clone>(
        &mut self,
        state: &mut ReplicationState,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let now_ns = turn.outlets.now_ns();
        let next = match state {
            ReplicationState::Connecting(connecting) => {
                if !self.source.poll_connecting(connecting, now_ns)? {
                    return Ok(ReplicationStep::Wait);
                }
                let call = ArchiveCall::list_recording(self.request.source_recording_id);
                ReplicationState::Describing(self.source.submit(&call, now_ns)?)
            }
            ReplicationState::Describing(ticket) => match self.source.take(ticket)? {
                None => return Ok(ReplicationStep::Wait),
                Some(found) => return self.describe(found, turn),
            },
            ReplicationState::AskingPosition(ticket) => match self.source.take(ticket)? {
                None => return Ok(ReplicationStep::Wait),
                Some(None) => return Err(not_live()),
                Some(position) => self.extend(position, turn)?,
            },
            ReplicationState::Extending {
                destination,
                source_position,
            } => match turn.recordings.subscription_reply(self.extending_number()?) {
                SubscriptionReply::Pending => return Ok(ReplicationStep::Wait),
                // The client has already received the error of the subscription.
                SubscriptionReply::Refused => return Ok(ReplicationStep::Done),
                SubscriptionReply::Added(subscription) => match destination {
                    None => ReplicationState::ResolvingPort(subscription, *source_position),
                    Some(destination) => {
                        let adding = subscription.async_add_destination(destination)?;
                        ReplicationState::AddingDestination(subscription, *source_position, adding)
                    }
                },
            },
            ReplicationState::AddingDestination(subscription, source_position, adding) => {
                if adding.poll()?.is_none() {
                    return Ok(ReplicationStep::Wait);
                }
                ReplicationState::ResolvingPort(subscription.clone(), *source_position)
            }
            ReplicationState::ResolvingPort(subscription, source_position) => {
                let endpoint = subscription.resolved_endpoint();
                if endpoint.is_none() && has_wildcard_port(&self.replication_channel) {
                    return Ok(ReplicationStep::Wait);
                }
                if is_response_mode(&self.replication_channel) {
                    let permission = self.source.request_permission(turn.aeron, subscription)?;
                    ReplicationState::Permitting(subscription.clone(), permission)
                } else {
                    let call = self.replay_call(subscription, NULL_VALUE)?;
                    let ticket = self.source.submit(&call, now_ns)?;
                    ReplicationState::Requesting(subscription.clone(), *source_position, ticket)
                }
            }
            // A replay over a response channel has no live destination.
            ReplicationState::Permitting(subscription, permission) => {
                let ReplayPermission::Granted(publication, token) = permission else {
                    let recording_id = self.request.source_recording_id;
                    return Ok(
                        match permission.advance(self.source.session()?, recording_id, now_ns)? {
                            true => ReplicationStep::Advanced,
                            false => ReplicationStep::Wait,
                        },
                    );
                };
                let call = self.replay_call(subscription, *token)?;
                let ticket = self.source.submit_on(publication.clone(), &call, now_ns)?;
                ReplicationState::Requesting(subscription.clone(), None, ticket)
            }
            ReplicationState::Requesting(subscription, source_position, ticket) => {
                let Some(replay_session_id) = self.source.take(ticket)? else {
                    return Ok(ReplicationStep::Wait);
                };
                debug_assert!(
                    self.replay_session_id.is_none(),
                    "replication {} must not start a second replay: the first one would never be stopped",
                    self.id
                );
                self.replay_session_id = Some(replay_session_id);
                ReplicationState::AwaitingImage(subscription.clone(), *source_position)
            }
            ReplicationState::AwaitingImage(subscription, source_position) => {
                debug_assert!(
                    self.replay_session_id.is_some(),
                    "replication {} waits for the image of a replay without an id",
                    self.id
                );
                let session_id = self.replay_session_id.unwrap_or_default() as i32;
                let Some(image) = subscription.image_by_session_id(session_id) else {
                    return Ok(ReplicationStep::Wait);
                };
                match *source_position {
                    None => ReplicationState::Copying(subscription.clone(), image),
                    Some(position) => {
                        let target = self.live_target(position)?;
                        let live = LiveJoin::new(target, subscription.clone(), image);
                        ReplicationState::Merging(Box::new(live))
                    }
                }
            }
            ReplicationState::Copying(subscription, image) => {
                return self.copy(subscription, image, turn);
            }
            ReplicationState::Merging(live) => {
                let stopped_at = self.stopped_at(turn)?;
                let outcome = live.do_work(&mut self.source, now_ns)?;
                // The end of the stream also ends the recording, which is complete then.
                if stopped_at.is_some_and(|stop| !live.has_ended_at(stop)) {
                    return Err(ArchiveError::generic(
                        "the recording of the copy has ended before the merge",
                    ));
                }
                match outcome {
                    LiveOutcome::Wait => return Ok(ReplicationStep::Wait),
                    LiveOutcome::Advanced => return Ok(ReplicationStep::Advanced),
                    LiveOutcome::Merged => {}
                }
                self.is_merged = true;
                let place = SignalPlace {
                    position: live.position(),
                    ..SignalPlace::recording(self.copied()?.destination_id)
                };
                self.signal(turn.outlets, RecordingSignal::Merge, place);
                return Ok(ReplicationStep::Done);
            }
            ReplicationState::Finished => return Ok(ReplicationStep::Done),
        };
        Ok(ReplicationStep::Next(next))
    }

    fn describe<S: Storage + Clone>(
        &mut self,
        found: Option<RecordingDescriptor>,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let source_id = self.request.source_recording_id;
        let source = found.ok_or_else(|| {
            ArchiveError::new(
                ArchiveErrorCode::UnknownRecording,
                format!("unknown src recording id {source_id}"),
            )
        })?;
        let io_length = self.request.file_io_max_length;
        if (1..source.mtu_length).contains(&io_length) {
            return Err(ArchiveError::generic(format!(
                "fileIoMaxLength={io_length} < mtuLength={}",
                source.mtu_length
            )));
        }
        let copied = self.prepare_copy(source, turn)?;
        let (source_stop, replay_position) = (copied.source.stop_position, copied.replay_position);
        let (start, destination_id) = (copied.source.start_position, copied.destination_id);
        self.recording = Some(copied);
        let is_live = self.request.live_destination.is_some();
        if is_live && source_stop != NULL_VALUE {
            return Err(not_live());
        }
        if source_stop == replay_position || source_stop == start {
            let place = SignalPlace {
                position: replay_position,
                ..SignalPlace::recording(destination_id)
            };
            self.signal(turn.outlets, RecordingSignal::Sync, place);
            return Ok(ReplicationStep::Done);
        }
        Ok(ReplicationStep::Next(match is_live {
            true => {
                let call = ArchiveCall::recording_position(source_id);
                let ticket = self.source.submit(&call, turn.outlets.now_ns())?;
                ReplicationState::AskingPosition(ticket)
            }
            false => self.extend(None, turn)?,
        }))
    }

    /// Adds the copy to the catalog, or finds the existing recording to be extended. If the existing recording is
    /// empty, its descriptor is replaced by the descriptor of the copy.
    fn prepare_copy<S: Storage + Clone>(
        &self,
        source: RecordingDescriptor,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<CopiedRecording, ArchiveError> {
        let session_id = self.request.session_id.unwrap_or(source.session_id);
        let (destination_id, replay_position) = match self.request.destination_recording_id {
            None => {
                let id = turn.store.add_replica(&source)?;
                let place = SignalPlace {
                    position: source.start_position,
                    ..SignalPlace::recording(id)
                };
                self.signal(turn.outlets, RecordingSignal::Replicate, place);
                (id, source.start_position)
            }
            Some(id) => {
                let destination = turn.store.recording(id)?;
                // The recording may have been extended after the request. It is also unfinished while a full disk has
                // not let its stop position be stored.
                if turn.recordings.is_active(id) || destination.is_unfinished() {
                    return Err(active_destination(id));
                }
                if destination.start_position == destination.stop_position {
                    let replaced = destination.clone();
                    turn.objects.check_replacement(&replaced)?;
                    turn.store.replace_by_replica(id, &source)?;
                    turn.objects.forget(&replaced, 0);
                    (id, source.start_position)
                } else {
                    (id, destination.stop_position)
                }
            }
        };
        Ok(CopiedRecording {
            source,
            destination_id,
            replay_position,
            session_id,
            subscription_number: None,
        })
    }

    /// Subscribes to the replay, which extends the copy.
    fn extend<S: Storage + Clone>(
        &mut self,
        source_position: Option<i64>,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationState, ArchiveError> {
        let channel = self.recording_channel()?;
        let copied = self.recording.as_mut().ok_or_else(disconnected)?;
        let request = RecordingRequest {
            channel: channel.channel,
            stream_id: copied.source.stream_id,
            source_location: SourceLocation::Remote,
            is_auto_stop: true,
        };
        let (id, requester) = (copied.destination_id, self.requester);
        let number = turn
            .recordings
            .extend(turn.aeron, turn.store, id, requester, &request)?;
        debug_assert!(
            copied.subscription_number.is_none(),
            "replication {} must not subscribe to the replay twice",
            self.id
        );
        copied.subscription_number = Some(number);
        Ok(ReplicationState::Extending {
            destination: channel.destination,
            source_position,
        })
    }

    fn extending_number(&self) -> Result<u64, ArchiveError> {
        debug_assert!(
            self.subscription_number().is_some(),
            "replication {} waits for a subscription that it has not requested",
            self.id
        );
        self.subscription_number().ok_or_else(disconnected)
    }

    /// Returns the request for the replay that the subscription receives.
    fn replay_call(
        &self,
        subscription: &Subscription,
        token: i64,
    ) -> Result<ArchiveCall<i64>, ArchiveError> {
        let endpoint = subscription.resolved_endpoint();
        let copied = self.copied()?;
        let channel = replay_channel(
            &self.request,
            &self.replication_channel,
            endpoint.as_deref(),
            copied.session_id,
        )?;
        let length = replay_length(copied.replay_position, self.request.stop_position)?;
        let params = ReplayParams {
            file_io_max_length: self.request.file_io_max_length,
            replay_token: token,
            ..ReplayParams::range(copied.replay_position, length)
        };
        Ok(ArchiveCall::start_replay(
            copied.source.recording_id,
            &channel,
            copied.source.stream_id,
            &params,
        ))
    }

    /// Returns the stop position of the copy, if its recording has ended.
    fn stopped_at<S: Storage + Clone>(
        &self,
        turn: &ReplicationTurn<'_, S>,
    ) -> Result<Option<i64>, ArchiveError> {
        let (id, number) = (self.copied()?.destination_id, self.extending_number()?);
        // The subscription ends with its recording. It may end before, if its recording is stopped.
        let is_recording = turn.recordings.is_active(id);
        match turn.recordings.subscription_reply(number) {
            SubscriptionReply::Refused if !is_recording => {
                let copy = turn.store.recording(id)?;
                Ok(Some(turn.recordings.recorded_end(copy)))
            }
            _ => Ok(None),
        }
    }

    /// Waits until the copy is complete or its recording ends.
    fn copy<S: Storage + Clone>(
        &self,
        subscription: &Subscription,
        image: &Image,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let copied = self.copied()?;
        // After the end of its recording, the image is still read, so that it does not block its publisher.
        let stopped_at = self.stopped_at(turn)?;
        let position = stopped_at.unwrap_or_else(|| image.position());
        let source_stop = copied.source.stop_position;
        if source_stop != NULL_VALUE && position >= source_stop {
            let place = SignalPlace {
                recording_id: copied.destination_id,
                subscription_id: subscription.registration_id(),
                position,
            };
            self.signal(turn.outlets, RecordingSignal::Sync, place);
            return Ok(ReplicationStep::Done);
        }
        let is_at_stop = self
            .request
            .stop_position
            .is_some_and(|stop| position >= stop);
        let is_over = stopped_at.is_some() || image.is_closed() || image.is_end_of_stream();
        Ok(match is_at_stop || is_over {
            true => ReplicationStep::Done,
            false => ReplicationStep::Wait,
        })
    }

    fn live_target(&self, source_position: i64) -> Result<LiveTarget, ArchiveError> {
        debug_assert!(
            self.request.live_destination.is_some(),
            "replication {} merges with a live stream that the request does not name",
            self.id
        );
        Ok(LiveTarget {
            recording_id: self.request.source_recording_id,
            source_position,
            live_destination: self.request.live_destination.clone().unwrap_or_default(),
            replay_destination: self.recording_channel()?.destination.unwrap_or_default(),
        })
    }

    fn recording_channel(&self) -> Result<RecordingChannel, ArchiveError> {
        let session_id = self.copied()?.session_id;
        let (request, channel) = (&self.request, &self.replication_channel);
        Ok(recording_channel(request, channel, session_id, self.id)?)
    }

    fn copied(&self) -> Result<&CopiedRecording, ArchiveError> {
        self.recording.as_ref().ok_or_else(disconnected)
    }
}

/// Returns the error for a replication to an active recording.
pub(in crate::server) fn active_destination(recording_id: i64) -> ArchiveError {
    ArchiveError::new(
        ArchiveErrorCode::ActiveRecording,
        format!("cannot replicate to active recording {recording_id}"),
    )
}

/// Returns the length of the replay that a replication needs.
///
/// A stop position before `from` is refused, because the length would be negative. In a replay request, a negative
/// length is a constant such as [`REPLAY_ALL_AND_FOLLOW`].
fn replay_length(from: i64, stop_position: Option<i64>) -> Result<i64, ArchiveError> {
    match stop_position {
        None => Ok(REPLAY_ALL_AND_FOLLOW),
        Some(stop_position) if stop_position >= from => Ok(stop_position - from),
        Some(stop_position) => Err(ArchiveError::generic(format!(
            "stop position {stop_position} is before position {from}, at which the replication continues"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_position_before_the_copied_position_is_refused() {
        assert_eq!(replay_length(64, Some(192)).unwrap(), 128);
        assert_eq!(replay_length(64, Some(64)).unwrap(), 0);
        assert_eq!(replay_length(64, None).unwrap(), REPLAY_ALL_AND_FOLLOW);
        for stop_position in [63, 62, 0, i64::MIN] {
            let error = replay_length(64, Some(stop_position)).unwrap_err();
            let text = format!("stop position {stop_position} is before position 64");
            assert!(error.message.starts_with(&text), "{}", error.message);
        }
    }
}

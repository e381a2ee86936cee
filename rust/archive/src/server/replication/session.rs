//! [`ReplicationSession`]: copies one recording of another archive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aeron_client::{Aeron, Image, PendingOperation, Subscription};
use aeron_protocol::archive::{
    ArchiveErrorCode, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, RecordingSignal, RequestIds,
    SourceLocation,
};

use super::permission::ReplayPermission;
use super::replications::ReplicationSettings;
use super::request::ReplicationRequest;
use super::streams::{has_wildcard_port, is_response_mode, recording_channel, replay_channel};
use crate::catalog::RecordingDescriptor;
use crate::client::{
    ArchiveCall, ArchiveClientContext, ArchiveSession, ConnectingSession, CredentialsSupplier,
    ReplayParams, Ticket,
};
use crate::server::ArchiveError;
use crate::server::conductor::{ArchiveOutlets, SignalPlace};
use crate::server::objects::ObjectCopies;
use crate::server::recording::{RecordingRequest, Recordings, SubscriptionReply};
use crate::storage::Storage;
use crate::store::ArchiveStore;

/// The live destination is added when the copy is at most this far from the live stream, in bytes. If a quarter of the
/// term length is shorter, this quarter is the limit.
const MAX_LIVE_DISTANCE: i64 = 32 * 1024 * 1024;

/// The parts of the archive that a replication uses in a duty cycle.
pub(in crate::server) struct ReplicationTurn<'a, S: Storage + Clone> {
    pub aeron: &'a Aeron,
    pub store: &'a mut ArchiveStore<S>,
    pub recordings: &'a mut Recordings<S>,
    pub objects: &'a mut ObjectCopies,
    pub outlets: &'a mut ArchiveOutlets,
}

/// A replication in progress.
pub(super) struct ReplicationSession {
    id: i64,
    request: ReplicationRequest,
    /// Control session id and correlation id of all messages about the replication.
    requester: RequestIds,
    replication_channel: String,
    credentials: Arc<RequestCredentials>,
    /// Settings of the control session with the source.
    context: ArchiveClientContext,
    message_timeout_ns: i64,
    state: ReplicationState,
    /// Time of the last progress. A change of the state is also progress.
    progress_ns: i64,
    source: Option<ArchiveSession>,
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

enum ReplicationState {
    Connecting(Box<ConnectingSession>),
    Describing(Ticket<Option<RecordingDescriptor>>),
    AskingPosition(Ticket<Option<i64>>),
    Extending {
        destination: Option<String>,
        source_position: Option<i64>,
    },
    AddingDestination {
        subscription: Subscription,
        operation: PendingOperation<()>,
        source_position: Option<i64>,
    },
    ResolvingPort {
        subscription: Subscription,
        source_position: Option<i64>,
    },
    Permitting {
        subscription: Subscription,
        permission: ReplayPermission,
    },
    Requesting {
        subscription: Subscription,
        ticket: Ticket<i64>,
        source_position: Option<i64>,
    },
    AwaitingImage {
        subscription: Subscription,
        source_position: Option<i64>,
    },
    Copying(Subscription, Image),
    CatchingUp(Live),
    Joining(Live, Ticket<Option<i64>>),
    Removing(Live, PendingOperation<()>),
    Finished,
}

/// State of a replication that will merge with the live stream.
struct Live {
    subscription: Subscription,
    image: Image,
    source_position: i64,
    adding: Option<PendingOperation<()>>,
    is_added: bool,
}

/// The outcome of a step.
enum ReplicationStep {
    /// Stay in this state, because nothing has happened.
    Wait(ReplicationState),
    /// Enter this state.
    Next(ReplicationState),
    /// The replication ends: the copy is complete or merged, or cannot continue.
    Done,
}

/// Supplies the credentials of the request. It has no response to a challenge.
struct RequestCredentials {
    encoded: Vec<u8>,
    is_challenged: AtomicBool,
}

/// The kind of a [`ReplicationState`], in the order of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReplicationStage {
    Connecting,
    Describing,
    AskingPosition,
    Extending,
    AddingDestination,
    ResolvingPort,
    Permitting,
    Requesting,
    AwaitingImage,
    Copying,
    CatchingUp,
    Joining,
    Removing,
    Finished,
}

impl ReplicationStage {
    /// Returns whether a replication may go from this stage to `next`.
    fn may_become(self, next: &ReplicationState) -> bool {
        match (self, next.stage()) {
            // A permission is requested in several steps.
            (Self::Permitting, Self::Permitting) => true,
            // While the copy comes closer to the live stream, it asks for the position of the source again and again.
            (Self::Joining, Self::CatchingUp) => true,
            (before, next) => next > before,
        }
    }
}

impl ReplicationState {
    fn stage(&self) -> ReplicationStage {
        match self {
            Self::Connecting(_) => ReplicationStage::Connecting,
            Self::Describing(_) => ReplicationStage::Describing,
            Self::AskingPosition(_) => ReplicationStage::AskingPosition,
            Self::Extending { .. } => ReplicationStage::Extending,
            Self::AddingDestination { .. } => ReplicationStage::AddingDestination,
            Self::ResolvingPort { .. } => ReplicationStage::ResolvingPort,
            Self::Permitting { .. } => ReplicationStage::Permitting,
            Self::Requesting { .. } => ReplicationStage::Requesting,
            Self::AwaitingImage { .. } => ReplicationStage::AwaitingImage,
            Self::Copying(..) => ReplicationStage::Copying,
            Self::CatchingUp(_) => ReplicationStage::CatchingUp,
            Self::Joining(..) => ReplicationStage::Joining,
            Self::Removing(..) => ReplicationStage::Removing,
            Self::Finished => ReplicationStage::Finished,
        }
    }
}

impl CredentialsSupplier for RequestCredentials {
    fn encoded_credentials(&self) -> Vec<u8> {
        self.encoded.clone()
    }

    fn on_challenge(&self, _: &[u8]) -> Vec<u8> {
        self.is_challenged.store(true, Ordering::Relaxed);
        Vec::new()
    }
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
        let response_channel = request.response_channel.as_deref();
        let credentials = Arc::new(RequestCredentials {
            encoded: request.encoded_credentials.clone(),
            is_challenged: AtomicBool::new(false),
        });
        let context = ArchiveClientContext {
            control_request_stream_id: request.control_stream_id,
            message_timeout_ns: settings.message_timeout_ns as u64,
            control_term_buffer_length: settings.control_term_length,
            control_term_buffer_sparse: settings.is_control_term_sparse,
            control_mtu_length: settings.control_mtu_length,
            client_name: format!(
                "archive archiveId={} replicationSessionId={id}",
                settings.archive_id
            ),
            credentials: Arc::<RequestCredentials>::clone(&credentials),
            ..ArchiveClientContext::new(
                &request.control_channel,
                response_channel.unwrap_or(&settings.response_channel),
            )
        };
        let connecting =
            ConnectingSession::new(aeron, context.clone(), now_ns).map_err(connection_error)?;
        let requester = RequestIds {
            control_session_id,
            correlation_id: id,
        };
        Ok(Self {
            id,
            requester,
            replication_channel: request
                .replication_channel
                .clone()
                .unwrap_or_else(|| settings.replication_channel.clone()),
            credentials,
            context,
            message_timeout_ns: settings.message_timeout_ns,
            state: ReplicationState::Connecting(Box::new(connecting)),
            progress_ns: now_ns,
            source: None,
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
        let before = self.state.stage();
        let outcome = self.poll_source(turn.outlets.now_ns()).and_then(|work| {
            let state = std::mem::replace(&mut self.state, ReplicationState::Finished);
            Ok((work, self.step(state, turn)?))
        });
        match outcome {
            Ok((work, ReplicationStep::Wait(state))) => {
                let is_late = self.is_late(&state, turn.outlets.now_ns());
                self.state = state;
                if !is_late {
                    return Some(work);
                }
                let timeout_ms = self.message_timeout_ns / 1_000_000;
                let error = format!(
                    "failed to make progress for {timeout_ms} ms: {}",
                    self.awaited()
                );
                turn.outlets
                    .refuse(self.requester, ArchiveError::generic(error));
                None
            }
            Ok((work, ReplicationStep::Next(state))) => {
                debug_assert!(
                    before.may_become(&state),
                    "replication {} must not go from step {before:?} to {:?}",
                    self.id,
                    state.stage()
                );
                debug_assert!(
                    turn.outlets.now_ns() >= self.progress_ns,
                    "replication {} has made progress at {} ns, after {} ns",
                    self.id,
                    self.progress_ns,
                    turn.outlets.now_ns()
                );
                self.state = state;
                self.progress_ns = turn.outlets.now_ns();
                Some(work + 1)
            }
            Ok((_, ReplicationStep::Done)) => None,
            Err(error) => {
                turn.outlets.refuse(self.requester, error);
                None
            }
        }
    }

    /// Ends the replication: stops the recording unless the replication has merged, stops the replay at the source, and
    /// notifies the client.
    pub fn end<S: Storage + Clone>(&mut self, turn: &mut ReplicationTurn<'_, S>) {
        if let Some(number) = self.subscription_number()
            && !self.is_merged
        {
            turn.recordings.stop_by_number(number);
        }
        if let Some(mut source) = self.source.take() {
            if let Some(replay_session_id) = self.replay_session_id {
                // If the request cannot be sent, the replay ends when it has lost its subscriber.
                if let Ok(ticket) = source.submit(
                    &ArchiveCall::stop_replay(replay_session_id),
                    turn.outlets.now_ns(),
                ) {
                    source.abandon(&ticket);
                }
            }
            source.close();
        }
        let recording_id = self
            .recording
            .as_ref()
            .map_or(NULL_VALUE, |recording| recording.destination_id);
        let place = SignalPlace::recording(recording_id);
        turn.outlets
            .signal(self.requester, RecordingSignal::ReplicateEnd, place);
    }

    fn subscription_number(&self) -> Option<u64> {
        self.recording.as_ref()?.subscription_number
    }

    /// Receives messages of the source. An error that does not belong to an outstanding request ends the replication.
    fn poll_source(&mut self, now_ns: i64) -> Result<usize, ArchiveError> {
        let Some(source) = &mut self.source else {
            return Ok(0);
        };
        let work = source.poll(now_ns).map_err(ArchiveError::generic)?;
        if let Some(error) = source
            .poll_for_error(now_ns)
            .map_err(ArchiveError::generic)?
        {
            return Err(ArchiveError::generic(error));
        }
        Ok(work)
    }

    fn step<S: Storage + Clone>(
        &mut self,
        state: ReplicationState,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        match state {
            ReplicationState::Connecting(connecting) => self.connect(connecting, turn),
            ReplicationState::Describing(ticket) => self.describe(ticket, turn),
            ReplicationState::AskingPosition(ticket) => self.take_position(ticket, turn),
            ReplicationState::Extending {
                destination,
                source_position,
            } => self.await_subscription(destination, source_position, turn),
            ReplicationState::AddingDestination {
                subscription,
                mut operation,
                source_position,
            } => Ok(match operation.poll()? {
                Some(()) => ReplicationStep::Next(ReplicationState::ResolvingPort {
                    subscription,
                    source_position,
                }),
                None => ReplicationStep::Wait(ReplicationState::AddingDestination {
                    subscription,
                    operation,
                    source_position,
                }),
            }),
            ReplicationState::ResolvingPort {
                subscription,
                source_position,
            } => self.await_port(subscription, source_position, turn),
            ReplicationState::Permitting {
                subscription,
                permission,
            } => self.await_permission(subscription, permission, turn.outlets.now_ns()),
            ReplicationState::Requesting {
                subscription,
                ticket,
                source_position,
            } => self.take_replay(subscription, ticket, source_position),
            ReplicationState::AwaitingImage {
                subscription,
                source_position,
            } => self.await_image(subscription, source_position),
            ReplicationState::Copying(subscription, image) => self.copy(subscription, image, turn),
            ReplicationState::CatchingUp(live) => self.catch_up(live, turn.outlets.now_ns()),
            ReplicationState::Joining(live, ticket) => self.join(live, ticket),
            ReplicationState::Removing(live, mut operation) => match operation.poll()? {
                Some(()) => Ok(self.merge(&live, turn)),
                None => Ok(ReplicationStep::Wait(ReplicationState::Removing(
                    live, operation,
                ))),
            },
            ReplicationState::Finished => Ok(ReplicationStep::Done),
        }
    }

    fn connect<S: Storage + Clone>(
        &mut self,
        mut connecting: Box<ConnectingSession>,
        turn: &ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let polled = connecting.poll(turn.outlets.now_ns());
        if self.credentials.is_challenged.load(Ordering::Relaxed) {
            return Err(connection_error(
                "Replication does not support challenge/response authentication",
            ));
        }
        let Some(mut source) = polled.map_err(connection_error)? else {
            return Ok(ReplicationStep::Wait(ReplicationState::Connecting(
                connecting,
            )));
        };
        let call = ArchiveCall::list_recording(self.request.source_recording_id);
        let ticket = source
            .submit(&call, turn.outlets.now_ns())
            .map_err(ArchiveError::generic)?;
        debug_assert!(
            self.source.is_none(),
            "replication {} must not connect to its source twice",
            self.id
        );
        self.source = Some(source);
        Ok(ReplicationStep::Next(ReplicationState::Describing(ticket)))
    }

    fn describe<S: Storage + Clone>(
        &mut self,
        ticket: Ticket<Option<RecordingDescriptor>>,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let Some(found) = self.take(&ticket)? else {
            return Ok(ReplicationStep::Wait(ReplicationState::Describing(ticket)));
        };
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
            return Err(ArchiveError::generic(
                "cannot live merge without active source recording",
            ));
        }
        if source_stop == replay_position || source_stop == start {
            let place = SignalPlace {
                position: replay_position,
                ..SignalPlace::recording(destination_id)
            };
            turn.outlets
                .signal(self.requester, RecordingSignal::Sync, place);
            return Ok(ReplicationStep::Done);
        }
        if is_live {
            let call = ArchiveCall::recording_position(source_id);
            return Ok(ReplicationStep::Next(ReplicationState::AskingPosition(
                self.submit(&call, turn.outlets.now_ns())?,
            )));
        }
        self.extend(None, turn)
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
                turn.outlets
                    .signal(self.requester, RecordingSignal::Replicate, place);
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

    fn take_position<S: Storage + Clone>(
        &mut self,
        ticket: Ticket<Option<i64>>,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let Some(position) = self.take(&ticket)? else {
            return Ok(ReplicationStep::Wait(ReplicationState::AskingPosition(
                ticket,
            )));
        };
        match position {
            Some(position) => self.extend(Some(position), turn),
            None => Err(ArchiveError::generic(
                "cannot live merge without active source recording",
            )),
        }
    }

    /// Subscribes to the replay, which extends the copy.
    fn extend<S: Storage + Clone>(
        &mut self,
        source_position: Option<i64>,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let copied = copied(&mut self.recording)?;
        let channel = recording_channel(
            &self.request,
            &self.replication_channel,
            copied.session_id,
            self.id,
        )?;
        let request = RecordingRequest {
            channel: &channel.channel,
            stream_id: copied.source.stream_id,
            source_location: SourceLocation::Remote,
            is_auto_stop: true,
        };
        let number = turn.recordings.extend(
            turn.aeron,
            turn.store,
            copied.destination_id,
            self.requester,
            &request,
        )?;
        debug_assert!(
            copied.subscription_number.is_none(),
            "replication {} must not subscribe to the replay twice",
            self.id
        );
        copied.subscription_number = Some(number);
        Ok(ReplicationStep::Next(ReplicationState::Extending {
            destination: channel.destination,
            source_position,
        }))
    }

    fn await_subscription<S: Storage + Clone>(
        &mut self,
        destination: Option<String>,
        source_position: Option<i64>,
        turn: &ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        debug_assert!(
            self.subscription_number().is_some(),
            "replication {} waits for a subscription that it has not requested",
            self.id
        );
        let number = copied(&mut self.recording)?
            .subscription_number
            .unwrap_or_default();
        let subscription = match turn.recordings.subscription_reply(number) {
            SubscriptionReply::Pending => {
                return Ok(ReplicationStep::Wait(ReplicationState::Extending {
                    destination,
                    source_position,
                }));
            }
            // The client has already received the error of the subscription.
            SubscriptionReply::Refused => return Ok(ReplicationStep::Done),
            SubscriptionReply::Added(subscription) => subscription,
        };
        Ok(ReplicationStep::Next(match destination {
            None => ReplicationState::ResolvingPort {
                subscription,
                source_position,
            },
            Some(destination) => ReplicationState::AddingDestination {
                operation: subscription.async_add_destination(&destination)?,
                subscription,
                source_position,
            },
        }))
    }

    fn await_port<S: Storage + Clone>(
        &mut self,
        subscription: Subscription,
        source_position: Option<i64>,
        turn: &ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let endpoint = subscription.resolved_endpoint();
        if endpoint.is_none() && has_wildcard_port(&self.replication_channel) {
            return Ok(ReplicationStep::Wait(ReplicationState::ResolvingPort {
                subscription,
                source_position,
            }));
        }
        if is_response_mode(&self.replication_channel) {
            let permission = ReplayPermission::request(turn.aeron, &self.context, &subscription)?;
            return Ok(ReplicationStep::Next(ReplicationState::Permitting {
                subscription,
                permission,
            }));
        }
        let call = self.replay_call(&subscription, NULL_VALUE)?;
        Ok(ReplicationStep::Next(ReplicationState::Requesting {
            ticket: self.submit(&call, turn.outlets.now_ns())?,
            subscription,
            source_position,
        }))
    }

    /// Requests a replay over a response channel, when the permission for it is granted. Such a replication has no
    /// live destination.
    fn await_permission(
        &mut self,
        subscription: Subscription,
        mut permission: ReplayPermission,
        now_ns: i64,
    ) -> Result<ReplicationStep, ArchiveError> {
        if let ReplayPermission::Granted(publication, token) = permission {
            let call = self.replay_call(&subscription, token)?;
            let source = self.source.as_mut().ok_or_else(disconnected)?;
            let ticket = source
                .submit_on(publication, &call, now_ns)
                .map_err(ArchiveError::generic)?;
            return Ok(ReplicationStep::Next(ReplicationState::Requesting {
                subscription,
                ticket,
                source_position: None,
            }));
        }
        let source = self.source.as_mut().ok_or_else(disconnected)?;
        let recording_id = self.request.source_recording_id;
        let has_advanced = permission.advance(source, recording_id, now_ns)?;
        let state = ReplicationState::Permitting {
            subscription,
            permission,
        };
        Ok(match has_advanced {
            true => ReplicationStep::Next(state),
            false => ReplicationStep::Wait(state),
        })
    }

    /// Returns the request for the replay that the subscription receives.
    fn replay_call(
        &mut self,
        subscription: &Subscription,
        token: i64,
    ) -> Result<ArchiveCall<i64>, ArchiveError> {
        let endpoint = subscription.resolved_endpoint();
        let copied = copied(&mut self.recording)?;
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

    fn take_replay(
        &mut self,
        subscription: Subscription,
        ticket: Ticket<i64>,
        source_position: Option<i64>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let Some(replay_session_id) = self.take(&ticket)? else {
            return Ok(ReplicationStep::Wait(ReplicationState::Requesting {
                subscription,
                ticket,
                source_position,
            }));
        };
        debug_assert!(
            self.replay_session_id.is_none(),
            "replication {} must not start a second replay: the first one would never be stopped",
            self.id
        );
        self.replay_session_id = Some(replay_session_id);
        Ok(ReplicationStep::Next(ReplicationState::AwaitingImage {
            subscription,
            source_position,
        }))
    }

    fn await_image(
        &self,
        subscription: Subscription,
        source_position: Option<i64>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let session_id = self.replay_session_id.unwrap_or_default() as i32;
        debug_assert!(
            self.replay_session_id.is_some(),
            "replication {} waits for the image of a replay without an id",
            self.id
        );
        let Some(image) = subscription.image_by_session_id(session_id) else {
            return Ok(ReplicationStep::Wait(ReplicationState::AwaitingImage {
                subscription,
                source_position,
            }));
        };
        Ok(ReplicationStep::Next(match source_position {
            None => ReplicationState::Copying(subscription, image),
            Some(source_position) => ReplicationState::CatchingUp(Live {
                subscription,
                image,
                source_position,
                adding: None,
                is_added: false,
            }),
        }))
    }

    /// Waits until the copy is complete.
    fn copy<S: Storage + Clone>(
        &mut self,
        subscription: Subscription,
        image: Image,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<ReplicationStep, ArchiveError> {
        let copied = copied(&mut self.recording)?;
        let (position, source_stop) = (image.position(), copied.source.stop_position);
        if source_stop != NULL_VALUE && position >= source_stop {
            let place = SignalPlace {
                recording_id: copied.destination_id,
                subscription_id: subscription.registration_id(),
                position,
            };
            turn.outlets
                .signal(self.requester, RecordingSignal::Sync, place);
            return Ok(ReplicationStep::Done);
        }
        let is_at_stop = self
            .request
            .stop_position
            .is_some_and(|stop| position >= stop);
        match is_at_stop || image.is_closed() || image.is_end_of_stream() {
            true => Ok(ReplicationStep::Done),
            false => Ok(ReplicationStep::Wait(ReplicationState::Copying(
                subscription,
                image,
            ))),
        }
    }

    /// Waits until the copy reaches the last known position of the source, then requests the source's current position.
    fn catch_up(&mut self, live: Live, now_ns: i64) -> Result<ReplicationStep, ArchiveError> {
        if live.image.is_closed() {
            return Err(ArchiveError::generic(
                "replication image closed unexpectedly",
            ));
        }
        if live.image.position() < live.source_position {
            return Ok(ReplicationStep::Wait(ReplicationState::CatchingUp(live)));
        }
        let call = ArchiveCall::recording_position(self.request.source_recording_id);
        let ticket = self.submit(&call, now_ns)?;
        Ok(ReplicationStep::Next(ReplicationState::Joining(
            live, ticket,
        )))
    }

    /// Adds the live destination when the copy is near the live stream. Removes the replay's destination when the copy
    /// has reached the live stream.
    fn join(
        &mut self,
        mut live: Live,
        ticket: Ticket<Option<i64>>,
    ) -> Result<ReplicationStep, ArchiveError> {
        if live.image.is_closed() {
            return Err(ArchiveError::generic(
                "replication image closed unexpectedly",
            ));
        }
        if let Some(adding) = &mut live.adding
            && adding.poll()?.is_some()
        {
            live.adding = None;
            live.is_added = true;
        }
        debug_assert!(
            !live.is_added || live.adding.is_none(),
            "replication {} must not add its live destination twice",
            self.id
        );
        let Some(position) = self.take(&ticket)? else {
            return Ok(ReplicationStep::Wait(ReplicationState::Joining(
                live, ticket,
            )));
        };
        let Some(source_position) = position else {
            return Err(ArchiveError::generic(
                "cannot live merge without active source recording",
            ));
        };
        live.source_position = source_position;
        let distance = source_position - live.image.position();
        let near = (live.image.term_buffer_length() as i64 / 4).min(MAX_LIVE_DISTANCE);
        if !live.is_added {
            if live.adding.is_none() && distance <= near {
                let destination = self.request.live_destination.as_deref().unwrap_or_default();
                live.adding = Some(live.subscription.async_add_destination(destination)?);
            }
        } else if distance <= 0 && live.image.active_transport_count() >= 2 {
            let destination = self.replay_destination()?;
            let operation = live.subscription.async_remove_destination(&destination)?;
            return Ok(ReplicationStep::Next(ReplicationState::Removing(
                live, operation,
            )));
        }
        Ok(ReplicationStep::Next(ReplicationState::CatchingUp(live)))
    }

    fn merge<S: Storage + Clone>(
        &mut self,
        live: &Live,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> ReplicationStep {
        debug_assert!(
            self.request.live_destination.is_some() && live.is_added,
            "replication {} merges with a live stream that it has not added",
            self.id
        );
        self.is_merged = true;
        if let Some(copied) = &self.recording {
            let place = SignalPlace {
                position: live.image.position(),
                ..SignalPlace::recording(copied.destination_id)
            };
            turn.outlets
                .signal(self.requester, RecordingSignal::Merge, place);
        }
        ReplicationStep::Done
    }

    fn replay_destination(&mut self) -> Result<String, ArchiveError> {
        let session_id = copied(&mut self.recording)?.session_id;
        let channel = recording_channel(
            &self.request,
            &self.replication_channel,
            session_id,
            self.id,
        )?;
        Ok(channel.destination.unwrap_or_default())
    }

    fn submit<T>(&mut self, call: &ArchiveCall<T>, now_ns: i64) -> Result<Ticket<T>, ArchiveError> {
        let source = self.source.as_mut().ok_or_else(disconnected)?;
        source.submit(call, now_ns).map_err(ArchiveError::generic)
    }

    fn take<T>(&mut self, ticket: &Ticket<T>) -> Result<Option<T>, ArchiveError> {
        let source = self.source.as_mut().ok_or_else(disconnected)?;
        source
            .take(ticket)
            .transpose()
            .map_err(ArchiveError::generic)
    }

    /// Returns whether the replication has been for too long in a state to which the message timeout applies.
    ///
    /// Requests and connections have their own deadlines. A replication that copies or catches up may wait for data
    /// without a limit, until its image ends.
    fn is_late(&self, state: &ReplicationState, now_ns: i64) -> bool {
        let must_advance = matches!(
            state,
            ReplicationState::Extending { .. }
                | ReplicationState::AddingDestination { .. }
                | ReplicationState::ResolvingPort { .. }
                | ReplicationState::Permitting { .. }
                | ReplicationState::AwaitingImage { .. }
                | ReplicationState::Removing(..)
        );
        must_advance && now_ns - self.progress_ns > self.message_timeout_ns
    }

    fn awaited(&self) -> &'static str {
        match &self.state {
            ReplicationState::Extending { .. } => "the driver has not added the subscription",
            ReplicationState::AddingDestination { .. } => {
                "the driver has not added the destination"
            }
            ReplicationState::ResolvingPort { .. } => {
                "the driver has not resolved the port of the replication channel"
            }
            ReplicationState::Permitting { .. } => {
                "the publication of the replay request is not connected, or the source has sent no token"
            }
            ReplicationState::AwaitingImage { .. } => "the replay of the source has not arrived",
            ReplicationState::Removing(..) => "the driver has not removed the destination",
            _ => "the source has not responded",
        }
    }
}

fn copied(recording: &mut Option<CopiedRecording>) -> Result<&mut CopiedRecording, ArchiveError> {
    recording.as_mut().ok_or_else(disconnected)
}

/// Returns the error for a replication to an active recording.
pub(in crate::server) fn active_destination(recording_id: i64) -> ArchiveError {
    ArchiveError::new(
        ArchiveErrorCode::ActiveRecording,
        format!("cannot replicate to active recording {recording_id}"),
    )
}

fn disconnected() -> ArchiveError {
    ArchiveError::generic("the source archive is not connected")
}

fn connection_error(error: impl std::fmt::Display) -> ArchiveError {
    ArchiveError::new(
        ArchiveErrorCode::ReplicationConnectionFailure,
        format!("Replication connection failed={error}"),
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

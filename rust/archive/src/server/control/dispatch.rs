//! Dispatches the messages of clients. For each request, calls one function of the conductor, and
//! sends the result as a response.

use aeron_client::Image;
use aeron_protocol::archive::extension::ExtensionRequest;
use aeron_protocol::archive::{
    ArchiveDecodeError, ArchiveErrorCode, ArchiveRequest, AuthConnectRequest, ConnectRequest,
    MessageHeader, NULL_VALUE, RequestIds, SourceLocation,
};

use super::audit::{AuditedRequest, log_unauthorised};
use super::responses::Response;
use crate::server::ArchiveError;
use crate::server::conductor::ArchiveConductor;
use crate::server::extension::decode_extension;
use crate::server::listing::{Listing, StreamFilter};
use crate::server::recording::RecordingRequest;
use crate::server::replaying::ReplayOrder;
use crate::server::replication::ReplicationRequest;
use crate::server::sessions::{ConnectRequestParts, NotServed};
use crate::storage::Storage;

/// Entry of the error log for requests of unknown sessions. The text is constant: the ids come from the network.
const UNKNOWN_SESSION: &str = "WARN - control request for unknown session";

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Serves one request that was received from `image`.
    pub(in crate::server) fn on_request(&mut self, image: &Image, message: &[u8]) {
        match ArchiveRequest::decode(message) {
            Ok(ArchiveRequest::AuthConnect(request)) => self.on_connect(image, &parts(&request)),
            Ok(ArchiveRequest::Connect(request)) => self.on_connect(image, &old_parts(&request)),
            Ok(ArchiveRequest::CloseSession(request)) => {
                self.sessions.close(request.control_session_id, image);
            }
            Ok(ArchiveRequest::ChallengeResponse(request)) => {
                let ids = ids(request.control_session_id, request.correlation_id);
                let credentials = request.encoded_credentials;
                self.sessions
                    .on_challenge_response(ids, image, credentials, self.now_ms);
            }
            Ok(ArchiveRequest::Replay(request)) if request.replay_token != NULL_VALUE => {
                let ids = ids(request.control_session_id, request.correlation_id);
                let order = text("replayChannel", request.replay_channel)
                    .map(|channel| ReplayOrder::of(ids, &request, channel));
                self.on_replay_with_token(image, request.replay_token, order);
            }
            Ok(ArchiveRequest::BoundedReplay(request)) if request.replay_token != NULL_VALUE => {
                let ids = ids(request.control_session_id, request.correlation_id);
                let order = text("replayChannel", request.replay_channel)
                    .map(|channel| ReplayOrder::of_bounded(ids, &request, channel));
                self.on_replay_with_token(image, request.replay_token, order);
            }
            Ok(request) => {
                if let Some(ids) = self.accept(image, message) {
                    self.serve(ids, &request);
                }
            }
            Err(ArchiveDecodeError::UnknownTemplateId { .. }) => {
                self.on_other_message(image, message);
            }
            Err(error) => self.on_undecodable(image, message, error),
        }
    }

    fn on_connect(
        &mut self,
        image: &Image,
        request: &Result<ConnectRequestParts<'_>, ArchiveError>,
    ) {
        let connected = request.as_ref().map_err(Clone::clone).and_then(|request| {
            self.sessions
                .connect(&self.aeron, image, request, self.now_ns)
        });
        // Without a response publication, the error cannot be sent to the client.
        if let Err(error) = connected {
            self.report_client(&connect_failure(&error));
        }
    }

    /// Serves a replay request that was received from another image than the requests of its
    /// control session. The token identifies the session.
    fn on_replay_with_token(
        &mut self,
        image: &Image,
        token: i64,
        order: Result<ReplayOrder<'_>, ArchiveError>,
    ) {
        match order.and_then(|order| self.with_token(order, token, image)) {
            Ok(order) => {
                if let Err(error) = self.replay(&order) {
                    self.outbox.refuse(order.requester, error);
                }
            }
            // Without a session, the error cannot be sent to the client.
            Err(error) => self.report_client(&error.message),
        }
    }

    fn on_undecodable(&mut self, image: &Image, message: &[u8], error: ArchiveDecodeError) {
        self.report_client(undecodable(&error));
        let Some(ids) = RequestIds::of(message) else {
            return;
        };
        let is_served = self
            .sessions
            .accept(
                ids.control_session_id,
                image,
                template_id(message),
                self.now_ns,
            )
            .is_ok();
        if is_served {
            self.outbox.refuse(ids, ArchiveError::generic(error));
        }
    }

    /// Handles a message that is not a request of Aeron's protocol.
    fn on_other_message(&mut self, image: &Image, message: &[u8]) {
        match decode_extension(message) {
            Some(Ok(ExtensionRequest::ReplayAtRate(request)))
                if request.replay_token != NULL_VALUE =>
            {
                let ids = ids(request.control_session_id, request.correlation_id);
                let order = text("replayChannel", request.replay_channel)
                    .and_then(|channel| ReplayOrder::of_paced(ids, &request, channel));
                self.on_replay_with_token(image, request.replay_token, order);
            }
            Some(Ok(request)) => {
                if let Some(ids) = self.accept(image, message) {
                    self.serve_extension(ids, &request);
                }
            }
            Some(Err(error)) => self.on_undecodable(image, message, error),
            // Ignored: a newer client may send messages that this archive does not support.
            None => {}
        }
    }

    /// Returns the ids of a request if its session serves the request. Reports a request of an unknown
    /// session. Reports and refuses a request that is not authorised. Ignores a request if its session
    /// is not active.
    fn accept(&mut self, image: &Image, message: &[u8]) -> Option<RequestIds> {
        let ids = RequestIds::of(message)?;
        let template_id = template_id(message);
        match self
            .sessions
            .accept(ids.control_session_id, image, template_id, self.now_ns)
        {
            Ok(()) => return Some(ids),
            Err(NotServed::UnknownSession) => {
                self.report_client(UNKNOWN_SESSION);
            }
            Err(NotServed::NotActive) => {}
            Err(NotServed::Unauthorised) => {
                let error =
                    ArchiveError::new(ArchiveErrorCode::UnauthorisedAction, "unauthorised action");
                self.report_client(&format!(
                    "WARN - unauthorised action: templateId={template_id}"
                ));
                log_unauthorised(&self.sessions, ids, image, template_id);
                self.outbox.refuse(ids, error);
            }
        }
        None
    }

    fn serve(&mut self, ids: RequestIds, request: &ArchiveRequest<'_>) {
        let result = self.execute(ids, request);
        if let Some(audited) = AuditedRequest::of(request) {
            audited.log(&self.sessions, ids, &result);
        }
        match result {
            Ok(Served::WithResult(value)) => self.outbox.respond(ids, Response::Ok(value)),
            Ok(Served::Later) => {}
            Err(error) => self.outbox.refuse(ids, error),
        }
    }

    fn execute(
        &mut self,
        ids: RequestIds,
        request: &ArchiveRequest<'_>,
    ) -> Result<Served, ArchiveError> {
        use ArchiveRequest as Request;
        let result = match request {
            Request::KeepAlive(_) => return Ok(Served::Later),
            Request::ArchiveId(_) => self.archive_id,
            Request::StartRecording(request) => {
                self.start_recording(&RecordingRequest {
                    requester: ids,
                    channel: text("channel", request.channel)?,
                    stream_id: request.stream_id,
                    source_location: request.source_location,
                    is_auto_stop: false,
                })?;
                return Ok(Served::Later);
            }
            Request::StartRecording2(request) => {
                self.start_recording(&RecordingRequest {
                    requester: ids,
                    channel: text("channel", request.channel)?,
                    stream_id: request.stream_id,
                    source_location: request.source_location,
                    is_auto_stop: request.auto_stop,
                })?;
                return Ok(Served::Later);
            }
            Request::ExtendRecording(request) => {
                let extension = extension(
                    ids,
                    request.channel,
                    request.stream_id,
                    request.source_location,
                    false,
                )?;
                self.extend_recording(request.recording_id, &extension)?;
                return Ok(Served::Later);
            }
            Request::ExtendRecording2(request) => {
                let (channel, stream_id) = (request.channel, request.stream_id);
                let extension = extension(
                    ids,
                    channel,
                    stream_id,
                    request.source_location,
                    request.auto_stop,
                )?;
                self.extend_recording(request.recording_id, &extension)?;
                return Ok(Served::Later);
            }
            Request::StopRecording(request) => {
                self.stop_recording(request.stream_id, text("channel", request.channel)?)?
            }
            Request::StopRecordingSubscription(request) => {
                self.stop_recording_subscription(request.subscription_id)?
            }
            Request::StopRecordingByIdentity(request) => {
                self.stop_recording_by_identity(request.recording_id)?
            }
            Request::StartPosition(request) => self.start_position(request.recording_id)?,
            Request::RecordingPosition(request) => self.recording_position(request.recording_id)?,
            Request::StopPosition(request) => self.stop_position(request.recording_id)?,
            Request::MaxRecordedPosition(request) => {
                self.max_recorded_position(request.recording_id)?
            }
            Request::FindLastMatchingRecording(request) => self.find_last_matching_recording(
                request.min_recording_id,
                request.session_id,
                request.stream_id,
                request.channel,
            )?,
            Request::ListRecordings(request) => {
                let (from, count) = (request.from_recording_id, request.record_count);
                self.list(
                    ids,
                    Listing::recordings(ids.correlation_id, from, count, None),
                );
                return Ok(Served::Later);
            }
            Request::ListRecordingsForUri(request) => {
                let filter = StreamFilter {
                    stream_id: request.stream_id,
                    channel_fragment: request.channel.to_vec(),
                };
                let (from, count) = (request.from_recording_id, request.record_count);
                self.list(
                    ids,
                    Listing::recordings(ids.correlation_id, from, count, Some(filter)),
                );
                return Ok(Served::Later);
            }
            Request::ListRecording(request) => {
                self.list(
                    ids,
                    Listing::recording(ids.correlation_id, request.recording_id),
                );
                return Ok(Served::Later);
            }
            Request::ListRecordingSubscriptions(request) => {
                let stream_id = request.apply_stream_id.then_some(request.stream_id);
                let listing = Listing::subscriptions(
                    ids.correlation_id,
                    request.pseudo_index,
                    request.subscription_count,
                    stream_id,
                    request.channel.to_vec(),
                );
                self.list(ids, listing);
                return Ok(Served::Later);
            }
            Request::UpdateChannel(request) => {
                self.update_channel(ids, request.recording_id, text("channel", request.channel)?);
                return Ok(Served::Later);
            }
            Request::Replay(request) => {
                let channel = text("replayChannel", request.replay_channel)?;
                self.replay(&ReplayOrder::of(ids, request, channel))?;
                return Ok(Served::Later);
            }
            Request::BoundedReplay(request) => {
                let channel = text("replayChannel", request.replay_channel)?;
                self.replay(&ReplayOrder::of_bounded(ids, request, channel))?;
                return Ok(Served::Later);
            }
            Request::ReplayToken(request) => self.replay_token(ids, request.recording_id),
            Request::StopReplay(request) => self.stop_replay(ids, request.replay_session_id)?,
            Request::StopAllReplays(request) => self.stop_all_replays(request.recording_id),
            Request::TruncateRecording(request) => {
                self.truncate_recording(ids, request.recording_id, request.position)?;
                return Ok(Served::Later);
            }
            Request::PurgeRecording(request) => {
                self.purge_recording(ids, request.recording_id)?;
                return Ok(Served::Later);
            }
            Request::DetachSegments(request) => {
                self.detach_segments(request.recording_id, request.new_start_position)?
            }
            Request::PurgeSegments(request) => {
                self.purge_segments(ids, request.recording_id, request.new_start_position)?;
                return Ok(Served::Later);
            }
            Request::DeleteDetachedSegments(request) => {
                self.delete_detached_segments(ids, request.recording_id)?;
                return Ok(Served::Later);
            }
            Request::AttachSegments(request) => self.attach_segments(request.recording_id)?,
            Request::MigrateSegments(request) => {
                let (source, destination) = (request.src_recording_id, request.dst_recording_id);
                self.migrate_segments(ids, source, destination)?;
                return Ok(Served::Later);
            }
            Request::Replicate2(request) => {
                self.replicate(ReplicationRequest::of(ids, request)?)?;
                return Ok(Served::Later);
            }
            Request::Replicate(request) => {
                self.replicate(ReplicationRequest::of_old(ids, request)?)?;
                return Ok(Served::Later);
            }
            Request::TaggedReplicate(request) => {
                self.replicate(ReplicationRequest::of_tagged(ids, request)?)?;
                return Ok(Served::Later);
            }
            Request::StopReplication(request) => {
                self.stop_replication(ids, request.replication_id)?;
                return Ok(Served::Later);
            }
            // These messages only belong to the connection of a session, so an active session ignores them.
            Request::AuthConnect(_)
            | Request::Connect(_)
            | Request::CloseSession(_)
            | Request::ChallengeResponse(_) => return Ok(Served::Later),
        };
        Ok(Served::WithResult(result))
    }
}

/// How the response to an accepted request is sent.
enum Served {
    /// At once, with this result.
    WithResult(i64),
    /// Later, by the operation that the request started. Some requests have no response.
    Later,
}

fn extension<'a>(
    requester: RequestIds,
    channel: &'a [u8],
    stream_id: i32,
    source_location: SourceLocation,
    is_auto_stop: bool,
) -> Result<RecordingRequest<'a>, ArchiveError> {
    Ok(RecordingRequest {
        requester,
        channel: text("channel", channel)?,
        stream_id,
        source_location,
        is_auto_stop,
    })
}

fn parts<'a>(request: &AuthConnectRequest<'a>) -> Result<ConnectRequestParts<'a>, ArchiveError> {
    Ok(ConnectRequestParts {
        correlation_id: request.correlation_id,
        version: request.version,
        response_stream_id: request.response_stream_id,
        response_channel: text("responseChannel", request.response_channel)?,
        encoded_credentials: request.encoded_credentials,
        client_info: text("clientInfo", request.client_info)?,
    })
}

fn old_parts<'a>(request: &ConnectRequest<'a>) -> Result<ConnectRequestParts<'a>, ArchiveError> {
    Ok(ConnectRequestParts {
        correlation_id: request.correlation_id,
        version: request.version,
        response_stream_id: request.response_stream_id,
        response_channel: text("responseChannel", request.response_channel)?,
        encoded_credentials: &[],
        client_info: "",
    })
}

/// Returns a field of a message as text. The bytes of the message may have any value.
pub(in crate::server) fn text<'a>(field: &str, bytes: &'a [u8]) -> Result<&'a str, ArchiveError> {
    std::str::from_utf8(bytes)
        .map_err(|error| ArchiveError::generic(format!("{field} is not text: {error}")))
}

/// Returns the entry of the error log for a connect request without a session. The session would send the error.
pub(in crate::server) fn connect_failure(error: &ArchiveError) -> String {
    format!("failed to connect a control session: {error}")
}

/// Returns the entry of the error log for a message that cannot be decoded. The lengths and numbers of the message are
/// not in the text, because they come from the network.
const fn undecodable(error: &ArchiveDecodeError) -> &'static str {
    match error {
        ArchiveDecodeError::TooShort { .. } => "control message is shorter than its header",
        ArchiveDecodeError::SchemaId { .. } => {
            "control message has another schema id than 101: another protocol uses the control stream"
        }
        ArchiveDecodeError::UnknownTemplateId { .. } => {
            "control message has an unknown template id"
        }
        ArchiveDecodeError::BlockTooShort { .. }
        | ArchiveDecodeError::BlockBeyondEnd { .. }
        | ArchiveDecodeError::DataMissing { .. }
        | ArchiveDecodeError::DataBeyondEnd { .. } => {
            "control message has a length that does not fit its template"
        }
        ArchiveDecodeError::UndefinedValue { .. } => {
            "control message has a number that its enumeration does not define"
        }
    }
}

const fn ids(control_session_id: i64, correlation_id: i64) -> RequestIds {
    RequestIds {
        control_session_id,
        correlation_id,
    }
}

fn template_id(message: &[u8]) -> u16 {
    MessageHeader::decode(message).map_or(0, |(header, _)| header.template_id)
}

//! Dispatches the messages of clients: checks the session of each message, passes the request to the conductor, and
//! sends the replies of the conductor as messages.

use aeron_client::Image;
use aeron_protocol::archive::{
    ArchiveDecodeError, ArchiveErrorCode, ArchiveRequest, AuthConnectRequest, MessageHeader,
    RequestIds,
};

use super::audit::{AuditedRequest, log_unauthorised};
use super::sessions::{ConnectRequestParts, ControlSessions, NotServed, connect_failure};
use super::translate::{ClientMessage, text};
use crate::server::ArchiveError;
use crate::server::conductor::{ArchiveConductor, ConductorRequest, Execution, Requesters};
use crate::server::outlets::{ConductorNotice, ConductorReply};
use crate::storage::Storage;

/// Entry of the error log for requests of unknown sessions. The text is constant: the ids come from the network.
const UNKNOWN_SESSION: &str = "WARN - control request for unknown session";

impl<S: Storage + Clone> Requesters<S> for ControlSessions {
    fn send_requests(&mut self, conductor: &mut ArchiveConductor<S>) -> usize {
        // The streams are moved out of `self`, because a request changes the other fields.
        let mut streams = std::mem::take(&mut self.streams);
        let mut dispatch = Dispatch {
            sessions: self,
            conductor,
        };
        let polled = streams.poll(|image, message| dispatch.on_message(image, message));
        self.streams = streams;
        polled.unwrap_or_else(|error| {
            conductor.outlets().report(&error.message);
            0
        })
    }

    fn receive(
        &mut self,
        notices: Vec<ConductorNotice>,
        conductor: &mut ArchiveConductor<S>,
    ) -> usize {
        let count = notices.len();
        for notice in notices {
            self.deliver(notice, conductor.now_ns());
        }
        count
    }
}

/// Control sessions, and the conductor that executes their requests.
struct Dispatch<'a, S: Storage + Clone> {
    sessions: &'a mut ControlSessions,
    conductor: &'a mut ArchiveConductor<S>,
}

impl<S: Storage + Clone> Dispatch<'_, S> {
    fn on_message(&mut self, image: &Image, bytes: &[u8]) {
        use ArchiveRequest as Message;
        let Some(decoded) = ClientMessage::decode(bytes) else {
            return;
        };
        match decoded {
            Ok(ClientMessage::Aeron(Message::AuthConnect(request))) => {
                self.on_connect(image, &parts(&request));
            }
            Ok(ClientMessage::Aeron(Message::Connect(request))) => {
                // The old form has no credentials and no information.
                let request = AuthConnectRequest {
                    correlation_id: request.correlation_id,
                    response_stream_id: request.response_stream_id,
                    version: request.version,
                    response_channel: request.response_channel,
                    encoded_credentials: &[],
                    client_info: &[],
                };
                self.on_connect(image, &parts(&request));
            }
            Ok(ClientMessage::Aeron(Message::CloseSession(request))) => {
                self.sessions.close(request.control_session_id, image);
            }
            Ok(ClientMessage::Aeron(Message::ChallengeResponse(request))) => {
                let ids = RequestIds {
                    control_session_id: request.control_session_id,
                    correlation_id: request.correlation_id,
                };
                let now_ms = self.conductor.outlets().now_ms();
                self.sessions.on_challenge_response(
                    ids,
                    image,
                    request.encoded_credentials,
                    now_ms,
                );
            }
            Ok(message) if message.replay_token().is_some() => {
                self.on_replay_with_token(image, &message);
            }
            Ok(message) => {
                if let Some(ids) = self.accept_or_refuse(image, bytes) {
                    self.serve(ids, &message);
                }
            }
            Err(error) => self.on_undecodable(image, bytes, error),
        }
    }

    fn on_connect(
        &mut self,
        image: &Image,
        request: &Result<ConnectRequestParts<'_>, ArchiveError>,
    ) {
        let connected = request.as_ref().map_err(Clone::clone).and_then(|request| {
            let now_ns = self.conductor.now_ns();
            self.sessions
                .connect(self.conductor.aeron(), image, request, now_ns)
        });
        // Without a response publication, the error cannot be sent to the client.
        if let Err(error) = connected {
            self.conductor
                .outlets()
                .report_client(&connect_failure(&error));
        }
    }

    /// Serves a replay request that was received from another image than the requests of its
    /// control session. The token identifies the session, to which the response goes.
    fn on_replay_with_token(&mut self, image: &Image, message: &ClientMessage<'_>) {
        let Some((recording_id, token, correlation_id)) = message.replay_token() else {
            return;
        };
        let request = message.request().and_then(|request| {
            let session_id = self.conductor.token_session(token, recording_id)?;
            Ok((request, session_id))
        });
        match request {
            Ok((Some(ConductorRequest::Replay { mut order }), control_session_id)) => {
                order.response_correlation_id = Some(image.correlation_id());
                let ids = RequestIds {
                    control_session_id,
                    correlation_id,
                };
                let request = ConductorRequest::Replay { order };
                if let Err(error) = self.conductor.execute(&self.sessions.caller(ids), request) {
                    self.conductor.outlets().refuse(ids, error);
                }
            }
            Ok(_) => {}
            // Without a session, the error cannot be sent to the client.
            Err(error) => self.conductor.outlets().report_client(&error.message),
        }
    }

    fn on_undecodable(&mut self, image: &Image, message: &[u8], error: ArchiveDecodeError) {
        self.conductor.outlets().report_client(undecodable(&error));
        let Some(ids) = RequestIds::of(message) else {
            return;
        };
        let (template_id, now_ns) = (template_id(message), self.conductor.now_ns());
        if self
            .sessions
            .accept(ids.control_session_id, image, template_id, now_ns)
            .is_ok()
        {
            self.conductor
                .outlets()
                .refuse(ids, ArchiveError::generic(error));
        }
    }

    /// Returns the ids of a request if its session serves the request. Reports a request of an unknown
    /// session. Reports and refuses a request that is not authorised. Ignores a request if its session
    /// is not active.
    fn accept_or_refuse(&mut self, image: &Image, message: &[u8]) -> Option<RequestIds> {
        let ids = RequestIds::of(message)?;
        let template_id = template_id(message);
        let outlets = self.conductor.outlets();
        match self
            .sessions
            .accept(ids.control_session_id, image, template_id, outlets.now_ns())
        {
            Ok(()) => return Some(ids),
            Err(NotServed::UnknownSession) => outlets.report_client(UNKNOWN_SESSION),
            Err(NotServed::NotActive) => {}
            Err(NotServed::Unauthorised) => {
                let error =
                    ArchiveError::new(ArchiveErrorCode::UnauthorisedAction, "unauthorised action");
                outlets.report_client(&format!(
                    "WARN - unauthorised action: templateId={template_id}"
                ));
                let principal = self.sessions.principal(ids.control_session_id);
                log_unauthorised(principal, ids, image, template_id);
                outlets.refuse(ids, error);
            }
        }
        None
    }

    fn serve(&mut self, ids: RequestIds, message: &ClientMessage<'_>) {
        let result = self.execute(ids, message);
        if let Some(audited) = AuditedRequest::of(message) {
            let session_id = ids.control_session_id;
            let address = self.sessions.source_identity(session_id);
            audited.log(
                self.sessions.principal(session_id),
                session_id,
                address,
                &result,
            );
        }
        let reply = match result {
            Ok(Execution::Pending) => return,
            // A listing begins at once: a later request in the same duty cycle finds it in progress.
            Ok(Execution::Replied(ConductorReply::Listing(listing))) => {
                match self.sessions.begin_listing(ids, listing) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
            Ok(Execution::Replied(reply)) => Ok(reply),
            Err(error) => Err(error),
        };
        // Not sent at once: replies and signals of the conductor that are older come first.
        self.conductor.outlets().reply(ids, reply);
    }

    fn execute(
        &mut self,
        ids: RequestIds,
        message: &ClientMessage<'_>,
    ) -> Result<Execution, ArchiveError> {
        let Some(request) = message.request()? else {
            return Ok(Execution::Pending);
        };
        if matches!(request, ConductorRequest::UpdateChannel { .. })
            && self.sessions.is_listing(ids.control_session_id)
        {
            return Err(ArchiveError::new(
                ArchiveErrorCode::ActiveListing,
                "active listing already in progress",
            ));
        }
        self.conductor.execute(&self.sessions.caller(ids), request)
    }
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

fn template_id(message: &[u8]) -> u16 {
    MessageHeader::decode(message).map_or(0, |(header, _)| header.template_id)
}

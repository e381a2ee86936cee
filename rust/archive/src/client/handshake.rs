//! [`Handshake`]: the exchange of messages that opens a control session with an archive. The
//! connecting client polls it.

use aeron_agent::version;
use aeron_client::{
    Action, Aeron, AppendError, ExclusivePublication, FragmentAssembler, OfferError, Subscription,
};
use aeron_protocol::archive::{
    ARCHIVE_PROTOCOL_VERSION, ArchiveDecodeError, ArchiveIdRequest, ArchiveRequest,
    ArchiveResponse, AuthConnectRequest, Challenge, ChallengeResponse, CloseSessionRequest,
    ControlResponse, ControlResponseCode, KeepAliveRequest, NULL_VALUE,
};

use super::call::encode;
use super::context::ArchiveClientContext;
use super::error::{ArchiveClientError, Result};
use super::exchange::{MAX_RESPONSE_LENGTH, refusal};
use super::session::{Connected, FRAGMENT_LIMIT};

/// First version of the protocol that has a request for the archive's id: 1.11.0.
const ARCHIVE_ID_SINCE: i32 = 0x0001_0B00;

/// Opens a control session over a publication and a subscription that the client has already added.
pub(super) struct Handshake {
    publication: ExclusivePublication,
    subscription: Subscription,
    assembler: FragmentAssembler,
    phase: Phase,
    control_session_id: i64,
    archive_id: i64,
}

/// The next step of the handshake.
enum Phase {
    AwaitRequestStream,
    SendConnectRequest { encoded_credentials: Vec<u8> },
    AwaitResponseStream { correlation_id: i64 },
    AwaitConnectResponse { correlation_id: i64 },
    SendChallengeResponse { encoded_credentials: Vec<u8> },
    SendArchiveIdRequest,
    AwaitArchiveId { correlation_id: i64 },
    SendKeepAlive,
    Connected,
}

/// A reply of the archive to a request of the handshake.
enum Reply {
    Accepted {
        control_session_id: i64,
        relevant_id: i64,
        version: i32,
    },
    Challenged {
        control_session_id: i64,
        encoded_challenge: Vec<u8>,
    },
    Refused {
        control_session_id: i64,
        error: ArchiveClientError,
    },
}

impl Handshake {
    pub(super) fn new(publication: ExclusivePublication, subscription: Subscription) -> Self {
        Self {
            publication,
            subscription,
            assembler: FragmentAssembler::default(),
            phase: Phase::AwaitRequestStream,
            control_session_id: NULL_VALUE,
            archive_id: NULL_VALUE,
        }
    }

    /// Returns the step that the handshake waits for. Error texts contain it.
    pub(super) const fn awaited(&self) -> &'static str {
        match self.phase {
            Phase::AwaitRequestStream => "an archive that subscribes to the request channel",
            Phase::SendConnectRequest { .. } => "room for the connect request",
            Phase::AwaitResponseStream { .. } => {
                "the archive's publication on the response channel"
            }
            Phase::AwaitConnectResponse { .. } => "the response to the connect request",
            Phase::SendChallengeResponse { .. } => "room for the challenge response",
            Phase::SendArchiveIdRequest => "room for the archive id request",
            Phase::AwaitArchiveId { .. } => "the id of the archive",
            Phase::SendKeepAlive => "room for the first keep-alive",
            Phase::Connected => "nothing",
        }
    }

    /// Runs the steps of the handshake until a step has to wait. Returns the parts of the session
    /// when it is open.
    ///
    /// # Errors
    /// [`ArchiveClientError::Refused`] if the archive refuses the client.
    /// [`ArchiveClientError::Disconnected`] if the archive ends the accepted session. Other errors if the
    /// streams cannot be used.
    pub(super) fn poll(
        &mut self,
        aeron: &Aeron,
        context: &ArchiveClientContext,
    ) -> Result<Option<Connected>> {
        while let Some(next) = self.advance(aeron, context)? {
            self.phase = next;
            if matches!(self.phase, Phase::Connected) {
                return Ok(Some(self.connected()));
            }
        }
        Ok(None)
    }

    fn connected(&mut self) -> Connected {
        Connected {
            publication: self.publication.clone(),
            subscription: self.subscription.clone(),
            assembler: std::mem::take(&mut self.assembler),
            control_session_id: self.control_session_id,
            archive_id: self.archive_id,
        }
    }

    /// Returns the next phase; `None` if the current phase must wait.
    fn advance(&mut self, aeron: &Aeron, context: &ArchiveClientContext) -> Result<Option<Phase>> {
        match &self.phase {
            Phase::AwaitRequestStream => {
                Ok(self
                    .publication
                    .is_connected()
                    .then(|| Phase::SendConnectRequest {
                        encoded_credentials: context.credentials.encoded_credentials(),
                    }))
            }
            Phase::SendConnectRequest {
                encoded_credentials,
            } => self.send_connect_request(aeron, context, encoded_credentials),
            &Phase::AwaitResponseStream { correlation_id } => Ok(self
                .subscription
                .is_connected()
                .then_some(Phase::AwaitConnectResponse { correlation_id })),
            &Phase::AwaitConnectResponse { correlation_id } => {
                self.await_connect_response(correlation_id, context)
            }
            Phase::SendChallengeResponse {
                encoded_credentials,
            } => self.send_challenge_response(aeron, encoded_credentials),
            Phase::SendArchiveIdRequest => self.send_archive_id_request(aeron),
            &Phase::AwaitArchiveId { correlation_id } => self.await_archive_id(correlation_id),
            Phase::SendKeepAlive => self.send_keep_alive(),
            Phase::Connected => Ok(None),
        }
    }
}

/// Sending.
impl Handshake {
    fn send_connect_request(
        &self,
        aeron: &Aeron,
        context: &ArchiveClientContext,
        encoded_credentials: &[u8],
    ) -> Result<Option<Phase>> {
        let Some(response_channel) = self.subscription.try_resolve_channel_endpoint_port() else {
            return Ok(None);
        };
        let correlation_id = aeron.next_correlation_id();
        let client_info = client_info(&context.client_name);
        let request = ArchiveRequest::AuthConnect(AuthConnectRequest {
            correlation_id,
            response_stream_id: context.control_response_stream_id,
            version: ARCHIVE_PROTOCOL_VERSION,
            response_channel: response_channel.as_bytes(),
            encoded_credentials,
            client_info: client_info.as_bytes(),
        });
        let next = Phase::AwaitResponseStream { correlation_id };
        self.send("connect", &request, next)
    }

    fn send_challenge_response(
        &self,
        aeron: &Aeron,
        encoded_credentials: &[u8],
    ) -> Result<Option<Phase>> {
        let correlation_id = aeron.next_correlation_id();
        let request = ArchiveRequest::ChallengeResponse(ChallengeResponse {
            control_session_id: self.control_session_id,
            correlation_id,
            encoded_credentials,
        });
        let next = Phase::AwaitConnectResponse { correlation_id };
        self.send("challenge response", &request, next)
    }

    fn send_archive_id_request(&self, aeron: &Aeron) -> Result<Option<Phase>> {
        let correlation_id = aeron.next_correlation_id();
        let request = ArchiveRequest::ArchiveId(ArchiveIdRequest {
            control_session_id: self.control_session_id,
            correlation_id,
        });
        let next = Phase::AwaitArchiveId { correlation_id };
        self.send("archive id", &request, next)
    }

    /// Sends a keep-alive, the last message of the handshake. The archive repeats the connect response
    /// until it receives a request. If the archive is too old for the archive id request, the
    /// keep-alive is the first request in the session.
    fn send_keep_alive(&self) -> Result<Option<Phase>> {
        let request = ArchiveRequest::KeepAlive(KeepAliveRequest {
            control_session_id: self.control_session_id,
            correlation_id: NULL_VALUE,
        });
        self.send("keep-alive", &request, Phase::Connected)
    }

    /// Sends a request. Returns `next` if the stream accepted it.
    fn send(
        &self,
        request: &'static str,
        message: &ArchiveRequest<'_>,
        next: Phase,
    ) -> Result<Option<Phase>> {
        match self.publication.offer(&encode(message)) {
            Ok(_) => Ok(Some(next)),
            Err(OfferError::Append(
                AppendError::NotConnected | AppendError::BackPressured | AppendError::AdminAction,
            )) => Ok(None),
            Err(source) => Err(ArchiveClientError::Send { request, source }),
        }
    }
}

/// Receiving.
impl Handshake {
    fn await_connect_response(
        &mut self,
        correlation_id: i64,
        context: &ArchiveClientContext,
    ) -> Result<Option<Phase>> {
        let reply = match self.receive("connect", correlation_id) {
            // The archive has ended the session without a reply, because too many clients waited for the check of their
            // credentials. The client begins again, until its message timeout.
            Err(ArchiveClientError::Disconnected) => return Ok(Some(Phase::AwaitRequestStream)),
            reply => reply?,
        };
        Ok(match reply {
            None => None,
            Some(Reply::Accepted {
                control_session_id,
                version,
                ..
            }) => {
                self.control_session_id = control_session_id;
                Some(match version >= ARCHIVE_ID_SINCE {
                    true => Phase::SendArchiveIdRequest,
                    false => Phase::SendKeepAlive,
                })
            }
            Some(Reply::Challenged {
                control_session_id,
                encoded_challenge,
            }) => {
                self.control_session_id = control_session_id;
                let encoded_credentials = context.credentials.on_challenge(&encoded_challenge);
                Some(Phase::SendChallengeResponse {
                    encoded_credentials,
                })
            }
            Some(Reply::Refused {
                control_session_id,
                error,
            }) => return Err(self.refused(control_session_id, error)),
        })
    }

    fn await_archive_id(&mut self, correlation_id: i64) -> Result<Option<Phase>> {
        match self.receive("archive id", correlation_id)? {
            None | Some(Reply::Challenged { .. }) => Ok(None),
            Some(Reply::Accepted { relevant_id, .. }) => {
                self.archive_id = relevant_id;
                Ok(Some(Phase::SendKeepAlive))
            }
            Some(Reply::Refused {
                control_session_id,
                error,
            }) => Err(self.refused(control_session_id, error)),
        }
    }

    /// Closes the session of a refused client. The archive has created this session to send its
    /// refusal.
    fn refused(&self, control_session_id: i64, error: ArchiveClientError) -> ArchiveClientError {
        let request = ArchiveRequest::CloseSession(CloseSessionRequest { control_session_id });
        // If this offer fails, the session still ends: the archive ends it when the response stream has no subscriber.
        let _ = self.publication.offer(&encode(&request));
        error
    }

    /// Reads the available messages up to the reply to a request. Returns `None` if the reply has not arrived yet.
    fn receive(&mut self, request: &'static str, correlation_id: i64) -> Result<Option<Reply>> {
        let mut reply = None;
        let assembler = &mut self.assembler;
        self.subscription.controlled_poll(
            |fragment| {
                assembler.on_controlled_fragment(fragment, |message| {
                    if message.len() <= MAX_RESPONSE_LENGTH {
                        reply = reply_in(&message.to_vec(), request, correlation_id);
                    }
                    match reply {
                        Some(_) => Action::Break,
                        None => Action::Continue,
                    }
                })
            },
            FRAGMENT_LIMIT,
        )?;
        if let Some(error) = assembler.take_out_of_memory() {
            return Err(error.into());
        }
        if reply.is_none() && !self.subscription.is_connected() {
            return Err(ArchiveClientError::Disconnected);
        }
        reply.transpose()
    }
}

/// Returns the reply in a message; `None` if the message belongs to another request.
fn reply_in(message: &[u8], request: &'static str, correlation_id: i64) -> Option<Result<Reply>> {
    match ArchiveResponse::decode(message) {
        Ok(ArchiveResponse::ControlResponse(response))
            if response.correlation_id == correlation_id =>
        {
            Some(Ok(control_reply(request, &response)))
        }
        Ok(ArchiveResponse::Challenge(challenge)) if challenge.correlation_id == correlation_id => {
            Some(Ok(challenge_reply(&challenge)))
        }
        Ok(_) | Err(ArchiveDecodeError::UnknownTemplateId { .. }) => None,
        Err(error) => Some(Err(error.into())),
    }
}

fn control_reply(request: &'static str, response: &ControlResponse<'_>) -> Reply {
    let control_session_id = response.control_session_id;
    let error = match response.code {
        ControlResponseCode::Ok => {
            return Reply::Accepted {
                control_session_id,
                relevant_id: response.relevant_id,
                version: response.version,
            };
        }
        ControlResponseCode::Error => refusal(request, response),
        code => ArchiveClientError::UnexpectedResponse {
            request,
            correlation_id: response.correlation_id,
            code,
            relevant_id: response.relevant_id,
        },
    };
    Reply::Refused {
        control_session_id,
        error,
    }
}

fn challenge_reply(challenge: &Challenge<'_>) -> Reply {
    Reply::Challenged {
        control_session_id: challenge.control_session_id,
        encoded_challenge: challenge.encoded_challenge.to_vec(),
    }
}

/// Returns the name and the version of the client. The archive puts them into the label of the
/// session's counter.
fn client_info(client_name: &str) -> String {
    let (version, commit) = (version::TEXT, version::COMMIT);
    format!("name={client_name} version={version} commit={commit}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(response: &ArchiveResponse<'_>) -> Vec<u8> {
        let mut message = vec![0; response.encoded_length()];
        response.encode(&mut message).unwrap();
        message
    }

    fn challenge() -> Vec<u8> {
        encoded(&ArchiveResponse::Challenge(Challenge {
            control_session_id: 3,
            correlation_id: 7,
            encoded_challenge: b"riddle",
        }))
    }

    /// 07-13: the version of a challenge is after the two ids.
    #[test]
    fn a_challenge_of_any_version_is_read() {
        let mut message = challenge();
        message[8 + 16..8 + 20].fill(0xff);
        let Some(Ok(Reply::Challenged {
            control_session_id: 3,
            encoded_challenge,
        })) = reply_in(&message, "connect", 7)
        else {
            panic!("the message is a challenge");
        };
        assert_eq!(encoded_challenge, b"riddle");
    }

    #[test]
    fn a_response_to_another_request_is_skipped() {
        assert!(reply_in(&challenge(), "connect", 8).is_none());
    }

    #[test]
    fn a_message_of_another_schema_fails_the_handshake() {
        let mut message = challenge();
        message[4] = 0;
        assert!(matches!(reply_in(&message, "connect", 7), Some(Err(_))));
    }

    proptest! {
        /// 07-11
        #[test]
        fn a_damaged_or_short_message_does_not_cause_a_panic(
            end in 0..64_usize, place in 0..64_usize, byte: u8, correlation_id in 6..9_i64
        ) {
            let mut message = challenge();
            message.truncate(end);
            if let Some(changed) = message.get_mut(place) {
                *changed = byte;
            }
            reply_in(&message, "connect", correlation_id);
        }
    }
}

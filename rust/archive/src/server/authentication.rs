//! Authentication of control sessions ([`Authenticator`]), and authorisation of their requests
//! ([`AuthorisationService`]).

use std::sync::Arc;

use super::users::Users;

/// Decides whether a client may open a control session.
///
/// The conductor of the archive calls the authenticator on its own thread, so a call must not block.
pub trait Authenticator: Send {
    /// Receives the credentials of a connect request, and where the request comes from.
    fn on_connect_request(
        &mut self,
        control_session_id: i64,
        origin: &ClientOrigin,
        encoded_credentials: &[u8],
        now_ms: i64,
    );

    /// Receives the response to a challenge.
    fn on_challenge_response(
        &mut self,
        control_session_id: i64,
        encoded_credentials: &[u8],
        now_ms: i64,
    );

    /// Decides about a session that has sent its connect request. The function is called again
    /// until the decision was sent.
    fn on_connected_session(
        &mut self,
        control_session_id: i64,
        now_ms: i64,
    ) -> AuthenticationDecision;

    /// Decides about a session that has responded to a challenge. The function is called again
    /// until the decision was sent.
    fn on_challenged_session(
        &mut self,
        control_session_id: i64,
        now_ms: i64,
    ) -> AuthenticationDecision;

    /// Removes all data about a session that has ended.
    fn on_session_ended(&mut self, control_session_id: i64);

    /// Replaces the users in the users file, if the authenticator uses them.
    fn set_users(&mut self, users: &Arc<Users>) {
        let _ = users;
    }

    /// Returns why the authenticator itself has failed since the last call, for the error log.
    fn take_failure(&mut self) -> Option<String> {
        None
    }
}

/// Where the requests of a session come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOrigin {
    /// The host or the client.
    pub source: ClientSource,
    /// Correlation id of the image from which the requests are received.
    pub image_id: i64,
}

/// The host or the client that sends requests. Limits apply to each source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClientSource {
    /// The IP address of a host on the network, without the port.
    Address(Box<str>),
    /// The id of a client on this machine that sends over IPC; the correlation id of its image, if the client is not
    /// known.
    Local(i64),
}

/// The decision about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthenticationDecision {
    /// There is no decision yet. The archive sends nothing. If there is no decision at the connect timeout, the session
    /// ends without a message.
    Pending,
    /// The session is accepted. The bytes are the principal, which identifies the user to the [`AuthorisationService`].
    Authenticate(Vec<u8>),
    /// The archive sends these bytes to the client as a challenge. The client must respond.
    Challenge(Vec<u8>),
    /// The session is refused.
    Reject,
}

/// Decides whether a user may send a request.
pub trait AuthorisationService: Send {
    /// Returns whether the user may send requests with this template id (`aeron_protocol::archive`).
    fn is_authorised(&self, template_id: u16, encoded_principal: &[u8]) -> bool;

    /// Replaces the users in the users file, if the service uses them.
    fn set_users(&mut self, users: &Arc<Users>) {
        let _ = users;
    }
}

/// Accepts every client.
#[derive(Debug, Clone, Copy, Default)]
pub struct AcceptAll;

/// Allows every request.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

/// Allows no request.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Authenticator for AcceptAll {
    fn on_connect_request(&mut self, _: i64, _: &ClientOrigin, _: &[u8], _: i64) {}

    fn on_challenge_response(&mut self, _: i64, _: &[u8], _: i64) {}

    fn on_connected_session(&mut self, _: i64, _: i64) -> AuthenticationDecision {
        AuthenticationDecision::Authenticate(Vec::new())
    }

    fn on_challenged_session(&mut self, _: i64, _: i64) -> AuthenticationDecision {
        AuthenticationDecision::Authenticate(Vec::new())
    }

    fn on_session_ended(&mut self, _: i64) {}
}

impl AuthorisationService for AllowAll {
    fn is_authorised(&self, _: u16, _: &[u8]) -> bool {
        true
    }
}

impl AuthorisationService for DenyAll {
    fn is_authorised(&self, _: u16, _: &[u8]) -> bool {
        false
    }
}

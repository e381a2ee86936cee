//! Authentication of control sessions ([`Authenticator`]), and authorisation of their requests ([`AuthorisationService`]).

/// Decides whether a client may open a control session.
///
/// The archive calls it on its conductor's thread; a call must not block.
pub trait Authenticator: Send {
    /// Takes the credentials of a connect request.
    fn on_connect_request(
        &mut self,
        control_session_id: i64,
        encoded_credentials: &[u8],
        now_ms: i64,
    );

    /// Takes the response to a challenge.
    fn on_challenge_response(
        &mut self,
        control_session_id: i64,
        encoded_credentials: &[u8],
        now_ms: i64,
    );

    /// Decides about a session that sent its connect request. Called again until the decision was sent.
    fn on_connected_session(
        &mut self,
        control_session_id: i64,
        now_ms: i64,
    ) -> AuthenticationDecision;

    /// Decides about a session that was challenged. Called again until the decision was sent.
    fn on_challenged_session(
        &mut self,
        control_session_id: i64,
        now_ms: i64,
    ) -> AuthenticationDecision;

    /// Drops what is known of a session that ended.
    fn on_session_ended(&mut self, control_session_id: i64);
}

/// The decision about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthenticationDecision {
    /// Nothing is decided yet.
    Pending,
    /// The session is accepted; the bytes name the user to the [`AuthorisationService`].
    Authenticate(Vec<u8>),
    /// The client must respond to these bytes.
    Challenge(Vec<u8>),
    /// The session is refused.
    Reject,
}

/// Decides whether a user may send a request.
pub trait AuthorisationService: Send {
    /// Whether the user may send requests with this template id (`aeron_protocol::archive`).
    fn is_authorised(&self, template_id: u16, encoded_principal: &[u8]) -> bool;
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
    fn on_connect_request(&mut self, _: i64, _: &[u8], _: i64) {}

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

//! [`ControlSession`]: one client's connection to the archive, from its connect request to its end.

use aeron_client::{Counter, ExclusivePublication, Image, PendingOperation};
use aeron_protocol::archive::{
    ARCHIVE_PROTOCOL_VERSION, ArchiveErrorCode, ArchiveResponse, Challenge, Ping, RecordingSignal,
    RecordingSignalEvent, RequestIds,
};

use super::audit::log_rejected;
use super::responses::{Response, ResponseStream, Sent, authentication_rejected};
use crate::server::listing::{Listing, ListingSource};
use crate::server::outlets::SignalPlace;
use crate::server::{ArchiveError, AuthenticationDecision, Authenticator};

/// Interval in nanoseconds at which a session repeats a message until the client responds.
const RESEND_INTERVAL_NS: i64 = 200_000_000;

/// The values of a connect request, and the resources that the driver was asked to add for it.
pub(in crate::server) struct Opening {
    /// Id of the session.
    pub control_session_id: i64,
    /// Correlation id of the connect request.
    pub correlation_id: i64,
    /// Image from which the request was received.
    pub image: Image,
    /// Protocol version of the client, if the archive does not support this version.
    pub refused_version: Option<i32>,
    /// The response publication.
    pub publication: PendingOperation<ExclusivePublication>,
    /// The counter of the session.
    pub counter: PendingOperation<Counter>,
    /// Time limit of each step of the connection, in nanoseconds.
    pub connect_timeout_ns: i64,
    /// Interval of pings, in nanoseconds.
    pub liveness_check_interval_ns: i64,
}

/// A control session.
pub(in crate::server) struct ControlSession {
    opening: Opening,
    state: ControlSessionState,
    responses: Option<ResponseStream>,
    counter: Option<Counter>,
    /// Time at which the session ends, unless the current step succeeds before this time.
    deadline_ns: Option<i64>,
    next_resend_ns: i64,
    /// Whether the authenticator has been asked, and has not decided yet.
    is_undecided: bool,
    /// Correlation id of the response with the authenticator's decision.
    authentication_correlation_id: i64,
    principal: Vec<u8>,
    /// Correlation id of the request for a listing, and the listing.
    listing: Option<(i64, Listing)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ControlSessionState {
    Init,
    Connecting,
    Connected,
    Challenged,
    Authenticated,
    Active,
    Rejected,
    Done,
}

/// The parts of the archive that a session uses in a duty cycle.
pub(in crate::server) struct SessionTurn<'a> {
    pub now_ns: i64,
    pub now_ms: i64,
    pub authenticator: &'a mut dyn Authenticator,
    pub source: &'a dyn ListingSource,
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum SessionEnd {
    /// The client closed the session, no longer exists, or does not read its responses. So no message is sent.
    Closed,
    /// The archive ends the session, and rejects the image of the client's request publication with this reason.
    Aborted(String),
}

impl ControlSession {
    pub fn new(opening: Opening, now_ns: i64) -> Self {
        Self {
            state: ControlSessionState::Init,
            responses: None,
            counter: None,
            deadline_ns: Some(now_ns.saturating_add(opening.connect_timeout_ns)),
            next_resend_ns: now_ns,
            is_undecided: false,
            authentication_correlation_id: opening.correlation_id,
            principal: Vec::new(),
            listing: None,
            opening,
        }
    }

    pub fn id(&self) -> i64 {
        self.opening.control_session_id
    }

    /// Returns the image from which the session's requests are received.
    pub fn image(&self) -> &Image {
        &self.opening.image
    }

    pub fn principal(&self) -> &[u8] {
        &self.principal
    }

    /// Returns whether the client is connected and authenticated.
    pub fn is_established(&self) -> bool {
        matches!(
            self.state,
            ControlSessionState::Authenticated | ControlSessionState::Active
        )
    }

    pub fn is_challenged(&self) -> bool {
        self.state == ControlSessionState::Challenged
    }

    /// Notes that a request was received. The first request makes the session active. Returns
    /// whether the session serves the request.
    pub fn accept_request(&mut self, now_ns: i64) -> bool {
        if self.state == ControlSessionState::Authenticated
            && self.opening.refused_version.is_none()
        {
            self.state = ControlSessionState::Active;
            self.next_resend_ns = now_ns.saturating_add(self.opening.liveness_check_interval_ns);
        }
        self.state == ControlSessionState::Active
    }

    /// Stores the correlation id of a response to a challenge. The archive sends its decision with
    /// this correlation id.
    pub fn on_challenge_response(&mut self, correlation_id: i64) {
        self.authentication_correlation_id = correlation_id;
    }

    /// Ends the session. [`close`](Self::close) later revokes the response publication.
    pub fn end(&mut self) {
        self.state = ControlSessionState::Done;
    }

    /// Revokes the response publication and frees the counter.
    pub fn close(&mut self) {
        self.state = ControlSessionState::Done;
        if let Some(responses) = self.responses.take() {
            responses.publication().revoke();
        }
        if let Some(counter) = self.counter.take() {
            counter.close();
        }
        self.listing = None;
    }

    /// Sends a response to a request of the session. Does nothing if the session is not connected.
    pub fn respond(&mut self, correlation_id: i64, response: &Response, now_ns: i64) {
        let id = self.id();
        if let Some(responses) = &mut self.responses {
            let sent = responses.respond(id, correlation_id, response);
            self.note(sent, now_ns);
        }
    }

    /// Sends a signal to the session.
    pub fn signal(
        &mut self,
        correlation_id: i64,
        signal: RecordingSignal,
        place: SignalPlace,
        now_ns: i64,
    ) {
        let event = RecordingSignalEvent {
            control_session_id: self.id(),
            correlation_id,
            recording_id: place.recording_id,
            subscription_id: place.subscription_id,
            position: place.position,
            signal,
        };
        if let Some(responses) = &mut self.responses {
            let sent = responses.send(&ArchiveResponse::RecordingSignal(event));
            self.note(sent, now_ns);
        }
    }

    /// Begins a listing.
    ///
    /// # Errors
    /// Another listing of the session has not ended.
    pub fn begin_listing(
        &mut self,
        correlation_id: i64,
        listing: Listing,
    ) -> Result<(), ArchiveError> {
        if self.listing.is_some() {
            return Err(ArchiveError::new(
                ArchiveErrorCode::ActiveListing,
                "active listing already in progress",
            ));
        }
        self.listing = Some((correlation_id, listing));
        Ok(())
    }

    /// Returns whether a listing is in progress.
    pub fn is_listing(&self) -> bool {
        self.listing.is_some()
    }

    /// Runs one duty cycle. Returns the work count, or the reason why the session ended.
    pub fn do_work(&mut self, turn: &mut SessionTurn<'_>) -> Result<usize, SessionEnd> {
        if self.state == ControlSessionState::Done {
            return Err(SessionEnd::Closed);
        }
        if self.opening.image.is_closed() {
            return Err(SessionEnd::Closed);
        }
        let mut work = match self.state {
            ControlSessionState::Init => self.open(turn.now_ns)?,
            ControlSessionState::Connecting => self.connect(),
            ControlSessionState::Connected => self.decide(turn, false)?,
            ControlSessionState::Challenged => self.decide(turn, true)?,
            ControlSessionState::Authenticated => self.repeat_acceptance(turn.now_ns),
            ControlSessionState::Active => self.serve(turn)?,
            ControlSessionState::Rejected => self.repeat_rejection(turn.now_ns),
            ControlSessionState::Done => 0,
        };
        work += self.flush(turn.now_ns)?;
        self.check_deadline(turn.now_ns)?;
        Ok(work)
    }

    fn open(&mut self, now_ns: i64) -> Result<usize, SessionEnd> {
        let opening = &mut self.opening;
        let failed = |error: aeron_client::Error| {
            SessionEnd::Aborted(format!("failed to create response publication: {error}"))
        };
        if self.responses.is_none() {
            let publication = opening.publication.poll().map_err(failed)?;
            self.responses = publication.map(ResponseStream::new);
        }
        if self.counter.is_none() {
            self.counter = opening.counter.poll().map_err(failed)?;
        }
        let (Some(responses), Some(counter)) = (&self.responses, &self.counter) else {
            return Ok(0);
        };
        counter.set_reference_id(responses.publication().registration_id());
        counter.set(opening.control_session_id);
        self.deadline_ns = Some(now_ns.saturating_add(opening.connect_timeout_ns));
        self.state = ControlSessionState::Connecting;
        Ok(1)
    }

    fn connect(&mut self) -> usize {
        debug_assert!(
            self.responses.is_some() && self.counter.is_some(),
            "control session {} must have its publication and its counter before it connects",
            self.id()
        );
        let is_connected = self
            .responses
            .as_ref()
            .is_some_and(|responses| responses.publication().is_connected());
        if is_connected {
            self.state = ControlSessionState::Connected;
        }
        usize::from(is_connected)
    }

    /// Calls the authenticator, and sends its decision.
    fn decide(
        &mut self,
        turn: &mut SessionTurn<'_>,
        is_challenged: bool,
    ) -> Result<usize, SessionEnd> {
        if !is_challenged && !self.is_resend_due(turn.now_ns) {
            return Ok(0);
        }
        if let Some(version) = self.opening.refused_version {
            self.send_now(&version_error(version));
            return Ok(1);
        }
        let (id, now_ms) = (self.id(), turn.now_ms);
        let decision = match is_challenged {
            false => turn.authenticator.on_connected_session(id, now_ms),
            true => turn.authenticator.on_challenged_session(id, now_ms),
        };
        self.is_undecided = !is_challenged && decision == AuthenticationDecision::Pending;
        match decision {
            AuthenticationDecision::Pending => {
                // Asks again in the next duty cycle.
                self.next_resend_ns = turn.now_ns;
                Ok(0)
            }
            AuthenticationDecision::Authenticate(principal) => {
                if self.send_now(&Response::Ok(id)) {
                    self.principal = principal;
                    self.deadline_ns = None;
                    self.become_state(ControlSessionState::Authenticated, turn.now_ns);
                }
                Ok(1)
            }
            AuthenticationDecision::Challenge(challenge) => {
                if !is_challenged && self.send_challenge(&challenge) {
                    self.become_state(ControlSessionState::Challenged, turn.now_ns);
                }
                Ok(1)
            }
            AuthenticationDecision::Reject => {
                self.become_state(ControlSessionState::Rejected, turn.now_ns);
                log_rejected(self.id(), &self.opening.image);
                self.send_now(&authentication_rejected());
                Ok(1)
            }
        }
    }

    fn become_state(&mut self, state: ControlSessionState, now_ns: i64) {
        debug_assert!(
            matches!(
                (self.state, state),
                (
                    ControlSessionState::Connected,
                    ControlSessionState::Authenticated
                        | ControlSessionState::Challenged
                        | ControlSessionState::Rejected
                ) | (
                    ControlSessionState::Challenged,
                    ControlSessionState::Authenticated | ControlSessionState::Rejected
                )
            ),
            "control session {} must not go from {} to {}",
            self.id(),
            state_name(self.state),
            state_name(state)
        );
        self.state = state;
        self.next_resend_ns = now_ns.saturating_add(RESEND_INTERVAL_NS);
    }

    fn send_challenge(&mut self, challenge: &[u8]) -> bool {
        let message = ArchiveResponse::Challenge(Challenge {
            control_session_id: self.opening.control_session_id,
            correlation_id: self.authentication_correlation_id,
            encoded_challenge: challenge,
        });
        self.responses
            .as_mut()
            .is_some_and(|responses| responses.try_send(&message) == Sent::Now)
    }

    /// Sends a response during the connection, if the publication accepts it now. Otherwise the
    /// caller tries again later.
    fn send_now(&mut self, response: &Response) -> bool {
        let (id, correlation_id) = (self.id(), self.authentication_correlation_id);
        self.responses.as_mut().is_some_and(|responses| {
            responses.try_respond(id, correlation_id, response) == Sent::Now
        })
    }

    fn repeat_acceptance(&mut self, now_ns: i64) -> usize {
        if !self.is_resend_due(now_ns) {
            return 0;
        }
        self.send_now(&Response::Ok(self.id()));
        1
    }

    fn repeat_rejection(&mut self, now_ns: i64) -> usize {
        if !self.is_resend_due(now_ns) {
            return 0;
        }
        self.send_now(&authentication_rejected());
        1
    }

    /// Returns whether a message must be repeated now. If so, starts the next interval.
    fn is_resend_due(&mut self, now_ns: i64) -> bool {
        let is_due = now_ns >= self.next_resend_ns;
        if is_due {
            self.next_resend_ns = now_ns.saturating_add(RESEND_INTERVAL_NS);
        }
        is_due
    }

    fn serve(&mut self, turn: &mut SessionTurn<'_>) -> Result<usize, SessionEnd> {
        let id = self.id();
        let Some(responses) = &mut self.responses else {
            return Err(SessionEnd::Closed);
        };
        if !responses.publication().is_connected() {
            return Err(SessionEnd::Closed);
        }
        let mut work = 0;
        if let Some((correlation_id, listing)) = &mut self.listing {
            let ids = RequestIds {
                control_session_id: id,
                correlation_id: *correlation_id,
            };
            let progress = listing.read(turn.source, |entry| {
                // If the publication is closed, the session ends by itself.
                responses.try_send_entry(ids, entry) == Sent::Now
            });
            work += progress.taken;
            let response = progress.end.and_then(Response::of_listing);
            if let Some(response) = &response {
                responses.respond(id, *correlation_id, response);
                work += 1;
            }
            if progress.taken > 0 || response.is_some() {
                // A ping that was back-pressured between two parts of a long listing may have started the deadline.
                // The listing makes progress, so the session must not end.
                self.deadline_ns = None;
            }
            if progress.end.is_some() {
                self.listing = None;
            }
        }
        if turn.now_ns >= self.next_resend_ns {
            self.next_resend_ns = turn
                .now_ns
                .saturating_add(self.opening.liveness_check_interval_ns);
            let ping = ArchiveResponse::Ping(Ping {
                control_session_id: id,
            });
            if !responses.has_queued() {
                let sent = responses.try_send(&ping);
                self.note(sent, turn.now_ns);
            }
            work += 1;
        }
        Ok(work)
    }

    fn flush(&mut self, now_ns: i64) -> Result<usize, SessionEnd> {
        let Some(responses) = &mut self.responses else {
            return Ok(0);
        };
        if !responses.has_queued() {
            return Ok(0);
        }
        let (count, rest) = responses.flush();
        if rest == Sent::Never {
            return Err(SessionEnd::Closed);
        }
        if count > 0 {
            self.note(Sent::Now, now_ns);
        }
        // A listing queues its last message without a call of `note`. So the deadline starts here if messages remain
        // queued.
        self.note(rest, now_ns);
        Ok(count)
    }

    /// Notes the outcome of a send. A queued message starts the deadline, and a sent message clears
    /// it. During the connection, the deadline of the connection applies instead.
    fn note(&mut self, sent: Sent, now_ns: i64) {
        let is_established = self.is_established();
        match sent {
            Sent::Never => self.state = ControlSessionState::Done,
            Sent::Now if is_established => self.deadline_ns = None,
            Sent::Queued if is_established && self.deadline_ns.is_none() => {
                self.deadline_ns = Some(now_ns.saturating_add(self.opening.connect_timeout_ns));
            }
            Sent::Now | Sent::Queued => {}
        }
    }

    fn check_deadline(&self, now_ns: i64) -> Result<(), SessionEnd> {
        debug_assert!(
            self.deadline_ns.is_some()
                || self.is_established()
                || self.state == ControlSessionState::Done,
            "control session {} waits in state {} without a deadline",
            self.id(),
            state_name(self.state)
        );
        if self
            .deadline_ns
            .is_none_or(|deadline_ns| now_ns < deadline_ns)
        {
            return Ok(());
        }
        if self.is_undecided && self.state == ControlSessionState::Connected {
            // The client is not at fault: too many others wait for the authenticator. Without a message, the client may
            // try again.
            return Err(SessionEnd::Closed);
        }
        let timeout_ms = self.opening.connect_timeout_ns / 1_000_000;
        Err(SessionEnd::Aborted(match self.state {
            ControlSessionState::Active => {
                format!("failed to send response for more than connectTimeoutMs={timeout_ms}")
            }
            state => format!(
                "failed to establish initial connection: state={}",
                state_name(state)
            ),
        }))
    }
}

fn state_name(state: ControlSessionState) -> &'static str {
    match state {
        ControlSessionState::Init => "INIT",
        ControlSessionState::Connecting => "CONNECTING",
        ControlSessionState::Connected => "CONNECTED",
        ControlSessionState::Challenged => "CHALLENGED",
        ControlSessionState::Authenticated => "AUTHENTICATED",
        ControlSessionState::Active => "ACTIVE",
        ControlSessionState::Rejected => "REJECTED",
        ControlSessionState::Done => "DONE",
    }
}

/// Returns the error for a client whose protocol version is not supported.
fn version_error(version: i32) -> Response {
    let text = |version: i32| {
        let version = version as u32;
        format!(
            "{}.{}.{}",
            version >> 16 & 0xFF,
            version >> 8 & 0xFF,
            version & 0xFF
        )
    };
    Response::WrongVersion(format!(
        "invalid client version {}, archive is {}",
        text(version),
        text(ARCHIVE_PROTOCOL_VERSION)
    ))
}

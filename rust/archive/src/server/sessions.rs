//! [`ControlSessions`]: the control sessions of the archive. Handles connect requests, and checks
//! whether a session may send a request.

use aeron_client::{Aeron, Counter, Image, PendingOperation};
use aeron_protocol::archive::{ARCHIVE_PROTOCOL_VERSION, RequestIds};

use super::control::{ControlSession, Opening, Response, SessionEnd, SessionTurn};
use super::listing::{Listing, ListingSource};
use super::outbox::{Outbox, SessionNotice};
use super::{ArchiveError, Authenticator, AuthorisationService};
use crate::channel::{ControlStreamDefaults, response_channel};
use crate::text::truncated;

/// Type id of the counter of a session.
const CONTROL_SESSION_TYPE_ID: i32 = 113;
/// Longest label of a counter, in bytes.
const MAX_LABEL_LENGTH: usize = 380;
/// Maximum number of sessions. Each session has a response publication. Without the limit, a client
/// that connects repeatedly could use up the resources of the driver.
const MAX_SESSIONS: usize = 1024;

/// Settings of the control sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionSettings {
    /// Id of the archive, shown in the labels of counters.
    pub archive_id: i64,
    /// Time limit for a client to connect, and to read a response, in nanoseconds.
    pub connect_timeout_ns: i64,
    /// Interval of pings, in nanoseconds.
    pub liveness_check_interval_ns: i64,
    /// Defaults for the parameters of response channels that a client does not set.
    pub response_defaults: ControlStreamDefaults,
}

/// A connect request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectRequestParts<'a> {
    pub correlation_id: i64,
    pub version: i32,
    pub response_stream_id: i32,
    pub response_channel: &'a str,
    pub encoded_credentials: &'a [u8],
    pub client_info: &'a str,
}

/// The control sessions of an archive.
pub(super) struct ControlSessions {
    settings: SessionSettings,
    sessions: Vec<ControlSession>,
    next_id: i64,
    authenticator: Box<dyn Authenticator>,
    authorisation: Box<dyn AuthorisationService>,
}

/// Why a session does not serve a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotServed {
    /// No session has the id, or the request was received from another image than the connect
    /// request.
    UnknownSession,
    /// The session is not connected yet, or it is ending.
    NotActive,
    /// The user may not send such requests.
    Unauthorised,
}

impl ControlSessions {
    /// Creates an empty set of sessions. The id of the first session is `first_id`.
    pub fn new(
        settings: SessionSettings,
        first_id: i64,
        authenticator: Box<dyn Authenticator>,
        authorisation: Box<dyn AuthorisationService>,
    ) -> Self {
        Self {
            settings,
            sessions: Vec::new(),
            next_id: first_id,
            authenticator,
            authorisation,
        }
    }

    /// Returns the number of sessions that have not ended.
    pub fn count(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the next id of the sequence that sessions and replications share.
    pub fn take_id(&mut self) -> i64 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1) & i64::MAX;
        id
    }

    /// Begins a session, and asks the driver to add its response publication.
    ///
    /// # Errors
    /// There are too many sessions, or the response channel is not valid.
    pub fn connect(
        &mut self,
        aeron: &Aeron,
        image: &Image,
        request: &ConnectRequestParts<'_>,
        now_ns: i64,
        now_ms: i64,
    ) -> Result<(), ArchiveError> {
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(ArchiveError::generic(format!(
                "max control sessions reached {MAX_SESSIONS}: close sessions that are not used"
            )));
        }
        let channel = response_channel(
            request.response_channel,
            self.settings.response_defaults,
            image.correlation_id(),
        )?;
        let publication =
            aeron.async_add_exclusive_publication(&channel, request.response_stream_id)?;
        let id = self.take_id();
        let counter = ask_for_session_counter(
            aeron,
            self.settings.archive_id,
            id,
            image,
            request.client_info,
        )?;
        let is_spoken = request.version >> 16 == ARCHIVE_PROTOCOL_VERSION >> 16;
        let opening = Opening {
            control_session_id: id,
            correlation_id: request.correlation_id,
            image: image.clone(),
            refused_version: (!is_spoken).then_some(request.version),
            publication,
            counter,
            connect_timeout_ns: self.settings.connect_timeout_ns,
            liveness_check_interval_ns: self.settings.liveness_check_interval_ns,
        };
        self.authenticator
            .on_connect_request(id, request.encoded_credentials, now_ms);
        self.sessions.push(ControlSession::new(opening, now_ns));
        Ok(())
    }

    /// Accepts a request that was received from `image`. The first request makes the session
    /// active.
    ///
    /// # Errors
    /// The reason why the session does not serve the request.
    pub fn accept(
        &mut self,
        control_session_id: i64,
        image: &Image,
        template_id: u16,
        now_ns: i64,
    ) -> Result<(), NotServed> {
        let Self {
            sessions,
            authorisation,
            ..
        } = self;
        let session = find(sessions, control_session_id)
            .filter(|session| is_same_image(session.image(), image))
            .ok_or(NotServed::UnknownSession)?;
        if !session.accept_request(now_ns) {
            return Err(NotServed::NotActive);
        }
        match authorisation.is_authorised(template_id, session.principal()) {
            true => Ok(()),
            false => Err(NotServed::Unauthorised),
        }
    }

    /// Passes the response to a challenge to the session. A session without a challenge ignores the
    /// response.
    pub fn on_challenge_response(
        &mut self,
        ids: RequestIds,
        image: &Image,
        encoded_credentials: &[u8],
        now_ms: i64,
    ) {
        let session = find(&mut self.sessions, ids.control_session_id);
        if let Some(session) = session
            .filter(|session| session.is_challenged() && is_same_image(session.image(), image))
        {
            session.on_challenge_response(ids.correlation_id);
            self.authenticator.on_challenge_response(
                ids.control_session_id,
                encoded_credentials,
                now_ms,
            );
        }
    }

    /// Closes a session at the request of its client. Ignores an unknown session: a client that outlives the archive
    /// closes the session of the archive's previous process.
    pub fn close(&mut self, control_session_id: i64, image: &Image) {
        if let Some(session) = find(&mut self.sessions, control_session_id)
            .filter(|session| is_same_image(session.image(), image))
        {
            session.end();
        }
    }

    /// Begins a listing.
    ///
    /// # Errors
    /// Another listing of the session has not ended.
    pub fn begin_listing(
        &mut self,
        requester: RequestIds,
        listing: Listing,
    ) -> Result<(), ArchiveError> {
        match find(&mut self.sessions, requester.control_session_id) {
            Some(session) => session.begin_listing(listing),
            None => Ok(()),
        }
    }

    /// Returns whether a listing of the session is in progress.
    pub fn is_listing(&mut self, control_session_id: i64) -> bool {
        find(&mut self.sessions, control_session_id).is_some_and(|session| session.is_listing())
    }

    /// Sends the messages of the outbox. Messages to ended sessions are dropped.
    pub fn deliver(&mut self, outbox: &mut Outbox, now_ns: i64) -> usize {
        let notices = outbox.take();
        let count = notices.len();
        for notice in notices {
            match notice {
                SessionNotice::Response(requester, response) => {
                    self.respond(requester, &response, now_ns)
                }
                SessionNotice::Signal(signal) => {
                    if let Some(session) = find(&mut self.sessions, signal.control_session_id) {
                        session.signal(signal, now_ns);
                    }
                }
            }
        }
        count
    }

    fn respond(&mut self, requester: RequestIds, response: &Response, now_ns: i64) {
        if let Some(session) = find(&mut self.sessions, requester.control_session_id) {
            session.respond(requester.correlation_id, response, now_ns);
        }
    }

    /// Runs all sessions, beginning with the last session, and removes ended sessions. Calls
    /// `on_end` with the id of each ended session, and with the reason if the archive ended the
    /// session.
    pub fn do_work(
        &mut self,
        now_ns: i64,
        now_ms: i64,
        source: &dyn ListingSource,
        mut on_end: impl FnMut(i64, Option<&str>),
    ) -> usize {
        let mut work = 0;
        for at in (0..self.sessions.len()).rev() {
            let mut turn = SessionTurn {
                now_ns,
                now_ms,
                authenticator: &mut *self.authenticator,
                source,
            };
            match self.sessions[at].do_work(&mut turn) {
                Ok(count) => work += count,
                Err(end) => {
                    work += 1;
                    let mut session = self.sessions.swap_remove(at);
                    session.close();
                    self.authenticator.on_session_ended(session.id());
                    let reason = reject_image(&session, &end);
                    on_end(session.id(), reason);
                }
            }
        }
        work
    }

    /// Ends all sessions.
    pub fn close_all(&mut self) {
        self.sessions.iter_mut().for_each(ControlSession::close);
        self.sessions.clear();
    }
}

/// Rejects the image of the client's request publication with the reason why the archive ended the
/// session. If the client has closed the session, does nothing.
fn reject_image<'a>(session: &ControlSession, end: &'a SessionEnd) -> Option<&'a str> {
    let SessionEnd::Aborted(reason) = end else {
        return None;
    };
    // An error is ignored: an unavailable image need not be rejected. Dropping the operation does
    // not cancel the rejection.
    drop(session.image().async_reject(reason));
    Some(reason)
}

fn is_same_image(one: &Image, other: &Image) -> bool {
    one.correlation_id() == other.correlation_id()
        && one.subscription_registration_id() == other.subscription_registration_id()
}

fn find(sessions: &mut [ControlSession], id: i64) -> Option<&mut ControlSession> {
    sessions.iter_mut().find(|session| session.id() == id)
}

fn ask_for_session_counter(
    aeron: &Aeron,
    archive_id: i64,
    control_session_id: i64,
    image: &Image,
    client_info: &str,
) -> aeron_client::Result<PendingOperation<Counter>> {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&archive_id.to_le_bytes());
    key[8..].copy_from_slice(&control_session_id.to_le_bytes());
    let suffix = format!(" - archiveId={archive_id}");
    let source = format!(
        "sourceIdentity={} sessionId={}",
        image.source_identity(),
        image.session_id()
    );
    let info = match client_info.is_empty() {
        true => String::new(),
        false => format!("{client_info} "),
    };
    let label = format!("control-session: {info}{source}");
    let room = MAX_LABEL_LENGTH - suffix.len();
    aeron.async_add_counter(
        CONTROL_SESSION_TYPE_ID,
        &key,
        &format!("{}{suffix}", truncated(&label, room)),
    )
}

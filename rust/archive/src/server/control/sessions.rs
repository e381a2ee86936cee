//! [`ControlSessions`]: the control sessions of the archive. Handles connect requests, and checks
//! whether a session may send a request.

use std::collections::HashMap;
use std::sync::Arc;

use aeron_client::{Aeron, Counter, Image, PendingOperation};
use aeron_memory::counters::types;
use aeron_protocol::archive::{ARCHIVE_PROTOCOL_VERSION, RequestIds};
use aeron_protocol::uri::{ChannelUri, key};

use super::responses::Response;
use super::session::{ControlSession, Opening, SessionEnd, SessionTurn};
use super::streams::ControlStreams;
use crate::channel::{ControlStreamDefaults, response_channel};
use crate::server::admission::{Admission, ConnectTicket};
use crate::server::conductor::{ArchiveConductor, Caller};
use crate::server::listing::Listing;
use crate::server::outlets::{ConductorNotice, ConductorReply};
use crate::server::users::Users;
use crate::server::{
    ArchiveError, Authenticator, AuthorisationService, ClientOrigin, ClientSource,
};
use crate::storage::Storage;
use crate::text::truncated;

/// Type id of the counter of a session.
const CONTROL_SESSION_TYPE_ID: i32 = 113;
/// Template id of the request to start a recording.
const START_RECORDING: u16 = 4;
/// Source identity of an image over IPC.
const IPC_IDENTITY: &str = "aeron:ipc";
/// Longest label of a counter, in bytes.
const MAX_LABEL_LENGTH: usize = 380;
/// Maximum number of images of which the client is remembered.
const MAX_REMEMBERED_IMAGES: usize = 1024;

/// Settings of the control sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) struct SessionSettings {
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
pub(in crate::server) struct ConnectRequestParts<'a> {
    pub correlation_id: i64,
    pub version: i32,
    pub response_stream_id: i32,
    pub response_channel: &'a str,
    pub encoded_credentials: &'a [u8],
    pub client_info: &'a str,
}

/// A connect request that waits until it may create a session.
struct WaitingConnect {
    image: Image,
    response_channel: String,
    correlation_id: i64,
    version: i32,
    response_stream_id: i32,
    encoded_credentials: Vec<u8>,
    client_info: String,
}

/// A session, and the slot that it has until its end.
struct SlottedSession {
    session: ControlSession,
    ticket: ConnectTicket,
    /// Whether the session counts as established, and not as unfinished, in the admission.
    is_finished: bool,
}

/// The control sessions of an archive.
pub(in crate::server) struct ControlSessions {
    pub(super) streams: ControlStreams,
    settings: SessionSettings,
    admission: Admission<WaitingConnect>,
    sessions: Vec<SlottedSession>,
    /// The clients of images over IPC, by the correlation id of the image.
    local_clients: HashMap<i64, i64>,
    /// Number of connect requests that were dropped and not counted yet, because of the limits of [`Admission`].
    dropped: usize,
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
    /// Creates an empty set of sessions. Their requests come from `streams`.
    pub fn new(
        settings: SessionSettings,
        streams: ControlStreams,
        now_ns: i64,
        authenticator: Box<dyn Authenticator>,
        authorisation: Box<dyn AuthorisationService>,
    ) -> Self {
        Self {
            streams,
            settings,
            admission: Admission::new(now_ns),
            sessions: Vec::new(),
            local_clients: HashMap::new(),
            dropped: 0,
            authenticator,
            authorisation,
        }
    }

    /// Replaces the users. Sessions stay open, and each of their requests needs the role of its user in `users`.
    pub fn set_users(&mut self, users: &Arc<Users>) {
        self.authenticator.set_users(users);
        self.authorisation.set_users(users);
    }

    /// Queues a connect request. [`admit`](Self::admit) begins its session.
    ///
    /// # Errors
    /// The response channel is not valid.
    pub fn connect(
        &mut self,
        aeron: &Aeron,
        image: &Image,
        request: &ConnectRequestParts<'_>,
        now_ns: i64,
    ) -> Result<(), ArchiveError> {
        let response_channel = response_channel(
            request.response_channel,
            self.settings.response_defaults,
            image.correlation_id(),
        )?;
        let ticket = ConnectTicket {
            origin: self.origin_of(aeron, image),
            address: ChannelUri::parse(&response_channel)?
                .get(key::ENDPOINT)
                .map(Into::into),
        };
        let waiting = WaitingConnect {
            image: image.clone(),
            response_channel,
            correlation_id: request.correlation_id,
            version: request.version,
            response_stream_id: request.response_stream_id,
            encoded_credentials: request.encoded_credentials.to_vec(),
            client_info: request.client_info.to_owned(),
        };
        let length = waiting.response_channel.len()
            + waiting.encoded_credentials.len()
            + waiting.client_info.len();
        let deadline_ns = now_ns.saturating_add(self.settings.connect_timeout_ns);
        self.dropped += self.admission.add(ticket, length, deadline_ns, waiting);
        Ok(())
    }

    /// Begins the sessions of the connect requests that may pass now, and asks the driver to add their response
    /// publications. Returns the number of requests.
    fn admit<S: Storage + Clone>(&mut self, conductor: &mut ArchiveConductor<S>) -> usize {
        let now_ns = conductor.now_ns();
        let mut work = 0;
        while let Some((ticket, waiting)) = self.admission.next(now_ns) {
            work += 1;
            let begun = match waiting.image.is_closed() {
                // The client has ended while its request waited.
                true => Ok(false),
                false => self.begin(conductor, &ticket, waiting).map(|()| true),
            };
            if begun != Ok(true) {
                self.admission.finish(&ticket);
                self.admission.end(&ticket);
            }
            if let Err(error) = begun {
                conductor.outlets().report_client(&connect_failure(&error));
            }
        }
        self.dropped += self.admission.drop_expired(now_ns);
        work
    }

    fn begin<S: Storage + Clone>(
        &mut self,
        conductor: &mut ArchiveConductor<S>,
        ticket: &ConnectTicket,
        request: WaitingConnect,
    ) -> Result<(), ArchiveError> {
        let publication = conductor.aeron().async_add_exclusive_publication(
            &request.response_channel,
            request.response_stream_id,
        )?;
        let id = conductor.take_id();
        let counter = ask_for_session_counter(
            conductor.aeron(),
            self.settings.archive_id,
            id,
            &request.image,
            &request.client_info,
        )?;
        let is_spoken = request.version >> 16 == ARCHIVE_PROTOCOL_VERSION >> 16;
        let opening = Opening {
            control_session_id: id,
            correlation_id: request.correlation_id,
            image: request.image,
            refused_version: (!is_spoken).then_some(request.version),
            publication,
            counter,
            connect_timeout_ns: self.settings.connect_timeout_ns,
            liveness_check_interval_ns: self.settings.liveness_check_interval_ns,
        };
        let (now_ns, now_ms) = (conductor.now_ns(), conductor.outlets().now_ms());
        let (origin, credentials) = (&ticket.origin, &request.encoded_credentials);
        self.authenticator
            .on_connect_request(id, origin, credentials, now_ms);
        debug_assert!(
            self.sessions
                .iter()
                .all(|slotted| slotted.session.id() != id),
            "two control sessions must not have the id {id}"
        );
        self.sessions.push(SlottedSession {
            session: ControlSession::new(opening, now_ns),
            ticket: ticket.clone(),
            is_finished: false,
        });
        Ok(())
    }

    /// Returns where the requests of an image come from.
    fn origin_of(&mut self, aeron: &Aeron, image: &Image) -> ClientOrigin {
        let image_id = image.correlation_id();
        let source = match image.source_identity().rsplit_once(':') {
            Some((address, _)) if image.source_identity() != IPC_IDENTITY => {
                ClientSource::Address(address.into())
            }
            _ => ClientSource::Local(self.local_client(aeron, image_id)),
        };
        ClientOrigin { source, image_id }
    }

    /// Returns the client of a publication over IPC. The driver stores it in the counters of the publication.
    fn local_client(&mut self, aeron: &Aeron, image_id: i64) -> i64 {
        if self.local_clients.len() >= MAX_REMEMBERED_IMAGES {
            self.local_clients.clear();
        }
        *self.local_clients.entry(image_id).or_insert_with(|| {
            let counters = aeron.counters_reader();
            let limit = counters.records().find(|record| {
                record.type_id == types::PUBLISHER_LIMIT && record.registration_id == image_id
            });
            limit.map_or(image_id, |record| record.owner_id)
        })
    }

    /// Accepts a request that was received from `image`. The first request makes the session
    /// active.
    ///
    /// # Errors
    /// The reason why the session does not serve the request.
    pub(super) fn accept(
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

    /// Returns the principal of the session's user; empty if the session has ended.
    pub fn principal(&self, control_session_id: i64) -> &[u8] {
        let mut sessions = self.sessions.iter().map(|slotted| &slotted.session);
        let found = sessions.find(|session| session.id() == control_session_id);
        found.map_or(&[], ControlSession::principal)
    }

    /// Returns the source of the requests of a session.
    pub fn source_identity(&self, control_session_id: i64) -> Option<&str> {
        let mut sessions = self.sessions.iter().map(|slotted| &slotted.session);
        let found = sessions.find(|session| session.id() == control_session_id)?;
        Some(found.image().source_identity())
    }

    /// Returns the requester of a request, with the permissions of its user.
    pub(super) fn caller(&self, ids: RequestIds) -> Caller<'_> {
        let principal = self.principal(ids.control_session_id);
        Caller {
            ids,
            principal,
            may_record: self.authorisation.is_authorised(START_RECORDING, principal),
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
            Some(session) => session.begin_listing(requester.correlation_id, listing),
            None => Ok(()),
        }
    }

    /// Returns whether a listing of the session is in progress.
    pub fn is_listing(&mut self, control_session_id: i64) -> bool {
        find(&mut self.sessions, control_session_id).is_some_and(|session| session.is_listing())
    }

    /// Sends a reply or a signal to its session. Drops it if the session has ended.
    pub(super) fn deliver(&mut self, notice: ConductorNotice, now_ns: i64) {
        match notice {
            ConductorNotice::Reply(requester, Ok(ConductorReply::Listing(listing))) => {
                if let Err(error) = self.begin_listing(requester, listing) {
                    self.respond(requester, &Response::Error(error), now_ns);
                }
            }
            ConductorNotice::Reply(requester, reply) => {
                self.respond(requester, &Response::of(reply), now_ns);
            }
            ConductorNotice::Signal(requester, signal, place) => {
                if let Some(session) = find(&mut self.sessions, requester.control_session_id) {
                    session.signal(requester.correlation_id, signal, place, now_ns);
                }
            }
        }
    }

    fn respond(&mut self, requester: RequestIds, response: &Response, now_ns: i64) {
        if let Some(session) = find(&mut self.sessions, requester.control_session_id) {
            session.respond(requester.correlation_id, response, now_ns);
        }
    }

    /// Begins the admitted sessions, runs all sessions, and counts them. Returns the work count.
    pub fn run<S: Storage + Clone>(&mut self, conductor: &mut ArchiveConductor<S>) -> usize {
        let work = self.admit(conductor);
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            conductor
                .counters()
                .dropped_connects
                .fetch_add(dropped as i64);
        }
        let work = work + self.do_work(conductor);
        if let Some(failure) = self.authenticator.take_failure() {
            conductor.outlets().report_client(&failure);
        }
        let count = self.sessions.len() as i64;
        conductor.counters().control_sessions.set(count);
        work
    }

    /// Runs all sessions, beginning with the last session, and removes ended sessions. Reports the sessions that the
    /// archive ended.
    fn do_work<S: Storage + Clone>(&mut self, conductor: &mut ArchiveConductor<S>) -> usize {
        let (now_ns, now_ms) = (conductor.now_ns(), conductor.outlets().now_ms());
        let mut work = 0;
        for at in (0..self.sessions.len()).rev() {
            let slotted = &mut self.sessions[at];
            let mut turn = SessionTurn {
                now_ns,
                now_ms,
                authenticator: &mut *self.authenticator,
                source: &*conductor,
            };
            let worked = slotted.session.do_work(&mut turn);
            let is_over = slotted.session.is_established() || worked.is_err();
            if is_over && !slotted.is_finished {
                slotted.is_finished = true;
                self.admission.finish(&slotted.ticket);
            }
            match worked {
                Ok(count) => work += count,
                Err(end) => {
                    work += 1;
                    let SlottedSession {
                        mut session,
                        ticket,
                        ..
                    } = self.sessions.swap_remove(at);
                    self.admission.end(&ticket);
                    session.close();
                    self.authenticator.on_session_ended(session.id());
                    conductor.on_requester_ended(session.id());
                    if let Some(reason) = reject_image(&session, &end) {
                        let text = format!("WARN - {reason}");
                        conductor.outlets().report_client(&text);
                    }
                }
            }
        }
        work
    }

    /// Ends all sessions.
    pub fn close_all(&mut self) {
        for slotted in &mut self.sessions {
            slotted.session.close();
        }
        self.sessions.clear();
    }
}

/// Returns the entry of the error log for a connect request without a session. The session would send the error.
pub(super) fn connect_failure(error: &ArchiveError) -> String {
    format!("failed to connect a control session: {error}")
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

fn find(sessions: &mut [SlottedSession], id: i64) -> Option<&mut ControlSession> {
    let mut sessions = sessions.iter_mut().map(|slotted| &mut slotted.session);
    sessions.find(|session| session.id() == id)
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

//! [`ArchiveLink`]: a control session with the archive that is opened again whenever it is lost.

use aeron_client::{Aeron, ExclusivePublication};
use aeron_protocol::archive::NULL_VALUE;

use super::backoff::Backoff;
use super::call::{ArchiveCall, Ticket};
use super::connecting::ConnectingSession;
use super::context::ArchiveClientContext;
use super::error::ArchiveClientError;
use super::session::ArchiveSession;

/// A control session with the archive that is opened again whenever it is lost.
pub(super) struct ArchiveLink {
    aeron: Aeron,
    context: ArchiveClientContext,
    state: LinkState,
    backoff: Backoff,
}

enum LinkState {
    Disconnected { next_attempt_ns: Option<i64> },
    Connecting(Box<ConnectingSession>),
    Connected(Box<ArchiveSession>),
    Closed,
}

/// An event of the control session.
pub(super) enum LinkEvent {
    /// The control session was opened.
    Connected,
    /// The control session has ended.
    Lost,
    /// An attempt to open a control session failed. Another attempt follows.
    AttemptFailed(ArchiveClientError),
    /// An attempt could not begin, and the link is closed. For example, a channel is not valid, or the Aeron client is
    /// closed. A full command buffer of the driver causes another attempt instead.
    Unusable(ArchiveClientError),
}

/// The state of a request.
pub(super) enum Answered<T> {
    /// The request has no result yet.
    Pending,
    Value(T),
    Refused(ArchiveClientError),
    /// The archive did not respond within the message timeout.
    Expired,
}

impl ArchiveLink {
    pub(super) fn new(aeron: &Aeron, context: ArchiveClientContext) -> Self {
        Self {
            aeron: aeron.clone(),
            context,
            state: LinkState::Disconnected {
                next_attempt_ns: None,
            },
            backoff: Backoff::new(),
        }
    }

    pub(super) const fn context(&self) -> &ArchiveClientContext {
        &self.context
    }

    pub(super) const fn is_connected(&self) -> bool {
        matches!(self.state, LinkState::Connected(_))
    }

    /// Returns the id of the archive. Returns `None` if there is no control session, or if the archive is too old to
    /// report its id.
    pub(super) fn archive_id(&self) -> Option<i64> {
        match &self.state {
            LinkState::Connected(session) => {
                Some(session.archive_id()).filter(|id| *id != NULL_VALUE)
            }
            _ => None,
        }
    }

    /// Returns the error that the archive sent for a request after it had already responded to the request. Returns
    /// `None` if another error that no request was waiting for has arrived since then.
    pub(super) fn late_refusal(&self, correlation_id: i64) -> Option<ArchiveClientError> {
        let LinkState::Connected(session) = &self.state else {
            return None;
        };
        let last = session.unclaimed_refusals().last_after(0)?;
        (last.correlation_id() == Some(correlation_id)).then(|| last.clone())
    }

    /// Returns the error that the archive sent for a replay after the replay had started.
    pub(super) fn error_of_replay(&self, replay_session_id: i64) -> Option<ArchiveClientError> {
        let LinkState::Connected(session) = &self.state else {
            return None;
        };
        session.error_of_replay(replay_session_id).cloned()
    }

    /// Makes progress without waiting, and adds the amount of work to `work`. Returns an event if one has occurred.
    pub(super) fn poll(&mut self, now_ns: i64, work: &mut usize) -> Option<LinkEvent> {
        match &mut self.state {
            LinkState::Disconnected { next_attempt_ns } => {
                let is_due = next_attempt_ns.is_none_or(|at_ns| now_ns.wrapping_sub(at_ns) >= 0);
                is_due.then(|| self.connect(now_ns)).flatten()
            }
            LinkState::Connecting(connecting) => match connecting.poll(now_ns) {
                Ok(None) => None,
                Ok(Some(session)) => {
                    *work += 1;
                    self.backoff = Backoff::new();
                    self.state = LinkState::Connected(Box::new(session));
                    Some(LinkEvent::Connected)
                }
                Err(error) => {
                    self.disconnect(now_ns);
                    Some(LinkEvent::AttemptFailed(error))
                }
            },
            LinkState::Connected(session) => match session.poll(now_ns) {
                Ok(count) => {
                    *work += count;
                    None
                }
                Err(_) => {
                    self.disconnect(now_ns);
                    Some(LinkEvent::Lost)
                }
            },
            LinkState::Closed => None,
        }
    }

    /// Sends a request. Returns `None` if there is no control session, or if the control session has just ended. In the
    /// second case, the next poll reports that the control session is lost.
    pub(super) fn submit<T>(&mut self, call: &ArchiveCall<T>, now_ns: i64) -> Option<Ticket<T>> {
        self.session()?.submit(call, now_ns).ok()
    }

    /// Sends a request like [`submit`](Self::submit), but on another publication to the archive.
    pub(super) fn submit_on<T>(
        &mut self,
        publication: ExclusivePublication,
        call: &ArchiveCall<T>,
        now_ns: i64,
    ) -> Option<Ticket<T>> {
        self.session()?.submit_on(publication, call, now_ns).ok()
    }

    /// Removes and returns the outcome of a request.
    pub(super) fn take<T>(&mut self, ticket: &Ticket<T>) -> Answered<T> {
        let Some(session) = self.session() else {
            return Answered::Pending;
        };
        match session.take(ticket) {
            None => Answered::Pending,
            Some(Ok(value)) => Answered::Value(value),
            Some(Err(ArchiveClientError::Timeout { .. })) => Answered::Expired,
            Some(Err(
                error @ (ArchiveClientError::Refused { .. }
                | ArchiveClientError::UnexpectedResponse { .. }),
            )) => Answered::Refused(error),
            // The control session cannot be used any more. The next poll reports that it is lost.
            Some(Err(_)) => {
                session.close();
                Answered::Pending
            }
        }
    }

    /// Ignores the outcome of a request.
    pub(super) fn abandon<T>(&mut self, ticket: &Ticket<T>) {
        if let Some(session) = self.session() {
            session.abandon(ticket);
        }
    }

    /// Removes and returns the outcome of a replay request. If the message timeout has passed and the replay starts
    /// later, the session stops this replay.
    pub(super) fn take_replay(&mut self, ticket: &Ticket<i64>) -> Answered<i64> {
        let answered = self.take(ticket);
        if let (Answered::Expired, Some(session)) = (&answered, self.session()) {
            session.stop_late_replay(ticket.correlation_id());
        }
        answered
    }

    /// Stops a replay, if there is a control session.
    pub(super) fn stop_replay(&mut self, replay_session_id: i64, now_ns: i64) {
        if let Some(session) = self.session() {
            session.submit_unwatched(&ArchiveCall::stop_replay(replay_session_id), now_ns);
        }
    }

    /// Takes back a request to record that had no effect in time, and whose publication closes now. The archive may
    /// still carry out the request. It handles the requests of a session in their order, so this one ends the
    /// subscription, which would wait forever for an image.
    pub(super) fn take_back_recording(&mut self, channel: &str, stream_id: i32, now_ns: i64) {
        if let Some(session) = self.session() {
            session.submit_unwatched(&ArchiveCall::stop_recording(channel, stream_id), now_ns);
        }
    }

    /// Closes the control session and does not open it again.
    pub(super) fn close(&mut self) {
        self.state = LinkState::Closed;
    }
}

impl ArchiveLink {
    fn session(&mut self) -> Option<&mut ArchiveSession> {
        match &mut self.state {
            LinkState::Connected(session) => Some(session),
            _ => None,
        }
    }

    fn connect(&mut self, now_ns: i64) -> Option<LinkEvent> {
        match ConnectingSession::new(&self.aeron, self.context.clone(), now_ns) {
            Ok(connecting) => {
                self.state = LinkState::Connecting(Box::new(connecting));
                None
            }
            Err(ArchiveClientError::Client(aeron_client::Error::CommandBufferFull { .. })) => {
                self.disconnect(now_ns);
                None
            }
            Err(error) => {
                self.close();
                Some(LinkEvent::Unusable(error))
            }
        }
    }

    fn disconnect(&mut self, now_ns: i64) {
        debug_assert!(
            !matches!(self.state, LinkState::Closed),
            "a closed link must not connect again"
        );
        self.state = LinkState::Disconnected {
            next_attempt_ns: Some(self.backoff.next_attempt_ns(now_ns)),
        };
    }
}

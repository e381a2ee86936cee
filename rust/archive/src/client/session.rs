//! [`ArchiveSession`]: a control session with an archive, as a state machine that its owner polls.

use aeron_client::{
    Action, Aeron, AppendError, ExclusivePublication, FragmentAssembler, OfferError, Subscription,
};
use aeron_protocol::archive::{
    ArchiveRequest, CloseSessionRequest, RecordingSignalEvent, RequestIds,
};

use super::call::{ArchiveCall, Ticket, encode};
use super::context::{ArchiveClientContext, ArchiveErrorHandler, RecordingSignalHandler};
use super::error::{ArchiveClientError, Result};
use super::exchange::{Exchange, MAX_RESPONSE_LENGTH, SendOutcome, UnclaimedRefusals};
use super::replay_publications::ReplayPublications;

/// Maximum number of fragments that one poll reads from the response stream.
pub(super) const FRAGMENT_LIMIT: usize = 64;

/// Whether a session can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveSessionState {
    /// The archive serves the session.
    Connected,
    /// The response stream has ended: the archive has ended the session, or it no longer runs. The
    /// next call closes the session and fails.
    Disconnected,
    /// The session is closed.
    Closed,
}

/// A control session with an archive. It has the outstanding requests, and the signals and errors
/// that the archive sends without a request.
///
/// The owner calls [`poll`](Self::poll) repeatedly, with the time of a monotonic clock in nanoseconds. No call blocks.
/// Responses may arrive in another order than the requests. The archive serves only one listing or channel update of a
/// session at a time, so the session sends them one after the other. If the Aeron client has no thread, the owner also
/// runs the conductor of the Aeron client.
///
/// The archive ends the session of a client that does not read. So poll every few seconds, even if
/// no request is outstanding.
///
/// # Errors
/// The first call after the response stream has ended fails with [`ArchiveClientError::Disconnected`], or with the
/// error that closed the Aeron client, and closes the session. After that, all calls fail with
/// [`ArchiveClientError::Closed`].
///
/// ```no_run
/// use aeron_agent::{NanoClock, SystemNanoClock};
/// use aeron_archive::client::{ArchiveCall, ArchiveClientContext, ConnectingSession};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let aeron = aeron_client::Aeron::connect(aeron_client::Context::from_env()?)?;
/// let clock = SystemNanoClock;
/// let context = ArchiveClientContext::new("aeron:ipc", "aeron:ipc");
/// let mut connecting = ConnectingSession::new(&aeron, context, clock.nano_time())?;
/// let mut session = loop {
///     if let Some(session) = connecting.poll(clock.nano_time())? {
///         break session;
///     }
/// };
/// let ticket = session.submit(&ArchiveCall::stop_position(7), clock.nano_time())?;
/// let stop_position = loop {
///     session.poll(clock.nano_time())?;
///     if let Some(outcome) = session.take(&ticket) {
///         break outcome?;
///     }
/// };
/// println!("{stop_position:?}");
/// # Ok(())
/// # }
/// ```
pub struct ArchiveSession {
    aeron: Aeron,
    publication: ExclusivePublication,
    subscription: Subscription,
    assembler: FragmentAssembler,
    /// The bytes of the message that is being read.
    message: Vec<u8>,
    exchange: Exchange,
    /// Requests whose responses are ignored.
    unwatched: Vec<Ticket<()>>,
    replay_publications: ReplayPublications,
    signal_handler: Option<RecordingSignalHandler>,
    error_handler: Option<ArchiveErrorHandler>,
    state: ArchiveSessionState,
    /// Error that ended the session; `None` while the session is connected, and if `close` ended it.
    end: Option<ArchiveClientError>,
    control_session_id: i64,
    archive_id: i64,
    last_correlation_id: i64,
}

/// The parts of a connected session.
pub(super) struct Connected {
    pub(super) publication: ExclusivePublication,
    pub(super) subscription: Subscription,
    pub(super) assembler: FragmentAssembler,
    pub(super) control_session_id: i64,
    pub(super) archive_id: i64,
}

impl ArchiveSession {
    pub(super) fn new(aeron: &Aeron, context: &ArchiveClientContext, parts: Connected) -> Self {
        let timeout_ns = i64::try_from(context.message_timeout_ns).unwrap_or(i64::MAX);
        Self {
            aeron: aeron.clone(),
            publication: parts.publication,
            subscription: parts.subscription,
            assembler: parts.assembler,
            message: Vec::new(),
            exchange: Exchange::new(parts.control_session_id, timeout_ns),
            unwatched: Vec::new(),
            replay_publications: ReplayPublications::new(timeout_ns),
            signal_handler: context.recording_signal_handler.clone(),
            error_handler: context.error_handler.clone(),
            state: ArchiveSessionState::Connected,
            end: None,
            control_session_id: parts.control_session_id,
            archive_id: parts.archive_id,
            last_correlation_id: aeron_protocol::archive::NULL_VALUE,
        }
    }

    /// Returns the id of the control session.
    #[must_use]
    pub const fn control_session_id(&self) -> i64 {
        self.control_session_id
    }

    /// Returns the id of the archive. Returns [`NULL_VALUE`](aeron_protocol::archive::NULL_VALUE) if the archive is too
    /// old to report it.
    #[must_use]
    pub const fn archive_id(&self) -> i64 {
        self.archive_id
    }

    /// Returns the correlation id of the last request;
    /// [`NULL_VALUE`](aeron_protocol::archive::NULL_VALUE) before the first request.
    #[must_use]
    pub const fn last_correlation_id(&self) -> i64 {
        self.last_correlation_id
    }

    /// Returns whether the session is connected, disconnected or closed.
    #[must_use]
    pub fn state(&self) -> ArchiveSessionState {
        if self.state == ArchiveSessionState::Connected && !self.subscription.is_connected() {
            return ArchiveSessionState::Disconnected;
        }
        self.state
    }

    /// Returns the error that ended the session: [`ArchiveClientError::Disconnected`], or the error that closed the
    /// Aeron client. Returns `None` before a call has noticed the end, and if [`close`](Self::close) ended the session.
    #[must_use]
    pub const fn end(&self) -> Option<&ArchiveClientError> {
        self.end.as_ref()
    }

    /// Queues a request. Sends it at once if the request stream accepts it.
    ///
    /// # Errors
    /// See [`ArchiveSession`].
    pub fn submit<T>(&mut self, call: &ArchiveCall<T>, now_ns: i64) -> Result<Ticket<T>> {
        self.check_open()?;
        let ticket = self.begin(call, now_ns);
        self.send(now_ns);
        Ok(ticket)
    }

    /// Queues a request that starts a replay, like [`submit`](Self::submit), but sends it on
    /// `publication`. The channel of `publication` is the archive's request channel with the id of
    /// the response subscription. This subscription receives the replay.
    ///
    /// The session closes the publication when the message timeout has passed after the response.
    ///
    /// # Errors
    /// See [`ArchiveSession`].
    pub fn submit_on<T>(
        &mut self,
        publication: ExclusivePublication,
        call: &ArchiveCall<T>,
        now_ns: i64,
    ) -> Result<Ticket<T>> {
        self.check_open()?;
        let ticket = self.begin(call, now_ns);
        self.replay_publications
            .add(ticket.correlation_id(), publication, now_ns);
        self.send(now_ns);
        Ok(ticket)
    }

    /// Removes and returns the result of a request. Returns `None` before the result is available,
    /// and after it was removed.
    pub fn take<T>(&mut self, ticket: &Ticket<T>) -> Option<Result<T>> {
        let outcome = self.exchange.take(ticket.correlation_id())?;
        Some(ticket.result(outcome))
    }

    /// Abandons a request. If the request was not sent, it is never sent. Otherwise the archive's
    /// response is dropped.
    pub fn abandon<T>(&mut self, ticket: &Ticket<T>) {
        self.abandon_request(ticket.correlation_id());
    }

    /// Queues a request like [`submit`](Self::submit), and ignores its response.
    pub(super) fn submit_unwatched(&mut self, call: &ArchiveCall<()>, now_ns: i64) {
        let submitted = self.submit(call, now_ns);
        self.unwatched.extend(submitted);
    }

    /// Notes that the archive may still start a replay for this request, which has expired or was abandoned. If the
    /// replay starts, the session stops it.
    pub(super) fn stop_late_replay(&mut self, correlation_id: i64) {
        self.exchange.await_late_value(correlation_id);
    }

    pub(super) fn abandon_request(&mut self, correlation_id: i64) {
        self.exchange.abandon(correlation_id);
    }

    /// Sends queued requests, receives up to 64 fragments, fails expired requests, and calls the handlers. Returns a
    /// work count.
    ///
    /// # Errors
    /// See [`ArchiveSession`]. The response stream returns an error: the stream has then ended.
    pub fn poll(&mut self, now_ns: i64) -> Result<usize> {
        let outcome = self.exchange_messages(now_ns);
        if let Some(handler) = &self.error_handler {
            while let Some(error) = self.exchange.take_error() {
                handler(&error);
            }
        }
        outcome
    }

    /// Polls once. Removes and returns the oldest error that no request was waiting for.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn poll_for_error(&mut self, now_ns: i64) -> Result<Option<ArchiveClientError>> {
        self.exchange_messages(now_ns)?;
        Ok(self.exchange.take_error())
    }

    /// Removes and returns a recording signal from the queue. The queue stays empty if the context has a handler for
    /// signals.
    pub fn take_recording_signal(&mut self) -> Option<RecordingSignalEvent> {
        self.exchange.take_signal()
    }

    /// Returns the error that the archive sent for a replay after the replay had started. Returns `None` if there is no
    /// error, or if the replay started long ago.
    #[must_use]
    pub fn error_of_replay(&self, replay_session_id: i64) -> Option<&ArchiveClientError> {
        self.exchange.error_of_replay(replay_session_id)
    }

    /// Returns the errors that no request was waiting for.
    pub(super) const fn unclaimed_refusals(&self) -> &UnclaimedRefusals {
        self.exchange.unclaimed_refusals()
    }

    /// Returns the number of signals that have arrived since the session was connected.
    #[must_use]
    pub const fn received_recording_signals(&self) -> u64 {
        self.exchange.received_signals()
    }

    /// Returns the number of signals that were dropped because more than
    /// [`MAX_QUEUED_SIGNALS`](super::MAX_QUEUED_SIGNALS) were queued.
    #[must_use]
    pub const fn lost_recording_signals(&self) -> u64 {
        self.exchange.lost_signals()
    }

    /// Closes the session, and fails the outstanding requests. Does nothing if the session is closed.
    pub fn close(&mut self) {
        if self.state == ArchiveSessionState::Closed {
            return;
        }
        if self.publication.is_connected() {
            let request = CloseSessionRequest {
                control_session_id: self.control_session_id,
            };
            // If this offer fails, the session still ends: the archive ends it when the response stream has no
            // subscriber.
            let _ = self
                .publication
                .offer(&encode(&ArchiveRequest::CloseSession(request)));
        }
        self.state = ArchiveSessionState::Closed;
        self.exchange.fail_all(&ArchiveClientError::Closed);
        self.replay_publications = ReplayPublications::new(0);
        self.publication.close();
        self.subscription.close();
    }
}

impl ArchiveSession {
    fn begin<T>(&mut self, call: &ArchiveCall<T>, now_ns: i64) -> Ticket<T> {
        let correlation_id = self.aeron.next_correlation_id();
        self.last_correlation_id = correlation_id;
        let ids = RequestIds {
            control_session_id: self.control_session_id,
            correlation_id,
        };
        self.exchange.begin(call.request(ids), now_ns);
        call.ticket(correlation_id)
    }

    fn check_open(&mut self) -> Result<()> {
        match self.state() {
            ArchiveSessionState::Connected => Ok(()),
            ArchiveSessionState::Disconnected => {
                let error = self.disconnect();
                self.close();
                Err(error)
            }
            ArchiveSessionState::Closed => Err(ArchiveClientError::Closed),
        }
    }

    fn exchange_messages(&mut self, now_ns: i64) -> Result<usize> {
        self.check_open()?;
        let sent = self.send(now_ns);
        let received = self.receive(now_ns);
        self.exchange.expire(now_ns);
        self.stop_late_replays(now_ns);
        let exchange = &mut self.exchange;
        self.unwatched
            .retain(|ticket| exchange.take(ticket.correlation_id()).is_none());
        let exchange = &self.exchange;
        self.replay_publications
            .close_idle(now_ns, |correlation_id| exchange.is_waiting(correlation_id));
        if let Some(handler) = &self.signal_handler {
            while let Some(signal) = self.exchange.take_signal() {
                handler(&signal);
            }
        }
        if !self.subscription.is_connected() {
            let error = self.disconnect();
            return received.and(Err(error));
        }
        Ok(sent + received?)
    }

    fn stop_late_replays(&mut self, now_ns: i64) {
        while let Some(id) = self.exchange.take_late_value() {
            self.submit_unwatched(&ArchiveCall::stop_replay(id), now_ns);
        }
    }

    /// Fails the outstanding requests. Returns the reason why the session has ended.
    fn disconnect(&mut self) -> ArchiveClientError {
        let error = match self.aeron.is_closed() {
            true => aeron_client::Error::ClientClosed(self.aeron.close_cause()).into(),
            false => ArchiveClientError::Disconnected,
        };
        self.state = ArchiveSessionState::Disconnected;
        // If two calls notice the end, the first error is kept.
        self.end.get_or_insert_with(|| error.clone());
        self.exchange.fail_all(&error);
        error
    }

    /// Sends queued requests. The requests of one publication are sent in order.
    fn send(&mut self, now_ns: i64) -> usize {
        let (publication, replay_publications) = (&self.publication, &self.replay_publications);
        let mut is_blocked = false;
        self.exchange.send(now_ns, |correlation_id, name, message| {
            if let Some(own) = replay_publications.get(correlation_id) {
                return sending(name, own.offer(message));
            }
            if is_blocked {
                return SendOutcome::BackPressured;
            }
            let outcome = match sending(name, publication.offer(message)) {
                // The request stream was connected before, so the archive has ended the session.
                SendOutcome::BackPressured if !publication.is_connected() => {
                    SendOutcome::Failed(ArchiveClientError::Disconnected)
                }
                outcome => outcome,
            };
            is_blocked = matches!(outcome, SendOutcome::BackPressured);
            outcome
        })
    }

    fn receive(&mut self, now_ns: i64) -> Result<usize> {
        let Self {
            subscription,
            assembler,
            message,
            exchange,
            ..
        } = self;
        let received = subscription.controlled_poll(
            |fragment| {
                assembler.on_controlled_fragment(fragment, |whole| {
                    if whole.len() > MAX_RESPONSE_LENGTH {
                        exchange.on_oversized_message(whole.len());
                        return Action::Continue;
                    }
                    message.resize(whole.len(), 0);
                    whole.copy_to(message);
                    exchange.on_message(message, now_ns);
                    Action::Continue
                })
            },
            FRAGMENT_LIMIT,
        )?;
        match assembler.take_out_of_memory() {
            Some(error) => Err(error.into()),
            None => Ok(received),
        }
    }
}

impl Drop for ArchiveSession {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for ArchiveSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveSession")
            .field("control_session_id", &self.control_session_id)
            .field("archive_id", &self.archive_id)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

fn sending(name: &'static str, outcome: std::result::Result<i64, OfferError>) -> SendOutcome {
    match outcome {
        Ok(_) => SendOutcome::Sent,
        Err(OfferError::Append(
            AppendError::NotConnected | AppendError::BackPressured | AppendError::AdminAction,
        )) => SendOutcome::BackPressured,
        Err(source) => SendOutcome::Failed(ArchiveClientError::Send {
            request: name,
            source,
        }),
    }
}

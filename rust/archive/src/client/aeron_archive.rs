//! [`AeronArchive`]: a client of an archive whose calls wait for the response.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use aeron_client::{Aeron, Operation, OperationSteps, Waiter};
use aeron_protocol::archive::extension::Capabilities;
use aeron_protocol::archive::{NULL_VALUE, RecordingSignalEvent};

use super::call::{ArchiveCall, Ticket};
use super::connecting::ConnectingSession;
use super::context::ArchiveClientContext;
use super::error::{ArchiveClientError, Result};
use super::session::{ArchiveSession, ArchiveSessionState};

/// Maximum number of polls while the session is locked, so that a long listing does not block other
/// threads.
const MAX_POLLS: usize = 100;

/// A client of an archive. Clones share one client. The client is closed by [`close`](Self::close),
/// or when the last clone and the last unfinished operation are dropped. A finished connection attempt has a clone. Any
/// thread may use it.
///
/// [`call`](Self::call) sends an [`ArchiveCall`] and waits for the result. [`begin`](Self::begin) sends it and returns
/// an [`ArchiveOperation`](super::ArchiveOperation) that is polled for the result. Requests of several steps have
/// methods of their own. Several threads may wait at once, and several operations may be outstanding.
///
/// The archive ends the session of a client that does not read its responses. A client that makes no calls for more
/// than a minute must call [`poll_for_recording_signals`](Self::poll_for_recording_signals) regularly.
///
/// ```no_run
/// use aeron_archive::client::{AeronArchive, ArchiveCall, ArchiveClientContext, ReplayParams};
/// use aeron_client::{Aeron, Context};
/// use aeron_protocol::archive::SourceLocation;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let aeron = Aeron::connect(Context::from_env()?)?;
/// let archive = AeronArchive::connect(&aeron, ArchiveClientContext::new("aeron:ipc", "aeron:ipc"))?;
/// archive.call(ArchiveCall::start_recording("aeron:ipc", 1001, SourceLocation::Local, false))?;
/// for recording in archive.call(ArchiveCall::list_recordings(0, 100))? {
///     println!("{} {}", recording.recording_id, recording.original_channel);
/// }
/// let replay = archive.async_replay(0, "aeron:ipc", 1002, &ReplayParams::default())?.wait()?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Calls fail with [`ArchiveClientError::Refused`] if the archive refuses the request, and with
/// [`ArchiveClientError::Timeout`] if the archive does not respond within the message timeout. The first call
/// after the archive has ended the session fails with [`ArchiveClientError::Disconnected`], later calls with
/// [`ArchiveClientError::Closed`]. The interrupt check in the context of the Aeron client can end a waiting
/// call.
///
/// Handlers run while the client is locked. So calls from a handler fail with
/// [`ArchiveClientError::ReentrantCall`], and a handler must not wait for another thread that calls
/// the client.
#[derive(Clone)]
pub struct AeronArchive {
    shared: Arc<SharedSession>,
}

struct SharedSession {
    aeron: Aeron,
    context: ArchiveClientContext,
    control_session_id: i64,
    archive_id: i64,
    session: Mutex<ArchiveSession>,
    /// The thread that is polling the session now. Its handlers must not call the client.
    polling_thread: Mutex<Option<ThreadId>>,
    /// Correlation ids of requests that a handler abandoned. They are removed from the session
    /// after the handler has returned.
    abandoned: Mutex<Vec<i64>>,
    /// Capabilities of the archive, after it has responded to a request for them.
    capabilities: OnceLock<Capabilities>,
}

/// A connection attempt to an archive. Dropping it cancels the attempt. A finished attempt keeps a clone of the client.
///
/// The attempt fails with [`ArchiveClientError::Refused`] if the archive refuses the client, and with
/// [`ArchiveClientError::ConnectTimeout`], which has the step that is missing, after the message timeout. It fails with
/// the error of the driver if the driver refuses a stream.
pub type AsyncConnect = Operation<AeronArchive, ArchiveClientError>;

/// The steps of a connection attempt.
struct Connecting {
    session: ConnectingSession,
    aeron: Aeron,
    context: ArchiveClientContext,
}

/// Connecting and closing.
impl AeronArchive {
    /// Connects to the archive of `context` with an existing Aeron client. Closing the archive
    /// client does not close `aeron`.
    ///
    /// # Errors
    /// See [`AsyncConnect`]. [`aeron_client::Error::ReentrantCall`] in a handler of the Aeron client.
    /// [`aeron_client::Error::Interrupted`] if the interrupt check of the Aeron client ends the wait.
    pub fn connect(aeron: &Aeron, context: ArchiveClientContext) -> Result<Self> {
        aeron.check_may_wait()?;
        Self::async_connect(aeron, context)?.wait()
    }

    /// Begins to connect like [`connect`](Self::connect), without waiting.
    ///
    /// # Errors
    /// [`ArchiveClientError::Configuration`], [`ArchiveClientError::InvalidChannel`], or the command could not be sent
    /// to the driver.
    pub fn async_connect(aeron: &Aeron, context: ArchiveClientContext) -> Result<AsyncConnect> {
        Ok(Operation::new(Connecting {
            session: ConnectingSession::new(aeron, context.clone(), context.now_ns())?,
            aeron: aeron.clone(),
            context,
        }))
    }

    /// Closes the session and fails the outstanding requests. Recordings, replays and replications continue. Does
    /// nothing if the client is closed.
    ///
    /// # Errors
    /// [`ArchiveClientError::ReentrantCall`] in a handler.
    pub fn close(&self) -> Result<()> {
        self.session()?.close();
        Ok(())
    }

    /// Returns the Aeron client.
    #[must_use]
    pub fn aeron(&self) -> &Aeron {
        &self.shared.aeron
    }

    /// Returns the settings of the client.
    #[must_use]
    pub fn context(&self) -> &ArchiveClientContext {
        &self.shared.context
    }

    /// Returns the id of the control session.
    #[must_use]
    pub fn control_session_id(&self) -> i64 {
        self.shared.control_session_id
    }

    /// Returns the id of the archive. Returns [`NULL_VALUE`] if the archive is too
    /// old to report it.
    #[must_use]
    pub fn archive_id(&self) -> i64 {
        self.shared.archive_id
    }

    /// Returns the correlation id of the last request;
    /// [`NULL_VALUE`] before the first request.
    ///
    /// # Errors
    /// [`ArchiveClientError::ReentrantCall`] in a handler.
    pub fn last_correlation_id(&self) -> Result<i64> {
        Ok(self.session()?.last_correlation_id())
    }

    /// Returns the state of the session.
    ///
    /// # Errors
    /// [`ArchiveClientError::ReentrantCall`] in a handler.
    pub fn state(&self) -> Result<ArchiveSessionState> {
        Ok(self.session()?.state())
    }

    /// Returns the error that ended the session: see [`ArchiveSession::end`].
    ///
    /// # Errors
    /// [`ArchiveClientError::ReentrantCall`] in a handler.
    pub fn end(&self) -> Result<Option<ArchiveClientError>> {
        Ok(self.session()?.end().cloned())
    }
}

/// Sending and polling.
impl AeronArchive {
    /// Polls once. Returns a work count: 0 if nothing was sent or read.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn poll(&self) -> Result<usize> {
        self.run_client();
        let mut session = self.session()?;
        self.polling(|| session.poll(self.shared.context.now_ns()))
    }

    /// Polls once. Returns the number of recording signals that this poll has received. They were queued, or passed to
    /// the handler.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn poll_for_recording_signals(&self) -> Result<u64> {
        self.run_client();
        let mut session = self.session()?;
        let before = session.received_recording_signals();
        self.polling(|| session.poll(self.shared.context.now_ns()))?;
        Ok(session.received_recording_signals() - before)
    }

    /// Removes and returns a recording signal from the queue. The queue stays empty if the context has a handler for
    /// signals.
    ///
    /// # Errors
    /// [`ArchiveClientError::ReentrantCall`] in a handler.
    pub fn take_recording_signal(&self) -> Result<Option<RecordingSignalEvent>> {
        Ok(self.session()?.take_recording_signal())
    }

    /// Polls once. Removes and returns an error that no call was waiting for, for example the error of a replay without
    /// a subscriber.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn poll_for_error_response(&self) -> Result<Option<ArchiveClientError>> {
        self.run_client();
        let mut session = self.session()?;
        self.polling(|| session.poll_for_error(self.shared.context.now_ns()))
    }

    /// Polls once for an error that no call was waiting for. Passes the error to the error handler of the context. If
    /// the context has no error handler, returns the error.
    ///
    /// # Errors
    /// The error that no call was waiting for. See also [`AeronArchive`].
    pub fn check_for_error_response(&self) -> Result<()> {
        let Some(error) = self.poll_for_error_response()? else {
            return Ok(());
        };
        match &self.shared.context.error_handler {
            Some(handler) => {
                handler(&error);
                Ok(())
            }
            None => Err(error),
        }
    }
}

impl AeronArchive {
    /// Polls once, and returns the error that the archive sent for a replay after the replay had started. Returns
    /// `None` if there is no such error, if the replay started long ago, or if the session has ended.
    pub fn error_of_replay(&self, replay_session_id: i64) -> Option<ArchiveClientError> {
        let found = self.poll_session(|session| {
            let error = session.error_of_replay(replay_session_id)?;
            Some(Ok(error.clone()))
        });
        found.ok().flatten()
    }

    fn new(aeron: &Aeron, context: &ArchiveClientContext, session: ArchiveSession) -> Self {
        let shared = SharedSession {
            aeron: aeron.clone(),
            context: context.clone(),
            control_session_id: session.control_session_id(),
            archive_id: session.archive_id(),
            session: Mutex::new(session),
            polling_thread: Mutex::new(None),
            abandoned: Mutex::default(),
            capabilities: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the capabilities, if the archive has responded to a request for them.
    pub(super) fn known_capabilities(&self) -> Option<Capabilities> {
        self.shared.capabilities.get().copied()
    }

    /// Stores the capabilities of the archive.
    pub(super) fn set_known_capabilities(&self, capabilities: Capabilities) {
        // Another operation may have stored the same value.
        let _ = self.shared.capabilities.set(capabilities);
    }

    /// Sends a request. Later, the caller uses the ticket to read the result from the session.
    pub(super) fn submit<T>(&self, call: &ArchiveCall<T>) -> Result<Ticket<T>> {
        let now_ns = self.shared.context.now_ns();
        self.session()?.submit(call, now_ns)
    }

    /// Locks the session and returns it.
    pub(super) fn session(&self) -> Result<MutexGuard<'_, ArchiveSession>> {
        let polling_thread = *lock(&self.shared.polling_thread);
        if polling_thread == Some(std::thread::current().id()) {
            return Err(ArchiveClientError::ReentrantCall);
        }
        let mut session = lock(&self.shared.session);
        for correlation_id in lock(&self.shared.abandoned).drain(..) {
            session.abandon_request(correlation_id);
        }
        Ok(session)
    }

    /// Abandons a request. In a handler, the request is abandoned at the next call after the
    /// handler has returned.
    pub(super) fn abandon(&self, correlation_id: i64) {
        lock(&self.shared.abandoned).push(correlation_id);
        // Locking the session abandons the request. It fails only in a handler.
        drop(self.session());
    }

    /// Stops the replay of a request that has expired or was abandoned, if the archive still starts the replay.
    pub(super) fn stop_late_replay(&self, correlation_id: i64) {
        if let Ok(mut session) = self.session() {
            session.stop_late_replay(correlation_id);
        }
    }

    /// Polls the session while messages arrive, until `take` returns a result.
    pub(super) fn poll_session<T>(
        &self,
        mut take: impl FnMut(&mut ArchiveSession) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        self.run_client();
        let mut session = self.session()?;
        for _ in 0..MAX_POLLS {
            let polled = self.polling(|| session.poll(self.shared.context.now_ns()));
            if let Some(outcome) = take(&mut session) {
                return outcome.map(Some);
            }
            if polled? == 0 {
                break;
            }
        }
        Ok(None)
    }

    /// Runs the conductor of an Aeron client that has no thread.
    fn run_client(&self) {
        self.shared.aeron.do_work();
    }

    /// Runs `poll`, which may call handlers. Calls from the handlers to this client are refused.
    fn polling<T>(&self, poll: impl FnOnce() -> T) -> T {
        struct Polling<'a>(&'a Mutex<Option<ThreadId>>);
        impl Drop for Polling<'_> {
            fn drop(&mut self) {
                *lock(self.0) = None;
            }
        }
        let thread = &self.shared.polling_thread;
        *lock(thread) = Some(std::thread::current().id());
        let _polling = Polling(thread);
        poll()
    }
}

impl Waiter for AeronArchive {
    fn check_may_wait(&self) -> aeron_client::Result<()> {
        self.aeron().check_may_wait()
    }

    fn idle_while_waiting(&self, waits: u32) -> aeron_client::Result<()> {
        idle(self.aeron(), self.context(), waits)
    }
}

impl std::fmt::Debug for AeronArchive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AeronArchive")
            .field("control_session_id", &self.control_session_id())
            .field("archive_id", &self.archive_id())
            .finish_non_exhaustive()
    }
}

impl OperationSteps<AeronArchive, ArchiveClientError> for Connecting {
    fn correlation_id(&self) -> i64 {
        NULL_VALUE
    }

    fn poll(&mut self) -> Result<Option<AeronArchive>> {
        self.aeron.do_work();
        let session = self.session.poll(self.context.now_ns())?;
        Ok(session.map(|session| AeronArchive::new(&self.aeron, &self.context, session)))
    }

    fn waiter(&self) -> &dyn Waiter {
        self
    }
}

impl Waiter for Connecting {
    fn check_may_wait(&self) -> aeron_client::Result<()> {
        self.aeron.check_may_wait()
    }

    fn idle_while_waiting(&self, waits: u32) -> aeron_client::Result<()> {
        idle(&self.aeron, &self.context, waits)
    }
}

/// Waits a moment. `waits` is the number of earlier waits.
fn idle(aeron: &Aeron, context: &ArchiveClientContext, waits: u32) -> aeron_client::Result<()> {
    let Some(work) = &context.waiting_work else {
        return aeron.idle_while_waiting(waits);
    };
    // With work to do, the pauses must not become longer.
    aeron.idle_while_waiting(0)?;
    work();
    Ok(())
}

/// Locks a mutex. Ignores an earlier panic of a handler, because handlers run only between changes
/// of the session.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

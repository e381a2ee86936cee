//! [`ArchiveConnections`]: connections to archives, which stay open after the end of a task for later tasks.
//!
//! A worker process runs one task after another. Its tasks share one client and one control session for each archive.
//! A thread polls the session, because an archive ends sessions that do not reply. The thread closes a connection that
//! no task has used for some time.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveClientContext, ArchiveClientError, ArchiveSessionState,
    CredentialsSupplier,
};
use aeron_archive::objects::CopiedRange;
use aeron_client::Aeron;
use aeron_protocol::archive::ArchiveErrorCode;

use crate::error::{LiveCode, LiveError};
use crate::recorder::MakeContext;

/// Interval at which the thread polls the session. The archive sends a ping once per second.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of polls without a pause. The limit gives other threads access to the session.
const MAX_POLLS: usize = 100;

/// Connection settings of an archive.
pub struct ArchiveAccess {
    /// Creates the settings of the Aeron client. Starts the embedded driver if the access uses one.
    pub make_context: MakeContext,
    /// Names the driver of `make_context`. Accesses with equal names, channels and credentials share a connection.
    pub driver: String,
    /// Channel of the requests.
    pub control_channel: String,
    /// Stream of the requests.
    pub control_stream_id: i32,
    /// Channel of the responses.
    pub response_channel: String,
    /// Stream of the responses.
    pub response_stream_id: i32,
    /// Channel of replays.
    pub replay_channel: String,
    /// Stream of replays.
    pub replay_stream_id: i32,
    /// Credentials for the archive; empty if the archive needs none. No error text contains them.
    pub credentials: Vec<u8>,
    /// Time limit for the connection, for a response, and for the next frame of a replay.
    pub timeout: Duration,
}

/// Connections of one process. Clones share them. Usable from any thread.
#[derive(Clone)]
pub struct ArchiveConnections {
    shared: Arc<Shared>,
}

/// A connection in use. The connection stays open while the lease exists, and for the idle time afterwards.
pub(super) struct ConnectionLease(Arc<Connection>);

struct Shared {
    idle: Duration,
    open: Mutex<HashMap<AccessKey, Arc<Connection>>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct AccessKey {
    driver: String,
    control: (String, i32),
    response: (String, i32),
    credentials: Vec<u8>,
}

struct Connection {
    aeron: Aeron,
    archive: AeronArchive,
    /// Whether the archive is known not to support requests for its copies. Aeron's archive ignores such requests, and
    /// each one would wait for a second.
    lacks_copies: AtomicBool,
    usage: Mutex<Usage>,
    /// Whether the archive is known not to support links between recordings. Each request would wait for a second.
    has_no_links: AtomicBool,
}

struct Usage {
    users: usize,
    last_use: Instant,
}

struct Credentials(Vec<u8>);

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&self) -> Vec<u8> {
        self.0.clone()
    }

    fn on_challenge(&self, _encoded_challenge: &[u8]) -> Vec<u8> {
        self.0.clone()
    }
}

impl ArchiveAccess {
    fn key(&self) -> AccessKey {
        AccessKey {
            driver: self.driver.clone(),
            control: (self.control_channel.clone(), self.control_stream_id),
            response: (self.response_channel.clone(), self.response_stream_id),
            credentials: self.credentials.clone(),
        }
    }

    fn connect(&self) -> Result<Connection, LiveError> {
        let context = (self.make_context)()?;
        let directory = context.aeron_dir.display().to_string();
        let aeron = Aeron::connect(context).map_err(|error| driver_error(&directory, &error))?;
        let settings = ArchiveClientContext {
            control_request_stream_id: self.control_stream_id,
            control_response_stream_id: self.response_stream_id,
            message_timeout_ns: u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX),
            credentials: Arc::new(Credentials(self.credentials.clone())),
            client_name: "spark".to_owned(),
            ..ArchiveClientContext::new(&self.control_channel, &self.response_channel)
        };
        match AeronArchive::connect(&aeron, settings) {
            Ok(archive) => Ok(Connection {
                aeron,
                archive,
                lacks_copies: AtomicBool::new(false),
                usage: Mutex::new(Usage {
                    users: 0,
                    last_use: Instant::now(),
                }),
                has_no_links: AtomicBool::new(false),
            }),
            Err(error) => {
                aeron.close();
                Err(self.error(&error))
            }
        }
    }

    /// Returns the error of a failed call to the archive.
    pub(super) fn error(&self, error: &ArchiveClientError) -> LiveError {
        if matches!(
            error,
            ArchiveClientError::Client(aeron_client::Error::Interrupted)
        ) {
            return LiveError::new(LiveCode::Interrupted, "interrupted");
        }
        let code = match error {
            ArchiveClientError::ConnectTimeout { .. }
            | ArchiveClientError::Timeout { .. }
            | ArchiveClientError::Disconnected
            | ArchiveClientError::Closed => LiveCode::NotConnected,
            ArchiveClientError::Client(_) => LiveCode::DriverTimeout,
            _ => LiveCode::Archive,
        };
        let channel = &self.control_channel;
        LiveError::new(code, format!("archive on {channel}: {error}"))
    }
}

impl ArchiveConnections {
    /// Creates an empty set. A connection that is unused for `idle` is closed.
    pub fn new(idle: Duration) -> Self {
        let open = Mutex::default();
        Self {
            shared: Arc::new(Shared { idle, open }),
        }
    }

    /// Calls `work` with the connection for an access. Connects if there is no connection. If `work` fails because an
    /// existing connection has ended, calls `work` again with a new connection.
    ///
    /// # Errors
    /// There is no driver, the archive does not accept the session within the time-out of `access`, or `work` returned
    /// an error.
    pub(super) fn with<T>(
        &self,
        access: &ArchiveAccess,
        work: impl Fn(ConnectionLease) -> Result<T, LiveError>,
    ) -> Result<T, LiveError> {
        let key = access.key();
        let existing = self.shared.lock().get(&key).cloned();
        if let Some(lease) = existing.clone().and_then(ConnectionLease::of) {
            match work(lease) {
                Err(error) if error.code() == LiveCode::NotConnected => {}
                done => return done,
            }
        }
        if let Some(ended) = existing {
            ended.close();
        }
        work(self.connect(key, access)?)
    }

    fn connect(
        &self,
        key: AccessKey,
        access: &ArchiveAccess,
    ) -> Result<ConnectionLease, LiveError> {
        // The set is not locked while this function connects, because a signal handler of this thread may close the
        // set.
        let connection = Arc::new(access.connect()?);
        keep_alive(&connection, self.shared.idle)?;
        let lease = ConnectionLease::of(Arc::clone(&connection))
            .ok_or_else(|| access.error(&ArchiveClientError::Disconnected))?;
        self.shared.lock().insert(key, connection);
        Ok(lease)
    }

    /// Returns the number of connections that are open.
    pub fn count(&self) -> usize {
        let open = self.shared.lock();
        open.values()
            .filter(|connection| connection.is_connected())
            .count()
    }

    /// Closes all connections, even those in use.
    pub fn close(&self) {
        let open = std::mem::take(&mut *self.shared.lock());
        for connection in open.into_values() {
            connection.close();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<AccessKey, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn is_connected(&self) -> bool {
        matches!(self.archive.state(), Ok(ArchiveSessionState::Connected))
            && !self.aeron.is_closed()
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        // `close` fails only if a handler of the session calls it, and this session has no handler.
        let _ = self.archive.close();
        self.aeron.close();
    }

    /// Closes the connection if no lease existed for `idle`. Returns whether the connection is closed.
    fn close_unused(&self, idle: Duration) -> bool {
        let usage = self.usage();
        let is_unused = usage.users == 0 && usage.last_use.elapsed() >= idle;
        if is_unused {
            self.close();
        }
        is_unused
    }

    fn poll(&self) -> Result<(), ArchiveClientError> {
        for _ in 0..MAX_POLLS {
            if self.archive.poll()? == 0 {
                break;
            }
        }
        // Discards the recording signals, because no task reads them and their queue is bounded.
        while self.archive.take_recording_signal()?.is_some() {}
        Ok(())
    }
}

impl ConnectionLease {
    /// Returns a lease; `None` if the connection has ended.
    fn of(connection: Arc<Connection>) -> Option<Self> {
        let mut usage = connection.usage();
        if !connection.is_connected() {
            return None;
        }
        usage.users += 1;
        drop(usage);
        Some(Self(connection))
    }

    pub fn aeron(&self) -> &Aeron {
        &self.0.aeron
    }

    pub fn has_no_links(&self) -> bool {
        self.0.has_no_links.load(Ordering::Relaxed)
    }

    pub fn note_no_links(&self) {
        self.0.has_no_links.store(true, Ordering::Relaxed);
    }

    /// Lists the copies in object storage of these recordings, and possibly of others. If the archive does not support
    /// this request, the list is empty.
    ///
    /// # Errors
    /// The copies of one of these recordings are not known yet, or the archive does not respond.
    pub fn copied_ranges(
        &self,
        recording_ids: &[i64],
    ) -> Result<Vec<CopiedRange>, ArchiveClientError> {
        if recording_ids.is_empty() || self.0.lacks_copies.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        // One request for all recordings is faster than one for each. The archive refuses it if the copies of any
        // recording are unknown, also of one that is not in `recording_ids`.
        match self.list_copied_ranges(None) {
            Err(ArchiveClientError::NotSupported { .. }) => {
                self.0.lacks_copies.store(true, Ordering::Relaxed);
                Ok(Vec::new())
            }
            Err(error) if error.archive_code() == Some(ArchiveErrorCode::Generic) => {
                self.copied_ranges_of_each(recording_ids)
            }
            listed => listed,
        }
    }

    fn copied_ranges_of_each(
        &self,
        recording_ids: &[i64],
    ) -> Result<Vec<CopiedRange>, ArchiveClientError> {
        let mut ranges = Vec::new();
        for &recording_id in recording_ids {
            ranges.extend(self.list_copied_ranges(Some(recording_id))?);
        }
        Ok(ranges)
    }

    fn list_copied_ranges(
        &self,
        recording_id: Option<i64>,
    ) -> Result<Vec<CopiedRange>, ArchiveClientError> {
        let page = move |from| ArchiveCall::list_copied_ranges(recording_id, from);
        self.list(page)?.wait()
    }
}

impl Deref for ConnectionLease {
    type Target = AeronArchive;

    fn deref(&self) -> &AeronArchive {
        &self.0.archive
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        debug_assert!(
            usage.users > 0,
            "a connection to an archive is given back more often than it was taken"
        );
        usage.users -= 1;
        usage.last_use = Instant::now();
    }
}

fn keep_alive(connection: &Arc<Connection>, idle: Duration) -> Result<(), LiveError> {
    let connection = Arc::downgrade(connection);
    let thread = std::thread::Builder::new().name("aeron-spark-archive".to_owned());
    let started = thread.spawn(move || {
        while is_alive(&connection, idle) {
            std::thread::sleep(KEEP_ALIVE_INTERVAL);
        }
    });
    match started {
        Ok(_) => Ok(()),
        Err(error) => Err(LiveError::new(
            LiveCode::Archive,
            format!("no thread for the session with the archive: {error}"),
        )),
    }
}

/// Polls the session. Returns `false` after the end of the connection.
fn is_alive(connection: &Weak<Connection>, idle: Duration) -> bool {
    let Some(connection) = connection.upgrade() else {
        return false;
    };
    if connection.poll().is_err() {
        connection.close();
        return false;
    }
    !connection.close_unused(idle)
}

fn driver_error(directory: &str, error: &aeron_client::Error) -> LiveError {
    let code = match error {
        aeron_client::Error::Interrupted => LiveCode::Interrupted,
        _ => LiveCode::DriverTimeout,
    };
    LiveError::new(code, format!("media driver in {directory}: {error}"))
}

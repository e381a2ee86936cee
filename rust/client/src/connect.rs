//! Finds a driver and connects to it. Also sends requests that need no client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aeron_agent::{EpochClock, SystemEpochClock};
use aeron_memory::broadcast::BroadcastReceiver;
use aeron_memory::cnc::{CNC_VERSION, CncError, CncFile, DriverState, Reader};
use aeron_memory::directory;

use crate::aeron::Aeron;
use crate::client::Client;
use crate::conductor::{Conductor, Reconnecting};
use crate::context::Context;
use crate::error::{DriverTimeout, Error, Result};
use crate::link::Link;
use crate::log_source::{LogSource, MappedLogs};
use crate::operation::{NO_COMMAND, OperationSteps, PendingOperation, Waiter};
use crate::proxy::DriverProxy;
use crate::reconnect::{DriverFinder, FileFinder, FoundDriver};

/// Sleep between two checks for the file, in milliseconds.
const FILE_SLEEP_MS: u64 = 16;
/// Sleep between two checks of a file that is being initialised, in milliseconds.
const CONTENT_SLEEP_MS: u64 = 1;
/// Sleep before the file of a dead driver is mapped again, in milliseconds: a new driver may replace the file.
const DEAD_DRIVER_SLEEP_MS: u64 = 100;

const NS_PER_MS: i64 = 1_000_000;

/// Connecting.
impl Aeron {
    /// Connects to the driver that `context` names.
    ///
    /// # Errors
    /// [`Error::Configuration`]; [`Error::DriverTimeout`], which names the missing part, if no live driver is found
    /// within the driver timeout; [`Error::VersionMismatch`] or [`Error::InvalidCncFile`] at once for an incompatible
    /// driver or file.
    pub fn connect(context: Context) -> Result<Self> {
        Self::async_connect(context)?.wait()
    }

    /// Like [`connect`](Self::connect), but does not wait for the driver.
    ///
    /// # Errors
    /// [`Error::Configuration`]. The operation returns all other errors.
    pub fn async_connect(context: Context) -> Result<PendingOperation<Self>> {
        Connecting::new(context).map(PendingOperation::new)
    }

    /// Connects to a live driver through its CnC memory and its logs, for example to a driver in this process that has
    /// no files. Ignores the directory of `context`.
    ///
    /// # Errors
    /// [`Error::Configuration`], [`Error::InvalidCncFile`].
    pub fn attach(context: Context, cnc: &CncFile, logs: Box<dyn LogSource>) -> Result<Self> {
        context.validate()?;
        attach(context, cnc, logs, None).map(Self::of)
    }

    /// Like [`attach`](Self::attach), for a client that gets its next drivers from `source`. The context must have
    /// [`reconnect`](Context::reconnect).
    ///
    /// # Errors
    /// The same errors as [`attach`](Self::attach).
    pub fn attach_with_finder(
        context: Context,
        first: FoundDriver,
        source: Box<dyn DriverFinder>,
    ) -> Result<Self> {
        context.validate()?;
        attach(context, &first.cnc, first.logs, Some(source)).map(Self::of)
    }
}

/// A pending connection: checks for the driver until the driver is found or the driver timeout is over.
struct Connecting {
    /// `None` after the client was created.
    context: Option<Context>,
    path: PathBuf,
    start_ns: i64,
    next_look_ns: i64,
}

impl Connecting {
    fn new(context: Context) -> Result<Self> {
        context.validate()?;
        let start_ns = context.nano_clock.nano_time();
        Ok(Self {
            path: directory::cnc_file(&context.aeron_dir),
            context: Some(context),
            start_ns,
            next_look_ns: start_ns,
        })
    }

    /// Checks for the driver if a check is due. Returns its CnC file when the driver is alive.
    fn look(&mut self, context: &Context) -> Result<Option<CncFile>> {
        let now_ns = context.nano_clock.nano_time();
        if now_ns < self.next_look_ns {
            return Ok(None);
        }
        let timeout_ms = context.driver_timeout_ms as i64;
        match look(&self.path, context.epoch_clock.time_ms(), timeout_ms)? {
            DriverLook::Alive(cnc) => Ok(Some(cnc)),
            DriverLook::NotYet(reason, sleep_ms) => {
                let waited_ms = (context.nano_clock.nano_time() - self.start_ns) / NS_PER_MS;
                if waited_ms > timeout_ms {
                    return Err(reason.after(&self.path, waited_ms as u64).into());
                }
                let sleep_ms = sleep_ms.min(context.driver_timeout_ms.max(1)) as i64;
                self.next_look_ns = now_ns + sleep_ms * NS_PER_MS;
                Ok(None)
            }
        }
    }
}

impl OperationSteps<Aeron, Error> for Connecting {
    fn correlation_id(&self) -> i64 {
        NO_COMMAND
    }

    fn poll(&mut self) -> Result<Option<Aeron>> {
        let Some(context) = self.context.take() else {
            return Ok(None);
        };
        let Some(cnc) = self.look(&context)? else {
            self.context = Some(context);
            return Ok(None);
        };
        let logs = MappedLogs {
            pre_touch: context.pre_touch_mapped_memory,
        };
        let source = context.reconnect.map(|_| {
            Box::new(FileFinder::new(
                &context.aeron_dir,
                &cnc.identity(),
                context.pre_touch_mapped_memory,
                context.driver_timeout_ms,
                Arc::clone(&context.epoch_clock),
            )) as Box<dyn DriverFinder>
        });
        attach(context, &cnc, Box::new(logs), source).map(|client| Some(Aeron::of(client)))
    }

    fn waiter(&self) -> &dyn Waiter {
        self
    }
}

impl Waiter for Connecting {
    fn check_may_wait(&self) -> Result<()> {
        Ok(())
    }

    fn run_driver(&self) -> bool {
        let context = self.context.as_ref();
        let invoker = context.and_then(|context| context.driver_invoker.as_ref());
        invoker.map(|invoke| invoke()).is_some()
    }

    fn idle_while_waiting(&self, _waits: u32) -> Result<()> {
        let context = self.context.as_ref();
        let check = context.and_then(|context| context.interrupt_check.as_ref());
        if check.is_some_and(|check| check()) {
            return Err(Error::Interrupted);
        }
        self.run_driver();
        let now_ns = |context: &Context| context.nano_clock.nano_time();
        let left_ns = context.map_or(0, |context| self.next_look_ns - now_ns(context));
        std::thread::sleep(Duration::from_nanos(left_ns.max(NS_PER_MS) as u64));
        Ok(())
    }
}

/// Creates the client of a live driver whose logs are in `logs`. A client that reconnects gets its next drivers from
/// `source`.
fn attach(
    mut context: Context,
    cnc: &CncFile,
    logs: Box<dyn LogSource>,
    source: Option<Box<dyn DriverFinder>>,
) -> Result<Arc<Client>> {
    let link = Arc::new(Link::new(cnc, logs));
    let events = BroadcastReceiver::new(cnc.to_clients().clone()).map_err(|error| {
        Error::InvalidCncFile {
            path: context.cnc_path(),
            reason: error.to_string(),
        }
    })?;
    let now_ns = context.nano_clock.nano_time();
    let handlers = context.take_handlers(|| link.proxy.next_correlation_id());
    let reconnecting = context.reconnect.zip(source).map(|(policy, source)| {
        let disconnect = context.disconnect_handler.take();
        let reconnect = context.reconnect_handler.take();
        Reconnecting::new(policy, source, disconnect, reconnect, now_ns)
    });
    let conductor = Conductor::new(Arc::clone(&link), events, handlers, reconnecting, now_ns);
    let idle_strategy = context.take_idle_strategy();
    let uses_invoker = context.use_conductor_agent_invoker;
    let settings = context.into_settings();
    settings.check_keepalive(link.inter_service_timeout())?;
    let client = Client::new(settings, link, conductor);
    if !uses_invoker {
        client.start(idle_strategy).map_err(|source| Error::Io {
            path: PathBuf::new(),
            source: Arc::new(source),
        })?;
    }
    Ok(client)
}

pub(crate) enum DriverLook {
    Alive(CncFile),
    NotYet(MissingPart, u64),
}

/// The part of a live driver that the client has not found yet.
#[derive(Clone, Copy)]
pub(crate) enum MissingPart {
    File,
    Version,
    Content,
    Heartbeat,
}

impl MissingPart {
    fn after(self, path: &Path, waited_ms: u64) -> DriverTimeout {
        let path = path.to_owned();
        match self {
            Self::File => DriverTimeout::NoCncFile(path),
            Self::Version => DriverTimeout::NotInitialised(path),
            Self::Content => DriverTimeout::NotPopulated(path),
            Self::Heartbeat => DriverTimeout::NoHeartbeat { path, waited_ms },
        }
    }
}

/// Checks the file once. Returns an error if waiting cannot help.
pub(crate) fn look(path: &Path, now_ms: i64, timeout_ms: i64) -> Result<DriverLook> {
    let Some(opened) = map(path, Reader::Client)? else {
        return Ok(DriverLook::NotYet(MissingPart::File, FILE_SLEEP_MS));
    };
    let cnc = match opened {
        Ok(cnc) => cnc,
        Err(CncError::NotPopulated { .. }) => {
            return Ok(DriverLook::NotYet(MissingPart::File, FILE_SLEEP_MS));
        }
        Err(CncError::NotInitialised) => {
            return Ok(DriverLook::NotYet(MissingPart::Version, CONTENT_SLEEP_MS));
        }
        Err(CncError::Truncated { .. }) => {
            return Ok(DriverLook::NotYet(MissingPart::Content, CONTENT_SLEEP_MS));
        }
        Err(error) => return Err(unusable(path, error)),
    };
    Ok(match cnc.driver_state(now_ms, timeout_ms) {
        DriverState::Active => DriverLook::Alive(cnc),
        DriverState::NoHeartbeat => DriverLook::NotYet(MissingPart::Heartbeat, CONTENT_SLEEP_MS),
        DriverState::Inactive => DriverLook::NotYet(MissingPart::Heartbeat, DEAD_DRIVER_SLEEP_MS),
    })
}

/// Maps the file; `None` if there is no file that this process may open.
fn map(path: &Path, reader: Reader) -> Result<Option<std::result::Result<CncFile, CncError>>> {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    match CncFile::map(path, reader) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => Ok(None),
        Err(error) => Err(Error::Io {
            path: path.to_owned(),
            source: Arc::new(error),
        }),
    }
}

fn unusable(path: &Path, error: CncError) -> Error {
    let path = path.to_owned();
    match error {
        CncError::IncompatibleVersion { file } => Error::VersionMismatch {
            path,
            driver: file,
            client: CNC_VERSION,
        },
        error => Error::InvalidCncFile {
            path,
            reason: error.to_string(),
        },
    }
}

/// Whether a driver runs in `aeron_dir`, that is, whether the heartbeat is not older than `timeout`. Waits up to
/// `timeout` for a driver that is starting.
///
/// # Errors
/// [`DriverTimeout::NotInitialised`] if the file stays uninitialised; [`Error::VersionMismatch`],
/// [`Error::InvalidCncFile`].
pub fn is_driver_active(aeron_dir: &Path, timeout: Duration) -> Result<bool> {
    let path = directory::cnc_file(aeron_dir);
    let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
    let clock = SystemEpochClock;
    let deadline = Instant::now().checked_add(timeout);
    loop {
        match map(&path, Reader::Tool)? {
            None | Some(Err(CncError::NotPopulated { .. })) => return Ok(false),
            Some(Ok(cnc)) => return Ok(cnc.is_active(clock.time_ms(), timeout_ms)),
            Some(Err(CncError::NotInitialised | CncError::Truncated { .. }))
                if deadline.is_none_or(|deadline| Instant::now() < deadline) =>
            {
                std::thread::sleep(Duration::from_millis(CONTENT_SLEEP_MS));
            }
            Some(Err(CncError::NotInitialised)) => {
                return Err(DriverTimeout::NotInitialised(path).into());
            }
            Some(Err(error)) => return Err(unusable(&path, error)),
        }
    }
}

/// Requests the driver in `aeron_dir` to terminate. The driver terminates if its termination validator accepts `token`.
/// Returns whether the request was sent; `false` if there is no initialised CnC file.
///
/// # Errors
/// [`Error::VersionMismatch`], [`Error::InvalidCncFile`], or the command could not be written.
pub fn request_driver_termination(aeron_dir: &Path, token: &[u8]) -> Result<bool> {
    let path = directory::cnc_file(aeron_dir);
    match map(&path, Reader::Tool)? {
        None | Some(Err(CncError::NotPopulated { .. } | CncError::NotInitialised)) => Ok(false),
        Some(Err(error)) => Err(unusable(&path, error)),
        Some(Ok(cnc)) => DriverProxy::new(cnc.to_driver().clone())
            .terminate_driver(token)
            .map(|()| true),
    }
}

/// Returns a unique correlation id of the driver in `aeron_dir`.
///
/// # Errors
/// [`DriverTimeout::NoCncFile`] without a driver, [`Error::VersionMismatch`], [`Error::InvalidCncFile`].
pub fn next_correlation_id(aeron_dir: &Path) -> Result<i64> {
    let path = directory::cnc_file(aeron_dir);
    match map(&path, Reader::Tool)? {
        None => Err(DriverTimeout::NoCncFile(path).into()),
        Some(Err(error)) => Err(unusable(&path, error)),
        Some(Ok(cnc)) => Ok(cnc.to_driver().next_correlation_id()),
    }
}

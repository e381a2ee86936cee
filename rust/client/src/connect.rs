//! Finding a driver and attaching to it, and what can be asked of a driver without a client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aeron_agent::{EpochClock, IdleStrategy, SystemEpochClock};
use aeron_memory::broadcast::BroadcastReceiver;
use aeron_memory::cnc::{CNC_VERSION, CncError, CncFile, DriverState, Reader};
use aeron_memory::directory;

use crate::client::{Client, Settings};
use crate::conductor::{ClientHandlers, Conductor};
use crate::context::Context;
use crate::error::{DriverTimeout, Error, Result};
use crate::log_source::{LogSource, MappedLogs};
use crate::proxy::DriverProxy;

/// Sleep between looks for the file, in milliseconds.
const FILE_SLEEP_MS: u64 = 16;
/// Sleep between looks at a file that is being filled, in milliseconds.
const CONTENT_SLEEP_MS: u64 = 1;
/// Sleep before a file whose driver is dead is mapped anew, in milliseconds: another driver may replace it.
const DEAD_DRIVER_SLEEP_MS: u64 = 100;

/// Connects a client and starts its conductor.
pub(crate) fn connect(context: Context) -> Result<Arc<Client>> {
    context.validate()?;
    let path = directory::cnc_file(&context.aeron_dir);
    let cnc = await_driver(
        &path,
        &*context.epoch_clock,
        context.driver_timeout_ms,
        || {
            if let Some(invoke) = &context.driver_invoker {
                invoke();
            }
        },
    )?;
    let logs = MappedLogs {
        pre_touch: context.pre_touch_mapped_memory,
    };
    attach(context, &cnc, Box::new(logs))
}

/// Makes the client of a driver that is alive and whose logs are in `logs`.
pub(crate) fn attach(
    mut context: Context,
    cnc: &CncFile,
    logs: Box<dyn LogSource>,
) -> Result<Arc<Client>> {
    let inter_service_timeout_ns = cnc.identity().client_liveness_timeout_ns.max(0) as u64;
    context.validate_inter_service_timeout(inter_service_timeout_ns)?;
    let settings = Settings::new(&context, inter_service_timeout_ns);
    let events = BroadcastReceiver::new(cnc.to_clients().clone()).map_err(|error| {
        Error::InvalidCncFile {
            path: context.cnc_path(),
            reason: error.to_string(),
        }
    })?;
    let proxy = DriverProxy::new(cnc.to_driver().clone());
    let handlers = ClientHandlers::new(&mut context, || proxy.next_correlation_id());
    let conductor = Conductor::new(events, handlers, context.nano_clock.nano_time());
    let idle_strategy = context.take_idle_strategy();
    let uses_invoker = context.use_conductor_agent_invoker;
    let client = Client::new(
        context,
        settings,
        proxy,
        cnc.counters().clone(),
        logs,
        conductor,
    );
    if !uses_invoker {
        client.start(idle_strategy).map_err(|source| Error::Io {
            path: PathBuf::new(),
            source: Arc::new(source),
        })?;
    }
    Ok(client)
}

/// Waits until there is a CnC file with a live driver behind it. `invoke` is called before each sleep.
fn await_driver(
    path: &Path,
    clock: &dyn EpochClock,
    driver_timeout_ms: u64,
    mut invoke: impl FnMut(),
) -> Result<CncFile> {
    let start_ms = clock.time_ms();
    let timeout_ms = driver_timeout_ms as i64;
    loop {
        let (reason, sleep_ms) = match look(path, clock.time_ms(), timeout_ms)? {
            Look::Alive(cnc) => return Ok(cnc),
            Look::NotYet(reason, sleep_ms) => (reason, sleep_ms),
        };
        let waited_ms = clock.time_ms() - start_ms;
        if waited_ms > timeout_ms {
            return Err(reason.after(path, waited_ms as u64).into());
        }
        invoke();
        std::thread::sleep(Duration::from_millis(
            sleep_ms.min(driver_timeout_ms.max(1)),
        ));
    }
}

enum Look {
    Alive(CncFile),
    NotYet(Missing, u64),
}

/// What is missing for a connection.
#[derive(Clone, Copy)]
enum Missing {
    File,
    Version,
    Content,
    Heartbeat,
}

impl Missing {
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

/// Looks at the file once. What waiting cannot mend is an error.
fn look(path: &Path, now_ms: i64, timeout_ms: i64) -> Result<Look> {
    let Some(opened) = map(path, Reader::Client)? else {
        return Ok(Look::NotYet(Missing::File, FILE_SLEEP_MS));
    };
    let cnc = match opened {
        Ok(cnc) => cnc,
        Err(CncError::NotPopulated { .. }) => {
            return Ok(Look::NotYet(Missing::File, FILE_SLEEP_MS));
        }
        Err(CncError::NotInitialised) => {
            return Ok(Look::NotYet(Missing::Version, CONTENT_SLEEP_MS));
        }
        Err(CncError::Truncated { .. }) => {
            return Ok(Look::NotYet(Missing::Content, CONTENT_SLEEP_MS));
        }
        Err(error) => return Err(unusable(path, error)),
    };
    Ok(match cnc.driver_state(now_ms, timeout_ms) {
        DriverState::Active => Look::Alive(cnc),
        DriverState::NoHeartbeat => Look::NotYet(Missing::Heartbeat, CONTENT_SLEEP_MS),
        DriverState::Inactive => Look::NotYet(Missing::Heartbeat, DEAD_DRIVER_SLEEP_MS),
    })
}

/// Maps the file; `None` where there is none that this process may open.
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

/// Whether a driver works in `aeron_dir`: its heartbeat is not older than `timeout`. Waits up to `timeout` for a driver that
/// is just starting.
///
/// # Errors
/// [`DriverTimeout::NotInitialised`] when the file stays unfinished; [`Error::VersionMismatch`], [`Error::InvalidCncFile`].
pub fn is_driver_active(aeron_dir: &Path, timeout: Duration) -> Result<bool> {
    let path = directory::cnc_file(aeron_dir);
    let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
    let clock = SystemEpochClock;
    let deadline_ms = clock.time_ms().saturating_add(timeout_ms);
    loop {
        match map(&path, Reader::Tool)? {
            None | Some(Err(CncError::NotPopulated { .. })) => return Ok(false),
            Some(Ok(cnc)) => return Ok(cnc.is_active(clock.time_ms(), timeout_ms)),
            Some(Err(CncError::NotInitialised | CncError::Truncated { .. }))
                if clock.time_ms() < deadline_ms =>
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

/// Asks the driver in `aeron_dir` to end; it does if its termination validator accepts `token`. Answers whether it was
/// asked: not without a CnC file that is ready.
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

/// An id of the driver in `aeron_dir` that nobody else gets.
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

impl Context {
    fn take_idle_strategy(&mut self) -> Box<dyn IdleStrategy> {
        let sleep_ns = self.idle_sleep_duration_ns;
        self.idle_strategy
            .take()
            .unwrap_or_else(|| Box::new(aeron_agent::SleepingIdleStrategy::new(sleep_ns)))
    }
}

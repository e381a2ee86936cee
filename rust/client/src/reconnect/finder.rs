//! [`DriverFinder`]: finds the next driver of a client.

use std::path::PathBuf;
use std::sync::Arc;

use aeron_agent::EpochClock;
use aeron_memory::cnc::{CLOSED_HEARTBEAT_MS, CncFile, DriverIdentity};
use aeron_memory::directory;
use aeron_memory::process_watch::ProcessWatch;

use crate::connect::{DriverLook, look};
use crate::error::{Error, Result};
use crate::log_source::{LogSource, MappedLogs};

/// A live driver.
pub struct FoundDriver {
    /// Its CnC file.
    pub cnc: CncFile,
    /// Its logs.
    pub logs: Box<dyn LogSource>,
}

/// The driver that a client has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostDriver {
    /// Process and start time.
    pub identity: DriverIdentity,
    /// Its heartbeat at the loss, in epoch milliseconds.
    pub heartbeat_ms: i64,
}

/// Decides whether a CnC file is that of a live driver. The file of a killed driver keeps a heartbeat that looks new
/// for seconds.
#[derive(Debug, Default)]
pub struct DriverScout {
    /// The driver of the last look, with its heartbeat.
    seen: Option<(DriverIdentity, i64)>,
}

impl DriverScout {
    /// Whether the driver with this CnC file is alive and is not the lost one. `is_running` says that its process runs;
    /// otherwise its heartbeat must go on from one look to the next.
    pub fn is_next(&mut self, lost: &LostDriver, cnc: &CncFile, is_running: bool) -> bool {
        let (identity, heartbeat_ms) = (cnc.identity(), cnc.to_driver().consumer_heartbeat_ms());
        if identity == lost.identity {
            return heartbeat_ms != lost.heartbeat_ms && heartbeat_ms != CLOSED_HEARTBEAT_MS;
        }
        let before = self.seen.replace((identity, heartbeat_ms));
        is_running
            || before.is_some_and(|(seen, seen_ms)| seen == identity && seen_ms != heartbeat_ms)
    }
}

/// Finds the next driver of a client. The conductor of the client calls it.
pub trait DriverFinder: Send {
    /// Looks once for a live driver. Must not wait. Returns `None` if there is no driver yet.
    ///
    /// # Errors
    /// An error means that waiting cannot help, for example a driver of another version. The client is then closed.
    fn find(&mut self, lost: &LostDriver) -> Result<Option<FoundDriver>>;

    /// Whether the process of the current driver has ended, if the finder knows it. Must not disturb the driver.
    fn has_driver_ended(&mut self) -> bool {
        false
    }
}

/// Drivers that serve one directory.
pub(crate) struct FileFinder {
    path: PathBuf,
    lock_path: PathBuf,
    pre_touch: bool,
    driver_timeout_ms: i64,
    epoch_clock: Arc<dyn EpochClock>,
    watch: Option<ProcessWatch>,
    scout: DriverScout,
}

impl FileFinder {
    /// Creates the finder of a client that is connected to `driver`.
    pub(crate) fn new(
        aeron_dir: &std::path::Path,
        driver: &DriverIdentity,
        pre_touch: bool,
        driver_timeout_ms: u64,
        epoch_clock: Arc<dyn EpochClock>,
    ) -> Self {
        let lock_path = directory::driver_lock_file(aeron_dir);
        Self {
            path: directory::cnc_file(aeron_dir),
            watch: ProcessWatch::of_lock_holder(&lock_path, driver.pid),
            scout: DriverScout::default(),
            lock_path,
            pre_touch,
            driver_timeout_ms: driver_timeout_ms as i64,
            epoch_clock,
        }
    }
}

impl DriverFinder for FileFinder {
    fn find(&mut self, lost: &LostDriver) -> Result<Option<FoundDriver>> {
        if let Err(error) = std::fs::File::open(&self.path)
            && error.kind() == std::io::ErrorKind::PermissionDenied
        {
            return Err(Error::Io {
                path: self.path.clone(),
                source: Arc::new(error),
            });
        }
        let cnc = match look(
            &self.path,
            self.epoch_clock.time_ms(),
            self.driver_timeout_ms,
        ) {
            Ok(DriverLook::Alive(cnc)) => cnc,
            // Such errors go away, for example the lack of descriptors.
            Ok(DriverLook::NotYet(..)) | Err(Error::Io { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let watch = ProcessWatch::of_lock_holder(&self.lock_path, cnc.identity().pid);
        if !self.scout.is_next(lost, &cnc, watch.is_some()) {
            return Ok(None);
        }
        (self.watch, self.scout) = (watch, DriverScout::default());
        let logs = Box::new(MappedLogs {
            pre_touch: self.pre_touch,
        });
        Ok(Some(FoundDriver { cnc, logs }))
    }

    fn has_driver_ended(&mut self) -> bool {
        self.watch.as_ref().is_some_and(ProcessWatch::has_ended)
    }
}

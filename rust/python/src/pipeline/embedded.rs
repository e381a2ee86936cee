//! [`EmbeddedDriver`]: a media driver that starts when it is first needed.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aeron_driver::MediaDriver;
use aeron_pipeline::error::{LiveCode, LiveError};

use crate::driver::launch_embedded;

/// The embedded driver of a source or of a worker process. The first connection launches the driver.
#[derive(Default)]
pub struct EmbeddedDriver(Mutex<Option<MediaDriver>>);

impl EmbeddedDriver {
    /// Returns the directory of the driver. Starts the driver if it does not run.
    pub fn directory(&self) -> Result<PathBuf, LiveError> {
        let mut driver = self.lock();
        let running = match driver.take() {
            Some(running) => running,
            None => launch_embedded().map_err(|error| {
                let reason = format!("option embeddedDriver: no driver can be started: {error}");
                LiveError::new(LiveCode::DriverTimeout, reason)
            })?,
        };
        Ok(driver.insert(running).context().dir.clone())
    }

    /// Closes the driver if it runs.
    pub fn close(&self) {
        if let Some(mut driver) = self.lock().take() {
            // An error is ignored, because files that remain in the directory do no harm.
            let _ = driver.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<MediaDriver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

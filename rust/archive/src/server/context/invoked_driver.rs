//! [`InvokedDriver`]: a media driver without threads, which the archive runs.

use std::fmt;
use std::sync::Arc;

use aeron_client::DriverInvoker;

use super::ArchiveContext;

/// A media driver in the same process, in mode INVOKER. Two values are equal if they run the same driver.
#[derive(Clone)]
pub struct InvokedDriver(DriverInvoker);

impl InvokedDriver {
    /// Creates the value from a function that runs one duty cycle of the driver and returns the work count. Any thread
    /// may call the function.
    pub fn new(run: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        Self(Arc::new(run))
    }

    /// Runs one duty cycle of the driver. Returns the work count.
    pub fn do_work(&self) -> usize {
        (self.0)()
    }

    /// Returns the function, for a client.
    pub(in crate::server) fn invoker(&self) -> DriverInvoker {
        Arc::clone(&self.0)
    }
}

impl ArchiveContext {
    /// Runs one duty cycle of the driver, if the archive must run its driver.
    pub(in crate::server) fn run_driver(&self) {
        if let Some(driver) = &self.driver_invoker {
            driver.do_work();
        }
    }
}

impl PartialEq for InvokedDriver {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for InvokedDriver {}

impl fmt::Debug for InvokedDriver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InvokedDriver")
    }
}

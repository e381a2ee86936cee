//! Reconnecting: a client continues with the next driver after it has lost its driver.
//!
//! The client loses its driver if the driver ends, if the driver times the client out, or if the client's conductor was
//! not run for too long. Without [`Reconnect`], the client is then closed for good, as in Aeron. With it, the client
//! looks for a driver, and gives the driver all publications, subscriptions, counters and destinations again. The
//! objects of the application stay the same.
//!
//! The steps are in the conductor (`conductor/outage.rs` and `conductor/restoration.rs`). This module has the settings,
//! the finder of drivers, and the report.

mod finder;
pub(crate) mod report;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::finder::FileFinder;
pub use self::finder::{DriverFinder, DriverScout, FoundDriver, LostDriver};
pub use self::report::{LostStreamKind, ReconnectReport, StreamReport};

use crate::context::MAX_DURATION_NS;
use crate::error::{Error, Result};

/// Called when the client has lost its driver, with the reason.
pub type DisconnectHandler = Arc<dyn Fn(&Error) + Send + Sync>;
/// Called when the client has connected again and the driver has all its resources.
pub type ReconnectHandler = Arc<dyn Fn(&ReconnectReport) + Send + Sync>;

/// How a client that has lost its driver connects again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// Time from the loss to the first look for a driver, and between two looks. A look reads one file. Default: 100
    /// ms.
    pub min_delay: Duration,
    /// Maximum of that time. The time doubles for each driver that is lost sooner than that after the client had found
    /// it. Default: 5 s.
    pub max_delay: Duration,
    /// Time from the loss after which the client is closed for good. Default: `None`, which means never.
    pub give_up_after: Option<Duration>,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            min_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            give_up_after: None,
        }
    }
}

impl Reconnect {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::Configuration`] if a delay is 0 or too long, or if `max_delay` is below `min_delay`.
    pub(crate) fn validate(&self) -> Result<()> {
        let limit = Duration::from_nanos(MAX_DURATION_NS);
        let refuse = |reason: String| Err(Error::Configuration(reason));
        if self.min_delay.is_zero() {
            return refuse("min_delay of reconnect is 0: it must be longer".to_owned());
        }
        if self.max_delay < self.min_delay {
            return refuse(format!(
                "max_delay={:?} of reconnect is below min_delay={:?}",
                self.max_delay, self.min_delay
            ));
        }
        for (name, value) in [
            ("max_delay", self.max_delay),
            ("give_up_after", self.give_up_after.unwrap_or_default()),
        ] {
            if value > limit {
                return refuse(format!(
                    "{name}={value:?} of reconnect exceeds the limit of {limit:?}"
                ));
            }
        }
        Ok(())
    }
}

//! [`Settings`]: the settings of a connected client.

use std::sync::Arc;
use std::time::Duration;

use aeron_agent::{EpochClock, NanoClock};

use crate::dispatcher::HandlerMode;
use crate::error::{Error, Result};
use crate::handlers::ClientErrorHandler;
use crate::idle_work::DriverTurn;

/// Runs an embedded driver without threads whenever the client waits for a response of the driver. Returns a work
/// count.
pub type DriverInvoker = Arc<dyn Fn() -> usize + Send + Sync>;

/// Called about once a millisecond on the thread of a call that waits for the driver. If the result is `true`, the wait
/// ends with [`Error::Interrupted`].
pub type InterruptCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// Settings that a client needs after it has connected.
pub(crate) struct Settings {
    pub(crate) driver_timeout_ms: u64,
    pub(crate) keepalive_interval_ns: u64,
    pub(crate) timer_interval_ns: u64,
    pub(crate) awaiting_sleep_duration_ns: u64,
    pub(crate) resource_linger_duration_ns: u64,
    pub(crate) close_linger_duration_ns: u64,
    pub(crate) reconnects: bool,
    pub(crate) client_name: String,
    pub(crate) handler_mode: HandlerMode,
    pub(crate) error_handler: ClientErrorHandler,
    pub(crate) driver_invoker: Option<DriverInvoker>,
    pub(crate) driver_turn: Option<DriverTurn>,
    pub(crate) interrupt_check: Option<InterruptCheck>,
    pub(crate) epoch_clock: Arc<dyn EpochClock>,
    pub(crate) nano_clock: Arc<dyn NanoClock>,
}

impl Settings {
    pub(crate) fn driver_timeout(&self) -> Duration {
        Duration::from_millis(self.driver_timeout_ms)
    }

    /// Returns the client's name and id for the log.
    pub(crate) fn display_name(&self, client_id: i64) -> String {
        match self.client_name.as_str() {
            "" => format!("client {client_id}"),
            name => format!("client {name} ({client_id})"),
        }
    }

    /// Checks the keepalive interval against the driver's client liveness timeout.
    ///
    /// # Errors
    /// [`Error::Configuration`] if the interval is not shorter.
    pub(crate) fn check_keepalive(&self, inter_service_timeout: Duration) -> Result<()> {
        if u128::from(self.keepalive_interval_ns) < inter_service_timeout.as_nanos() {
            return Ok(());
        }
        Err(Error::Configuration(format!(
            "keepalive_interval_ns={} must be less than the inter-service timeout of {} ns, \
             which is the driver's client liveness timeout",
            self.keepalive_interval_ns,
            inter_service_timeout.as_nanos()
        )))
    }
}

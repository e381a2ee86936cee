//! [`Context`]: the settings of a client. The application passes it to [`Aeron::connect`](crate::Aeron::connect).

use std::path::PathBuf;
use std::sync::Arc;

use aeron_agent::value::{parse_config_bool, parse_duration_ns};
use aeron_agent::{
    EpochClock, IdleStrategy, NanoClock, SleepingIdleStrategy, SystemEpochClock, SystemNanoClock,
    logging,
};

use aeron_memory::directory;

use crate::conductor::ClientHandlers;
use crate::dispatcher::HandlerMode;
use crate::error::{Error, Result};
use crate::handlers::{ClientErrorHandler, CloseHandler, CounterHandler, PublicationErrorHandler};
use crate::idle_work::DriverTurn;
use crate::image::ImageHandler;
use crate::reconnect::{DisconnectHandler, Reconnect, ReconnectHandler};
use crate::settings::{DriverInvoker, InterruptCheck, Settings};

/// Maximum length of a client name, in bytes.
pub const MAX_CLIENT_NAME_LENGTH: usize = 100;
/// Maximum sleep of the conductor between two duty cycles, in nanoseconds.
pub const MAX_IDLE_SLEEP_DURATION_NS: u64 = 1_000_000_000;
/// Maximum for timeouts and lingers in nanoseconds: a hundred years, so that adding them to a clock cannot overflow.
pub const MAX_DURATION_NS: u64 = 100 * 365 * 24 * 3_600 * 1_000_000_000;

/// Settings of a client, each with the default of Aeron's C client. Timeouts and lingers are at most
/// [`MAX_DURATION_NS`].
///
/// A context is used once: [`Aeron::connect`](crate::Aeron::connect) consumes it.
///
/// ```compile_fail
/// # // 03-82
/// let context = aeron_client::Context::default();
/// let one = aeron_client::Aeron::connect(context);
/// let two = aeron_client::Aeron::connect(context);
/// ```
pub struct Context {
    /// Directory of the driver. Default: `AERON_DIR`, else `/dev/shm/aeron-<user>`.
    pub aeron_dir: PathBuf,
    /// Time to wait for a driver and its responses, and maximum age of its heartbeat, in milliseconds. Default: 10 s.
    pub driver_timeout_ms: u64,
    /// Interval of the client's heartbeat, in nanoseconds. Must be less than the driver's client liveness timeout.
    /// Default: 500 ms.
    pub keepalive_interval_ns: u64,
    /// Sleep of the conductor's thread between duty cycles, at most 1 s, and interval of its timers, in nanoseconds.
    /// Default: 16 ms.
    pub idle_sleep_duration_ns: u64,
    /// Idle strategy of the conductor's thread. Default: `None`, which sleeps for `idle_sleep_duration_ns`.
    pub idle_strategy: Option<Box<dyn IdleStrategy + Send>>,
    /// Sleep of a call that waits for the driver, between two checks, in nanoseconds. Default: 1 ms.
    pub awaiting_sleep_duration_ns: u64,
    /// Time for which the log of a closed publication or image stays mapped, in nanoseconds. Default: 3 s.
    pub resource_linger_duration_ns: u64,
    /// Time for which a closing client waits before it unmaps everything, in nanoseconds. Default: 0.
    pub close_linger_duration_ns: u64,
    /// Whether all pages of a log are loaded into memory when the log is opened. Default: `false`.
    pub pre_touch_mapped_memory: bool,
    /// Name of the client in the label of its heartbeat counter; at most 100 bytes. Default: empty.
    pub client_name: String,
    /// Whether the client has no conductor thread, and the application calls [`Aeron::do_work`](crate::Aeron::do_work).
    /// Default: `false`.
    pub use_conductor_agent_invoker: bool,
    /// Runs an embedded driver while the client waits; needs `use_conductor_agent_invoker`. Default: `None`.
    pub driver_invoker: Option<DriverInvoker>,
    /// Runs the network of a driver in the same process while polls of network channels find nothing. Default: `None`.
    pub driver_turn: Option<DriverTurn>,
    /// Ends waits for the driver early. Default: `None`.
    pub interrupt_check: Option<InterruptCheck>,
    /// Thread on which handlers run. Default: [`HandlerMode::Inline`].
    pub handler_mode: HandlerMode,
    /// Called with errors that no call can return. The default handler prints each error on stderr, and never ends the
    /// process.
    pub error_handler: ClientErrorHandler,
    /// Handler of available images for subscriptions that are added without handlers. Default: `None`.
    pub available_image_handler: Option<ImageHandler>,
    /// Handler of unavailable images for subscriptions that are added without handlers. Default: `None`.
    pub unavailable_image_handler: Option<ImageHandler>,
    /// Called for every counter that any client adds. Default: `None`.
    pub available_counter_handler: Option<CounterHandler>,
    /// Called for every counter of any client that is freed. Default: `None`.
    pub unavailable_counter_handler: Option<CounterHandler>,
    /// Called once when the client is closed, for any reason. Default: `None`.
    pub close_handler: Option<CloseHandler>,
    /// Called when a receiver reports an error to one of the client's publications. Default: `None`.
    pub publication_error_handler: Option<PublicationErrorHandler>,
    /// How the client connects again after it has lost its driver. Default: `None`, which closes the client for good.
    pub reconnect: Option<Reconnect>,
    /// Called when the client has lost its driver and reconnects. Default: `None`.
    pub disconnect_handler: Option<DisconnectHandler>,
    /// Called when the client has connected again. Default: `None`.
    pub reconnect_handler: Option<ReconnectHandler>,
    /// Wall clock, for heartbeats.
    pub epoch_clock: Arc<dyn EpochClock>,
    /// Monotonic clock, for timers.
    pub nano_clock: Arc<dyn NanoClock>,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            aeron_dir: directory::default_directory(),
            driver_timeout_ms: 10_000,
            keepalive_interval_ns: 500_000_000,
            idle_sleep_duration_ns: 16_000_000,
            idle_strategy: None,
            awaiting_sleep_duration_ns: 1_000_000,
            resource_linger_duration_ns: 3_000_000_000,
            close_linger_duration_ns: 0,
            pre_touch_mapped_memory: false,
            client_name: String::new(),
            use_conductor_agent_invoker: false,
            driver_invoker: None,
            driver_turn: None,
            interrupt_check: None,
            handler_mode: HandlerMode::Inline,
            error_handler: Arc::new(|error| logging::error("aeron.client", &error.to_string())),
            available_image_handler: None,
            unavailable_image_handler: None,
            available_counter_handler: None,
            unavailable_counter_handler: None,
            close_handler: None,
            publication_error_handler: None,
            reconnect: None,
            disconnect_handler: None,
            reconnect_handler: None,
            epoch_clock: Arc::new(SystemEpochClock),
            nano_clock: Arc::new(SystemNanoClock),
        }
    }
}

impl Context {
    /// Returns the defaults, changed by environment variables: `AERON_DRIVER_TIMEOUT` (milliseconds),
    /// `AERON_CLIENT_NAME`, `AERON_CLIENT_IDLE_SLEEP_DURATION`, `AERON_CLIENT_RESOURCE_LINGER_DURATION` (nanoseconds or
    /// with a suffix), `AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY`.
    ///
    /// # Errors
    /// [`Error::Configuration`] for a value that cannot be parsed.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        const PRE_TOUCH: &str = "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY";
        let mut context = Self::default();
        let malformed = |name: &str, value: &str| {
            Error::Configuration(format!("{name}={value} is not a valid value"))
        };
        if let Some(value) = variable("AERON_DRIVER_TIMEOUT") {
            context.driver_timeout_ms = value
                .trim()
                .parse()
                .map_err(|_| malformed("AERON_DRIVER_TIMEOUT", &value))?;
        }
        if let Some(name) = variable("AERON_CLIENT_NAME") {
            context.client_name = name;
        }
        let duration = |name: &str, default_ns: u64| match variable(name) {
            None => Ok(default_ns),
            Some(value) => {
                let parsed = parse_duration_ns(&value)
                    .ok()
                    .and_then(|ns| u64::try_from(ns).ok());
                parsed.ok_or_else(|| malformed(name, &value))
            }
        };
        context.idle_sleep_duration_ns = duration(
            "AERON_CLIENT_IDLE_SLEEP_DURATION",
            context.idle_sleep_duration_ns,
        )?;
        context.resource_linger_duration_ns = duration(
            "AERON_CLIENT_RESOURCE_LINGER_DURATION",
            context.resource_linger_duration_ns,
        )?;
        if let Some(value) = variable(PRE_TOUCH) {
            context.pre_touch_mapped_memory =
                parse_config_bool(&value).ok_or_else(|| malformed(PRE_TOUCH, &value))?;
        }
        Ok(context)
    }

    /// Returns the path of the driver's CnC file.
    pub fn cnc_path(&self) -> PathBuf {
        directory::cnc_file(&self.aeron_dir)
    }

    /// Validates the settings as far as possible without a driver.
    pub(crate) fn validate(&self) -> Result<()> {
        let refuse = |reason: String| Err(Error::Configuration(reason));
        if self.client_name.len() > MAX_CLIENT_NAME_LENGTH {
            return refuse(format!(
                "client_name has {} bytes, the limit is {MAX_CLIENT_NAME_LENGTH}",
                self.client_name.len()
            ));
        }
        for (name, value, limit) in [
            (
                "idle_sleep_duration_ns",
                self.idle_sleep_duration_ns,
                MAX_IDLE_SLEEP_DURATION_NS,
            ),
            (
                "driver_timeout_ms",
                self.driver_timeout_ms,
                MAX_DURATION_NS / 1_000_000,
            ),
            (
                "awaiting_sleep_duration_ns",
                self.awaiting_sleep_duration_ns,
                MAX_DURATION_NS,
            ),
            (
                "resource_linger_duration_ns",
                self.resource_linger_duration_ns,
                MAX_DURATION_NS,
            ),
            (
                "close_linger_duration_ns",
                self.close_linger_duration_ns,
                MAX_DURATION_NS,
            ),
        ] {
            if value > limit {
                return refuse(format!("{name}={value} exceeds the limit of {limit}"));
            }
        }
        if let Some(reconnect) = &self.reconnect {
            reconnect.validate()?;
        }
        if self.driver_invoker.is_some() && !self.use_conductor_agent_invoker {
            return refuse("driver_invoker needs use_conductor_agent_invoker".to_owned());
        }
        Ok(())
    }
}

/// Splitting a context into its parts.
impl Context {
    /// Moves the handlers out of the context. Each handler that can be removed gets an id.
    pub(crate) fn take_handlers(&mut self, mut next_id: impl FnMut() -> i64) -> ClientHandlers {
        let available_counter = self.available_counter_handler.take();
        let unavailable_counter = self.unavailable_counter_handler.take();
        let close = self.close_handler.take();
        ClientHandlers {
            available_image: self.available_image_handler.take(),
            unavailable_image: self.unavailable_image_handler.take(),
            publication_error: self.publication_error_handler.take(),
            available_counter: available_counter
                .map(|h| (next_id(), h))
                .into_iter()
                .collect(),
            unavailable_counter: unavailable_counter
                .map(|h| (next_id(), h))
                .into_iter()
                .collect(),
            close: close.map(|h| (next_id(), h)).into_iter().collect(),
        }
    }

    pub(crate) fn take_idle_strategy(&mut self) -> Box<dyn IdleStrategy> {
        let sleep_ns = self.idle_sleep_duration_ns;
        self.idle_strategy
            .take()
            .unwrap_or_else(|| Box::new(SleepingIdleStrategy::new(sleep_ns)))
    }

    /// Returns the settings that the client needs after connecting. Call `take_handlers` first, because this call drops
    /// the handlers.
    pub(crate) fn into_settings(self) -> Settings {
        Settings {
            driver_timeout_ms: self.driver_timeout_ms,
            keepalive_interval_ns: self.keepalive_interval_ns,
            reconnects: self.reconnect.is_some(),
            timer_interval_ns: self.idle_sleep_duration_ns,
            awaiting_sleep_duration_ns: self.awaiting_sleep_duration_ns,
            resource_linger_duration_ns: self.resource_linger_duration_ns,
            close_linger_duration_ns: self.close_linger_duration_ns,
            client_name: self.client_name,
            handler_mode: self.handler_mode,
            error_handler: self.error_handler,
            driver_invoker: self.driver_invoker,
            driver_turn: self.driver_turn,
            interrupt_check: self.interrupt_check,
            epoch_clock: self.epoch_clock,
            nano_clock: self.nano_clock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(variables: &[(&str, &str)]) -> Result<Context> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
        Context::from_variables(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn environment_variables_set_the_settings_that_they_name() {
        let context = context(&[
            ("AERON_DRIVER_TIMEOUT", "250"),
            ("AERON_CLIENT_NAME", "pricing"),
            ("AERON_CLIENT_IDLE_SLEEP_DURATION", "5ms"),
            ("AERON_CLIENT_RESOURCE_LINGER_DURATION", "1000"),
            ("AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY", "true"),
        ])
        .unwrap();
        assert_eq!(context.driver_timeout_ms, 250);
        assert_eq!(context.client_name, "pricing");
        assert_eq!(context.idle_sleep_duration_ns, 5_000_000);
        assert_eq!(context.resource_linger_duration_ns, 1000);
        assert!(context.pre_touch_mapped_memory);
    }

    #[test]
    fn the_defaults_equal_the_defaults_of_the_c_client() {
        let context = context(&[]).unwrap();
        assert_eq!(context.driver_timeout_ms, 10_000);
        assert_eq!(context.keepalive_interval_ns, 500_000_000);
        assert_eq!(context.idle_sleep_duration_ns, 16_000_000);
        assert_eq!(context.resource_linger_duration_ns, 3_000_000_000);
        assert!(!context.pre_touch_mapped_memory && context.client_name.is_empty());
    }

    #[test]
    fn the_error_for_an_invalid_value_names_the_variable() {
        for (name, value) in [
            ("AERON_DRIVER_TIMEOUT", "soon"),
            ("AERON_CLIENT_IDLE_SLEEP_DURATION", "-1"),
            ("AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY", "maybe"),
        ] {
            let error = context(&[(name, value)]).err().unwrap().to_string();
            assert_eq!(error, format!("{name}={value} is not a valid value"));
        }
    }
}

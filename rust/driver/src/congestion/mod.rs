//! Congestion control: decides the window that a receiver offers.
//!
//! Each image has one strategy. The conductor calls the strategy after every scan for gaps, and the strategy returns
//! the window.
//!
//! [`StaticWindow`] never changes the window. [`Cubic`] reduces the window on loss and then lets it grow again. The
//! receiver measures the round trip for `Cubic` with an [`RttMeter`]. The meter and `Cubic` share one atomic value.

use std::fmt::Debug;

use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_protocol::uri::{ChannelUri, key};

use crate::config::Context;
use crate::error::DriverError;

mod cubic;
mod rtt;
mod static_window;

pub use cubic::{Cubic, CubicConfig};
pub use rtt::{RttMeter, RttShared};
pub use static_window::StaticWindow;

/// Input of a strategy: the state of an image after a scan for gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackRebuild {
    /// Time of the conductor's clock.
    pub now_ns: i64,
    /// Position of the slowest subscriber.
    pub consumption_position: i64,
    /// Position of the status message that was scheduled last.
    pub next_sm_position: i64,
    /// Whether the scan found a new gap.
    pub is_loss_found: bool,
}

/// Output of a strategy: the window to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowUpdate {
    /// Length of the window in bytes.
    pub window_length: i32,
    /// Whether a status message must be sent even if the position and the window do not require one.
    pub is_forced: bool,
}

/// A congestion control strategy; see the [module](self).
pub trait CongestionControl: Debug + Send {
    /// Returns the window of the first status message, in bytes.
    fn initial_window_length(&self) -> i32;

    /// Returns the largest window that the strategy ever offers, in bytes.
    fn max_window_length(&self) -> i32;

    /// Returns the window to offer after a scan for gaps.
    fn on_track_rebuild(&mut self, rebuild: &TrackRebuild) -> WindowUpdate;
}

/// The strategy of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionStrategy {
    Static,
    Cubic,
}

/// The strategy that the configuration selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSupplier {
    /// The channel's `cc` decides.
    OfChannel,
    /// All images have this strategy.
    Always(CongestionStrategy),
}

impl CongestionSupplier {
    /// Returns the supplier with this name: a short name, or the name of the C driver's function.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "default"
            | "aeron_congestion_control_default_strategy_supplier"
            | "io.aeron.driver.DefaultCongestionControlSupplier" => Some(Self::OfChannel),
            "static" | "aeron_static_window_congestion_control_strategy_supplier" => {
                Some(Self::Always(CongestionStrategy::Static))
            }
            "cubic"
            | "aeron_cubic_congestion_control_strategy_supplier"
            | "io.aeron.driver.ext.CubicCongestionControlSupplier" => {
                Some(Self::Always(CongestionStrategy::Cubic))
            }
            _ => None,
        }
    }
}

/// The counters of [`Cubic`].
#[derive(Clone, Debug)]
pub struct CubicIndicators {
    /// The last measured round trip in nanoseconds.
    pub rtt: AtomicCounter<SharedBuffer>,
    /// The window in bytes.
    pub window: AtomicCounter<SharedBuffer>,
}

/// The congestion control of an image.
#[derive(Debug)]
pub struct Congestion {
    /// The conductor's half.
    pub control: Box<dyn CongestionControl>,
    /// The receiver's half, if round trips are measured.
    pub rtt_meter: Option<RttMeter>,
}

impl CongestionStrategy {
    /// Returns the strategy for the images of a channel. `context` must be valid.
    ///
    /// If the configuration selects a strategy for all images, returns this strategy. Otherwise, the channel's `cc`
    /// decides.
    ///
    /// # Errors
    /// Error code 11 for an unknown strategy.
    pub fn of_channel(uri: &ChannelUri, context: &Context) -> Result<Self, DriverError> {
        if let Some(CongestionSupplier::Always(strategy)) =
            CongestionSupplier::from_name(&context.congestion_control_supplier)
        {
            return Ok(strategy);
        }
        match uri.get(key::CONGESTION_CONTROL) {
            None | Some("static" | "io.aeron.driver.StaticWindowCongestionControl") => {
                Ok(Self::Static)
            }
            Some(
                "cubic"
                | "io.aeron.driver.ext.CubicCongestionControl"
                | "io.aeron.driver.ext.CubicCongestionControlSupplier",
            ) => Ok(Self::Cubic),
            Some(name) => Err(DriverError::invalid_argument(format!(
                "Invalid congestion control strategy name: {name} from URI: {uri}, use static or cubic"
            ))),
        }
    }
}

/// Lengths of an image that limit its windows, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ImageLengths {
    /// Maximum length of the window.
    pub max_window_length: i32,
    /// Maximum length of a datagram.
    pub mtu_length: i32,
}

impl Congestion {
    /// Creates the strategy for an image of these lengths. Calls `indicators` for counters if the strategy has any.
    ///
    /// # Errors
    /// The error of `indicators`.
    pub fn new<E>(
        strategy: CongestionStrategy,
        lengths: ImageLengths,
        context: &Context,
        indicators: impl FnOnce() -> Result<CubicIndicators, E>,
        now_ns: i64,
    ) -> Result<Self, E> {
        if strategy == CongestionStrategy::Static {
            return Ok(Congestion {
                control: Box::new(StaticWindow::new(lengths.max_window_length)),
                rtt_meter: None,
            });
        }
        let indicators = indicators()?;
        let rtt = RttShared::new(context.cubic_initial_rtt_ns);
        let rtt_meter = context
            .cubic_measure_rtt
            .then(|| RttMeter::new(rtt.clone(), indicators.rtt, now_ns));
        let config = CubicConfig {
            max_window_length: lengths.max_window_length,
            mtu_length: lengths.mtu_length,
            initial_rtt_ns: context.cubic_initial_rtt_ns,
            is_tcp_mode: context.cubic_tcp_mode,
        };
        let control = Box::new(Cubic::new(config, rtt, indicators.window, now_ns));
        Ok(Congestion { control, rtt_meter })
    }
}

/// Returns the maximum window of an image in bytes: the receiver's window, but at most half a term of the stream.
pub fn max_window_length(receiver_window_length: i64, term_length: usize) -> i32 {
    receiver_window_length.clamp(0, term_length as i64 / 2) as i32
}

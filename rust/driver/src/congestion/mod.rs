//! Congestion control: the window that a receiver offers.
//!
//! A strategy belongs to one image and runs in the conductor, which asks it for the window after every rebuild. [`StaticWindow`]
//! never changes it, [`Cubic`] shrinks it on loss and lets it grow again. The round trip that `Cubic` may use is measured by the
//! receiver with an [`RttMeter`]; the two share one atomic.

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

/// What happened since the last rebuild of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackRebuild {
    /// The conductor's clock.
    pub now_ns: i64,
    /// Position of the slowest subscriber.
    pub consumption_position: i64,
    /// Position of the status message that was last scheduled.
    pub next_sm_position: i64,
    /// A gap was found that was not known before.
    pub is_loss_found: bool,
}

/// The window to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowUpdate {
    /// Its length in bytes.
    pub window_length: i32,
    /// A status message is to be sent, whatever else.
    pub is_forced: bool,
}

/// A strategy; see the [module](self).
pub trait CongestionControl: Debug + Send {
    /// The window of the first status message, in bytes.
    fn initial_window_length(&self) -> i32;

    /// The largest window that it will ever offer, in bytes.
    fn max_window_length(&self) -> i32;

    /// The window to offer after a rebuild.
    fn on_track_rebuild(&mut self, rebuild: &TrackRebuild) -> WindowUpdate;
}

/// Which strategy an image gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionStrategy {
    /// [`StaticWindow`].
    Static,
    /// [`Cubic`].
    Cubic,
}

/// What the driver's setting says about strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSupplier {
    /// The channel's `cc` decides.
    OfChannel,
    /// All images get this one.
    Always(CongestionStrategy),
}

impl CongestionSupplier {
    /// The supplier with this name: a short one, or that of the C driver's function.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "default" | "aeron_congestion_control_default_strategy_supplier" => {
                Some(Self::OfChannel)
            }
            "static" | "aeron_static_window_congestion_control_strategy_supplier" => {
                Some(Self::Always(CongestionStrategy::Static))
            }
            "cubic" | "aeron_cubic_congestion_control_strategy_supplier" => {
                Some(Self::Always(CongestionStrategy::Cubic))
            }
            _ => None,
        }
    }
}

/// The counters that show what [`Cubic`] does.
#[derive(Clone, Debug)]
pub struct CubicIndicators {
    /// The last round trip in nanoseconds.
    pub rtt: AtomicCounter<SharedBuffer>,
    /// The window in bytes.
    pub window: AtomicCounter<SharedBuffer>,
}

/// The congestion control of one image.
#[derive(Debug)]
pub struct Congestion {
    /// The conductor's half.
    pub control: Box<dyn CongestionControl>,
    /// The receiver's half, if round trips are to be measured.
    pub rtt_meter: Option<RttMeter>,
}

impl CongestionStrategy {
    /// By the driver's setting, which by default leaves it to the channel's `cc`. `context` was validated.
    ///
    /// # Errors
    /// Code 11 for a strategy that is not known.
    pub fn of_channel(uri: &ChannelUri, context: &Context) -> Result<Self, DriverError> {
        if let Some(CongestionSupplier::Always(strategy)) =
            CongestionSupplier::from_name(&context.congestion_control_supplier)
        {
            return Ok(strategy);
        }
        match uri.get(key::CONGESTION_CONTROL) {
            None | Some("static") => Ok(Self::Static),
            Some("cubic") => Ok(Self::Cubic),
            Some(name) => Err(DriverError::invalid_argument(format!(
                "Invalid congestion control strategy name: {name} from URI: {uri}"
            ))),
        }
    }
}

/// Lengths of an image that bound its windows, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ImageLengths {
    /// Longest window.
    pub max_window_length: i32,
    /// Longest datagram.
    pub mtu_length: i32,
}

impl Congestion {
    /// The strategy for an image of these lengths. Calls `indicators` for counters if the strategy has any.
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

/// The largest window of an image: the receiver's, but never more than half a term of the stream.
pub fn max_window_length(receiver_window_length: i64, term_length: usize) -> i32 {
    receiver_window_length.clamp(0, term_length as i64 / 2) as i32
}

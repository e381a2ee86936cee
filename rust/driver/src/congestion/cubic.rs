//! [`Cubic`]: a window that shrinks on loss and then grows along a cubic curve (Ha, Rhee and Xu, 2008; RFC 9438).
//!
//! The names are from the paper. *cwnd* is the window in datagrams, and *w_max* is the window at the last loss. *K* is
//! the time that the curve needs to return to *w_max*. *C* is the steepness of the curve. *B* is the fraction by which
//! a loss reduces the window.

use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use super::{CongestionControl, RttShared, TrackRebuild, WindowUpdate};

const C: f64 = 0.4;
const B: f64 = 0.2;
const INITIAL_CWND: i32 = 10;
const SECOND_NS: f64 = 1e9;

/// Parameters of a [`Cubic`].
#[derive(Clone, Debug)]
pub struct CubicConfig {
    /// Maximum window in bytes.
    pub max_window_length: i32,
    /// Maximum length of the sender's datagrams, in bytes.
    pub mtu_length: i32,
    /// Time between two steps of growth. Also the assumed round trip until the first measurement.
    pub initial_rtt_ns: i64,
    /// Whether the window of standard TCP is a lower limit, until the window has grown back to *w_max*.
    pub is_tcp_mode: bool,
}

/// A window of whole datagrams; see the [module](self).
#[derive(Debug)]
pub struct Cubic {
    config: CubicConfig,
    rtt: RttShared,
    /// Counter of the window in bytes.
    window_indicator: AtomicCounter<SharedBuffer>,
    max_cwnd: i32,
    cwnd: i32,
    w_max: i32,
    k: f64,
    time_of_last_loss_ns: i64,
    time_of_last_update_ns: i64,
}

impl Cubic {
    /// Creates a window of ten datagrams, or of the maximum window if that is shorter. `rtt` must have been created
    /// with the initial round trip.
    pub fn new(
        config: CubicConfig,
        rtt: RttShared,
        window_indicator: AtomicCounter<SharedBuffer>,
        now_ns: i64,
    ) -> Self {
        debug_assert!(
            config.mtu_length > 0,
            "the checks of the SETUP refuse an MTU of {} bytes",
            config.mtu_length
        );
        let max_cwnd = (config.max_window_length / config.mtu_length).max(1);
        let cubic = Cubic {
            config,
            rtt,
            window_indicator,
            max_cwnd,
            cwnd: max_cwnd.min(INITIAL_CWND),
            w_max: max_cwnd,
            k: time_to_grow_back(max_cwnd),
            time_of_last_loss_ns: now_ns,
            time_of_last_update_ns: now_ns,
        };
        cubic.window_indicator.set(cubic.window_length().into());
        cubic
    }

    fn window_length(&self) -> i32 {
        debug_assert!(
            (1..=self.max_cwnd).contains(&self.cwnd),
            "a window of {} datagrams is not from 1 to {}",
            self.cwnd,
            self.max_cwnd
        );
        let window_length = i64::from(self.cwnd) * i64::from(self.config.mtu_length);
        window_length.min(self.config.max_window_length.into()) as i32
    }

    fn shrink(&mut self, now_ns: i64) {
        self.w_max = self.cwnd;
        self.k = time_to_grow_back(self.w_max);
        self.cwnd = ((f64::from(self.cwnd) * (1.0 - B)) as i32).max(1);
        self.time_of_last_loss_ns = now_ns;
    }

    fn grow(&mut self, now_ns: i64) {
        // For a time before the last loss, the curve could give a window of less than one datagram.
        debug_assert!(
            now_ns >= self.time_of_last_loss_ns,
            "the last loss at {} is later than now, {now_ns}",
            self.time_of_last_loss_ns
        );
        let t = (now_ns - self.time_of_last_loss_ns) as f64 / SECOND_NS;
        // The curve is truncated toward zero. It is negative until `t` reaches K.
        let curve = (C * (t - self.k).powi(3)) as i32;
        self.cwnd = self.w_max.saturating_add(curve).min(self.max_cwnd);
        if self.config.is_tcp_mode && self.cwnd < self.w_max {
            // The C driver does not limit TCP's window, but senders refuse a window of more than half a term.
            self.cwnd = self.cwnd.max(self.tcp_cwnd(t)).min(self.max_cwnd);
        }
        self.time_of_last_update_ns = now_ns;
    }

    /// Returns the window that standard TCP would have at time `t`.
    fn tcp_cwnd(&self, t: f64) -> i32 {
        let rtt = self.rtt.get_ns() as f64 / SECOND_NS;
        (f64::from(self.w_max) * (1.0 - B) + 3.0 * B / (2.0 - B) * (t / rtt)) as i32
    }
}

impl CongestionControl for Cubic {
    fn initial_window_length(&self) -> i32 {
        self.window_length()
    }

    fn max_window_length(&self) -> i32 {
        self.config.max_window_length
    }

    fn on_track_rebuild(&mut self, rebuild: &TrackRebuild) -> WindowUpdate {
        let next_update_ns = self
            .time_of_last_update_ns
            .saturating_add(self.config.initial_rtt_ns);
        let mut is_forced = false;
        if rebuild.is_loss_found {
            self.shrink(rebuild.now_ns);
            is_forced = true;
        } else if self.cwnd < self.max_cwnd && rebuild.now_ns > next_update_ns {
            self.grow(rebuild.now_ns);
        } else if self.cwnd == 1 && rebuild.consumption_position > rebuild.next_sm_position {
            is_forced = true;
        }
        let window_length = self.window_length();
        if self.window_indicator.get_relaxed() != window_length.into() {
            self.window_indicator.set(window_length.into());
        }
        WindowUpdate {
            window_length,
            is_forced,
        }
    }
}

fn time_to_grow_back(w_max: i32) -> f64 {
    (f64::from(w_max) * B / C).cbrt()
}

//! The delay before a receiver requests missing bytes with a NAK.
//!
//! A single receiver sends the request almost at once. If many receivers of a multicast group miss the same bytes, one
//! request is enough: the repair reaches all of them. Each receiver therefore waits for a random time. The distribution
//! gives short times to only a few receivers (the optimal multicast feedback of Nonnenmacher and Biersack).

use crate::config::Context;

/// The delays of one image.
#[derive(Clone, Debug)]
pub enum NakDelay {
    /// The same delay for every gap.
    Fixed {
        /// Time from the discovery of a gap until it is reported.
        delay_ns: i64,
        /// Time from one report of a gap to the next.
        retry_ns: i64,
    },
    /// A new random delay for each gap and each repetition.
    Multicast(MulticastBackoff),
}

/// Random delays from 0 up to a maximum.
#[derive(Clone, Debug)]
pub struct MulticastBackoff {
    random: fastrand::Rng,
    max_backoff_ns: i64,
    /// Delay in ns at which the probability density has grown e-fold: the maximum delay divided by lambda. Lambda is
    /// the natural logarithm of the group size, plus 1.
    scale_ns: f64,
    /// e^lambda - 1.
    growth: f64,
}

impl NakDelay {
    /// Creates the delays of an image.
    ///
    /// `nak_delay_ns` is the unicast delay that the channel asks for. `seed` determines the random delays of a
    /// multicast group.
    pub fn of_image(
        context: &Context,
        is_reliable: bool,
        is_multicast: bool,
        nak_delay_ns: Option<i64>,
        seed: u64,
    ) -> Self {
        if !is_reliable {
            return NakDelay::immediate();
        }
        if is_multicast {
            return NakDelay::Multicast(MulticastBackoff::new(
                context.nak_multicast_group_size,
                context.nak_multicast_max_backoff_ns,
                seed,
            ));
        }
        let delay_ns = nak_delay_ns.unwrap_or(context.nak_unicast_delay_ns);
        debug_assert!(
            delay_ns >= 0,
            "the parser and the validation refuse a NAK delay of {delay_ns} ns"
        );
        NakDelay::Fixed {
            delay_ns,
            retry_ns: delay_ns.saturating_mul(context.nak_unicast_retry_delay_ratio),
        }
    }

    /// Creates delays of zero, for an image that fills gaps instead of requesting them.
    pub fn immediate() -> Self {
        NakDelay::Fixed {
            delay_ns: 0,
            retry_ns: 0,
        }
    }

    /// Returns the time in ns between the discovery of a gap and its first report.
    pub fn delay_ns(&mut self) -> i64 {
        match self {
            NakDelay::Fixed { delay_ns, .. } => *delay_ns,
            NakDelay::Multicast(backoff) => backoff.draw_ns(),
        }
    }

    /// Returns the time in ns until the same gap is reported again.
    pub fn retry_ns(&mut self) -> i64 {
        match self {
            NakDelay::Fixed { retry_ns, .. } => *retry_ns,
            NakDelay::Multicast(backoff) => backoff.draw_ns(),
        }
    }
}

impl MulticastBackoff {
    /// Creates delays of less than `max_backoff_ns` for a group of about `group_size` (at least 1) receivers.
    pub fn new(group_size: i32, max_backoff_ns: i64, seed: u64) -> Self {
        debug_assert!(
            max_backoff_ns >= 0,
            "the validation refuses a maximum backoff of {max_backoff_ns} ns"
        );
        let lambda = f64::from(group_size.max(1)).ln() + 1.0;
        MulticastBackoff {
            random: fastrand::Rng::with_seed(seed),
            max_backoff_ns,
            scale_ns: max_backoff_ns as f64 / lambda,
            growth: lambda.exp() - 1.0,
        }
    }

    fn draw_ns(&mut self) -> i64 {
        let delay_ns = self.scale_ns * (1.0 + self.random.f64() * self.growth).ln();
        (delay_ns as i64).clamp(0, self.max_backoff_ns)
    }
}

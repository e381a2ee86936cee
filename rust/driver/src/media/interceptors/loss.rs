//! `loss`: loses random datagrams of chosen frame types.

use super::arguments::Arguments;
use super::{Interceptor, data};

const VARIABLE: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS";

/// The rate and the frame types.
#[derive(Clone, Debug, PartialEq)]
pub struct LossArguments {
    /// Probability of a loss, from 0 to 1. With a value above 1, every datagram is lost.
    rate: f64,
    /// Seed of each socket's random numbers; without a seed, the numbers differ in each run.
    seed: Option<u64>,
    /// Bit `1 << type` is set for each frame type that is lost. The first frame of the datagram decides the type.
    mask: u64,
}

impl LossArguments {
    /// Parses `rate=…|seed=…|recv-msg-mask=…`; `None` if nothing would be lost. The mask is hexadecimal.
    ///
    /// # Errors
    /// The warning for text that cannot be parsed.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let arguments = Arguments::new(VARIABLE, text);
        arguments.check_keys(&["rate", "seed", "recv-msg-mask"])?;
        let mask = arguments
            .get("recv-msg-mask")
            .map(|mask| {
                let digits = mask.strip_prefix("0x").unwrap_or(mask);
                arguments.accept(u64::from_str_radix(digits, 16).ok())
            })
            .transpose()?;
        let loss = LossArguments {
            rate: arguments.number("rate")?.unwrap_or(0.0),
            seed: arguments.number("seed")?,
            mask: mask.unwrap_or(0),
        };
        Ok((loss.rate > 0.0 && loss.mask != 0).then_some(loss))
    }
}

/// Loses random datagrams.
#[derive(Debug)]
pub struct RandomLoss {
    rate: f64,
    mask: u64,
    random: fastrand::Rng,
}

impl RandomLoss {
    /// Creates the interceptor.
    pub fn new(arguments: &LossArguments) -> Self {
        RandomLoss {
            rate: arguments.rate,
            mask: arguments.mask,
            random: arguments
                .seed
                .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
        }
    }
}

impl Interceptor for RandomLoss {
    fn lets_pass(&mut self, datagram: &[u8]) -> bool {
        let is_chosen = data::frame_type(datagram)
            .and_then(|frame_type| 1u64.checked_shl(frame_type.into()))
            .is_some_and(|bit| self.mask & bit != 0);
        !(is_chosen && self.random.f64() < self.rate)
    }
}

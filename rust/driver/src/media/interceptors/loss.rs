//! `loss`: loses datagrams of chosen frame types at random.

use super::arguments::Arguments;
use super::{Interceptor, data};

const VARIABLE: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS";

/// How much of what is lost.
#[derive(Clone, Debug, PartialEq)]
pub struct LossArguments {
    /// Probability, 0 to 1; beyond 1 everything is lost.
    rate: f64,
    /// Starts the random numbers of each socket; without it they differ from run to run.
    seed: Option<u64>,
    /// Bit `1 << type` is set for the frame types that are lost, by the first frame of the datagram.
    mask: u64,
}

impl LossArguments {
    /// Reads `rate=…|seed=…|recv-msg-mask=…`; `None` if nothing would be lost. The mask is hexadecimal.
    ///
    /// # Errors
    /// The warning to show for text that cannot be read.
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

/// Loses datagrams at random.
#[derive(Debug)]
pub struct Loss {
    rate: f64,
    mask: u64,
    random: fastrand::Rng,
}

impl Loss {
    /// Loses as `arguments` say.
    pub fn new(arguments: &LossArguments) -> Self {
        Loss {
            rate: arguments.rate,
            mask: arguments.mask,
            random: arguments
                .seed
                .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
        }
    }
}

impl Interceptor for Loss {
    fn lets_pass(&mut self, datagram: &[u8]) -> bool {
        let is_chosen = data::frame_type(datagram)
            .and_then(|frame_type| 1u64.checked_shl(frame_type.into()))
            .is_some_and(|bit| self.mask & bit != 0);
        !(is_chosen && self.random.f64() < self.rate)
    }
}

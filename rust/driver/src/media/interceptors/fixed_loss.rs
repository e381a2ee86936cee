//! `fixed-loss`: drops one contiguous range of a term, once in every stream.
//!
//! As in the C driver, the range begins with the first datagram of the term that arrives, regardless of the configured
//! begin. Each datagram that directly follows the last dropped datagram is dropped too, up to the configured end.
//! Datagrams at higher offsets pass.

use super::Interceptor;
use super::arguments::Arguments;
use super::data::{DataDatagram, LostOnce};

const VARIABLE: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS";

/// The range to lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedLossArguments {
    term_id: i32,
    term_offset: u32,
    length: u32,
}

impl FixedLossArguments {
    /// Parses `term-id=…|term-offset=…|length=…`, in bytes; `None` if one of these arguments is missing.
    ///
    /// # Errors
    /// The warning for text that cannot be parsed.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let arguments = Arguments::new(VARIABLE, text);
        arguments.check_keys(&["term-id", "term-offset", "length"])?;
        let (term_id, term_offset, length) = (
            arguments.number("term-id")?,
            arguments.number("term-offset")?,
            arguments.number("length")?,
        );
        let all = || {
            Some(FixedLossArguments {
                term_id: term_id?,
                term_offset: term_offset?,
                length: length?,
            })
        };
        Ok(all())
    }
}

/// Loses data up to the end of the range.
#[derive(Debug)]
pub struct FixedLoss {
    term_id: i32,
    end: i64,
    lost: LostOnce,
}

impl FixedLoss {
    /// Creates the interceptor.
    pub fn new(arguments: FixedLossArguments) -> Self {
        FixedLoss {
            term_id: arguments.term_id,
            end: i64::from(arguments.term_offset) + i64::from(arguments.length),
            lost: LostOnce::default(),
        }
    }
}

impl Interceptor for FixedLoss {
    fn lets_pass(&mut self, datagram: &[u8]) -> bool {
        let Some(data) = DataDatagram::parse(datagram).filter(|data| data.term_id == self.term_id)
        else {
            return true;
        };
        let end = self.end;
        !self
            .lost
            .loses(&data, |next| next < end && data.range.contains(&next))
    }
}

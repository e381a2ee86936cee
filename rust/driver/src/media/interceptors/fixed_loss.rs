//! `fixed-loss`: loses one range of a term, of every stream once.

use std::ops::Range;

use super::Interceptor;
use super::arguments::Arguments;
use super::data::{DataDatagram, LostOnce};

const VARIABLE: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS";

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedLossArguments {
    term_id: i32,
    term_offset: u32,
    length: u32,
}

impl FixedLossArguments {
    /// Reads `term-id=…|term-offset=…|length=…`, in bytes; `None` if one of them is missing.
    ///
    /// # Errors
    /// The warning to show for text that cannot be read.
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

/// Loses the data of a range.
#[derive(Debug)]
pub struct FixedLoss {
    term_id: i32,
    range: Range<i64>,
    lost: LostOnce,
}

impl FixedLoss {
    /// Loses as `arguments` say.
    pub fn new(arguments: FixedLossArguments) -> Self {
        let begin = i64::from(arguments.term_offset);
        FixedLoss {
            term_id: arguments.term_id,
            range: begin..begin + i64::from(arguments.length),
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
        let is_in_range = data.range.start < self.range.end && data.range.end > self.range.start;
        !self.lost.loses(&data, is_in_range)
    }
}

//! `fixed-loss`: loses one row of datagrams of a term, of every stream once.
//!
//! As in the C driver the row begins with the first datagram that is seen of the term, wherever the range begins; each datagram
//! that follows the last lost one is lost too, up to the end of the range. What is ahead of the row passes.

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

/// Loses data up to the end of the range.
#[derive(Debug)]
pub struct FixedLoss {
    term_id: i32,
    end: i64,
    lost: LostOnce,
}

impl FixedLoss {
    /// Loses as `arguments` say.
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

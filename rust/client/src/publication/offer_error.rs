//! [`OfferError`]: the reason why a publication accepted nothing, with the numbers that other Aeron clients use.

use aeron_memory::log::AppendError;

/// Reason why a publication accepted nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// The stream cannot accept data now, or cannot accept this message.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// Another thread uses the exclusive publication, or this call comes from a reserved value supplier of the
    /// publication.
    #[error("exclusive publication is in use by another call; it serves one thread at a time")]
    InUse,
}

impl OfferError {
    /// Returns the number that other Aeron clients return for this error: −1 to −5, or −6 for [`InUse`](Self::InUse)
    /// and for an error of the arguments or the log.
    pub fn code(self) -> i64 {
        match self {
            Self::Append(error) => error.code(),
            Self::InUse => -6,
        }
    }
}

/// Returns the name that other Aeron clients use for a result of `offer`: `NONE` for a position, `UNKNOWN` below −5.
pub fn error_string(position: i64) -> &'static str {
    match position {
        0.. => "NONE",
        -1 => "NOT_CONNECTED",
        -2 => "BACK_PRESSURED",
        -3 => "ADMIN_ACTION",
        -4 => "CLOSED",
        -5 => "MAX_POSITION_EXCEEDED",
        _ => "UNKNOWN",
    }
}

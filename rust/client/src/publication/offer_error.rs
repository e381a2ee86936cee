//! [`OfferError`]: why a publication took nothing, and the numbers that other clients have for it.

use aeron_memory::log::AppendError;

/// Why a publication took nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// The stream takes nothing now, or not this.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// Another thread is inside an exclusive publication, or this call comes from a reserved value supplier of it.
    #[error("exclusive publication is in use by another call; it serves one thread at a time")]
    InUse,
}

impl OfferError {
    /// The number that other Aeron clients return for this: −1 to −5, or −6 for an error of the arguments or the log.
    pub fn code(self) -> i64 {
        match self {
            Self::Append(error) => error.code(),
            Self::InUse => -6,
        }
    }
}

/// Name of a result of other Aeron clients' `offer`: `NONE` for a position, `UNKNOWN` below −5.
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

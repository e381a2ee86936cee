//! Decides whether a named reader has expired.

use std::fmt;

use super::RetentionClock;
use crate::extensions::NamedReader;

/// Why a reader has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderExpiry {
    /// The reader has not committed for longer than its `max_age_ms`.
    Age {
        /// Time since the last commit in milliseconds.
        age_ms: i64,
        /// Limit of the reader in milliseconds.
        max_age_ms: i64,
    },
    /// More than `max_lag` bytes are recorded after the position of the reader.
    Lag {
        /// Bytes after the reader's position.
        lag: i64,
        /// Limit of the reader in bytes.
        max_lag: i64,
    },
}

/// Returns why a reader of a recording that ends at `end_position` has expired; `None` if it has not expired.
///
/// The time before the archive started does not count, because no reader could commit. If the clock is not trusted, a
/// reader expires only by its lag.
pub fn expiry_of(
    reader: &NamedReader,
    end_position: i64,
    clock: &RetentionClock,
) -> Option<ReaderExpiry> {
    let age_ms = clock.reader_age_ms(reader.committed_ms);
    if let Some((age_ms, max_age_ms)) = age_ms.zip(reader.max_age_ms)
        && age_ms > max_age_ms
    {
        return Some(ReaderExpiry::Age { age_ms, max_age_ms });
    }
    let (lag, max_lag) = (end_position - reader.position, reader.max_lag?);
    (lag > max_lag).then_some(ReaderExpiry::Lag { lag, max_lag })
}

impl fmt::Display for ReaderExpiry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age { age_ms, max_age_ms } => {
                write!(
                    formatter,
                    "no commit for {age_ms} ms, max_age {max_age_ms} ms"
                )
            }
            Self::Lag { lag, max_lag } => {
                write!(formatter, "lag {lag} bytes, max_lag {max_lag} bytes")
            }
        }
    }
}

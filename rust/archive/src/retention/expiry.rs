//! Decides whether a named reader has expired.

use std::fmt;

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
/// `running_since_ms` is the time at which the archive started. The time before that does not
/// count, because no reader could commit.
pub fn expiry_of(
    reader: &NamedReader,
    end_position: i64,
    running_since_ms: i64,
    now_ms: i64,
) -> Option<ReaderExpiry> {
    let age_ms = now_ms.saturating_sub(reader.committed_ms.max(running_since_ms));
    let lag = end_position - reader.position;
    match (reader.max_age_ms, reader.max_lag) {
        (Some(max_age_ms), _) if age_ms > max_age_ms => {
            Some(ReaderExpiry::Age { age_ms, max_age_ms })
        }
        (_, Some(max_lag)) if lag > max_lag => Some(ReaderExpiry::Lag { lag, max_lag }),
        _ => None,
    }
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

//! [`ReplayPace`]: limits the pace of a replay. A client requests a number of bytes per second, the
//! pace at which the stream was recorded, or both. If both are requested, the slower pace applies.

use aeron_protocol::archive::NULL_VALUE;

use super::recorded_pace::{PaceFault, RecordedPace};
use crate::server::ArchiveError;
use crate::storage::Storage;
use crate::stream::RecordedStream;

const NS_PER_S: i128 = 1_000_000_000;
/// A second is divided into this number of parts. After a time in which a replay could not send, it may catch up at
/// most the bytes of one part.
const BURSTS_PER_S: i64 = 100;

/// The pace that a client requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::server) struct RequestedPace {
    /// Maximum number of bytes of the stream per second.
    max_bytes_per_second: Option<i64>,
    /// Factor of the recorded pace, in millionths.
    speed_millionths: Option<i64>,
}

/// The pace of a replay in progress.
#[derive(Debug)]
pub(super) struct ReplayPace<S: Storage> {
    rate: Option<RateLimit>,
    recorded: Option<RecordedPace<S::File>>,
    /// Longest data frame of the recording, in bytes.
    mtu_length: usize,
    /// Frames that begin before this position may be sent.
    position: i64,
}

/// Limits a replay to a number of bytes per second.
#[derive(Debug, Clone, Copy)]
struct RateLimit {
    bytes_per_second: i64,
    /// A position, and the time in nanoseconds from which on frames at this position may be sent.
    /// `None` before the first frame.
    begin: Option<(i64, i64)>,
}

impl RequestedPace {
    /// Reads the values of a request.
    ///
    /// # Errors
    /// A value is neither positive nor −1.
    pub fn new(max_bytes_per_second: i64, speed_millionths: i64) -> Result<Self, ArchiveError> {
        Ok(Self {
            max_bytes_per_second: positive("maxBytesPerSecond", max_bytes_per_second)?,
            speed_millionths: positive("speedMillionths", speed_millionths)?,
        })
    }
}

fn positive(field: &str, value: i64) -> Result<Option<i64>, ArchiveError> {
    match value {
        NULL_VALUE => Ok(None),
        1.. => Ok(Some(value)),
        _ => Err(ArchiveError::generic(format!(
            "{field}={value} is neither positive nor -1, which stands for no limit"
        ))),
    }
}

impl<S: Storage> ReplayPace<S> {
    /// Creates the pace of a replay that begins at `position`.
    pub fn new(requested: RequestedPace, position: i64, mtu_length: usize) -> Self {
        let rate = requested.max_bytes_per_second.map(RateLimit::new);
        let speed = requested.speed_millionths;
        let is_unlimited = rate.is_none() && speed.is_none();
        Self {
            rate,
            recorded: speed.map(|speed| RecordedPace::new(speed, position)),
            mtu_length,
            position: if is_unlimited { i64::MAX } else { position },
        }
    }

    /// Returns the position before which frames may begin now.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Returns the number of bytes to read at `position`, at most `available`. They contain all
    /// frames that may be sent now.
    pub fn readable(&self, position: i64, available: usize) -> usize {
        if self.position == i64::MAX {
            return available;
        }
        match usize::try_from(self.position.saturating_sub(position)) {
            Ok(0) | Err(_) => 0,
            Ok(allowed) => available.min(allowed.saturating_add(self.mtu_length)),
        }
    }

    /// Opens the index, if the recorded pace was requested.
    ///
    /// # Errors
    /// The index has no arrival times, or cannot be read.
    pub fn open(&mut self, storage: &S, stream: &RecordedStream) -> Result<(), PaceFault> {
        match &mut self.recorded {
            Some(recorded) => recorded.open(storage, stream),
            None => Ok(()),
        }
    }

    /// Computes the position before which frames may begin. The replay has sent all frames before
    /// `sent`, and its bounds allow frames before `stop`. Reads at most a part of one index file.
    ///
    /// # Errors
    /// The index has no arrival times, or cannot be read.
    pub fn advance(
        &mut self,
        storage: &S,
        stream: &RecordedStream,
        (sent, stop): (i64, i64),
        now_ns: i64,
    ) -> Result<(), PaceFault> {
        if self.position == i64::MAX {
            return Ok(());
        }
        let by_rate = match &mut self.rate {
            Some(rate) => rate.position(sent, now_ns),
            None => i64::MAX,
        };
        let by_time = match &mut self.recorded {
            Some(recorded) => recorded.position(storage, stream, (sent, stop), now_ns)?,
            None => i64::MAX,
        };
        debug_assert!(
            by_rate.min(by_time) >= self.position,
            "the pace of a replay must not go back from {} to {}",
            self.position,
            by_rate.min(by_time)
        );
        self.position = by_rate.min(by_time);
        Ok(())
    }
}

impl RateLimit {
    const fn new(bytes_per_second: i64) -> Self {
        Self {
            bytes_per_second,
            begin: None,
        }
    }

    /// Returns the position before which frames may begin. All frames before `sent` were sent.
    fn position(&mut self, sent: i64, now_ns: i64) -> i64 {
        debug_assert!(
            self.bytes_per_second > 0,
            "a replay with {} bytes per second would never end",
            self.bytes_per_second
        );
        let (from, from_ns) = *self.begin.get_or_insert((sent, now_ns));
        let elapsed_ns = i128::from(now_ns.saturating_sub(from_ns).max(0));
        let bytes = elapsed_ns * i128::from(self.bytes_per_second) / NS_PER_S;
        let allowed = from.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        let most = sent.saturating_add(self.bytes_per_second / BURSTS_PER_S + 1);
        if allowed > most {
            self.begin = Some((most, now_ns));
        }
        allowed.min(most)
    }
}

//! What a client, a tool or a starting driver finds in a CnC file. Pure checks: who waits for what, and how long, is the caller's.

use std::fmt;

use super::{CLOSED_HEARTBEAT_MS, CNC_VERSION, Cnc, HEADER_LENGTH, PID_OFFSET, VERSION_OFFSET};
use crate::broadcast::InvalidBroadcastLength;
use crate::counters::InvalidCountersLength;
use crate::ring::InvalidRingLength;
use crate::words::Words;

/// Three numbers in one word: `major << 16 | minor << 8 | patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SemanticVersion(pub i32);

impl SemanticVersion {
    /// The version of three numbers.
    pub const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self((major as i32) << 16 | (minor as i32) << 8 | patch as i32)
    }

    /// The first number.
    pub const fn major(self) -> i32 {
        self.0 >> 16 & 0xFF
    }

    /// The second number.
    pub const fn minor(self) -> i32 {
        self.0 >> 8 & 0xFF
    }

    /// The third number.
    pub const fn patch(self) -> i32 {
        self.0 & 0xFF
    }
}

impl fmt::Display for SemanticVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major(), self.minor(), self.patch())
    }
}

/// Who opens the file, and so how new it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Needs the own major version and at least the own minor one.
    Client,
    /// Tools and starting drivers need the own major version.
    Tool,
}

/// Why a file cannot be used, now or at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CncError {
    /// Too short for a header.
    #[error("CnC file is created but not populated: {length} bytes")]
    NotPopulated {
        /// Length of the file in bytes.
        length: usize,
    },
    /// The version is not there yet.
    #[error("CnC file is created but not initialised")]
    NotInitialised,
    /// Too short for what the header says.
    #[error("CnC file of {length} bytes is shorter than the {required} bytes that its header says")]
    Truncated {
        /// Length of the file in bytes.
        length: usize,
        /// Length that the sections need.
        required: usize,
    },
    /// Written by a driver of another layout.
    #[error("CnC version not compatible: app={CNC_VERSION} file={file}")]
    IncompatibleVersion {
        /// The version in the file.
        file: SemanticVersion,
    },
    /// No driver writes such a length.
    #[error("CnC file is damaged: section length {length} is negative")]
    NegativeLength {
        /// The length in the header.
        length: i32,
    },
    /// No driver writes lengths that add up to this.
    #[error("CnC file is damaged: the section at {offset} is not aligned to 8 bytes")]
    Misaligned {
        /// Where a section would start.
        offset: usize,
    },
    /// The to-driver section is not a ring buffer.
    #[error("CnC file is damaged: {0}")]
    InvalidRing(#[from] InvalidRingLength),
    /// The to-clients section is not a broadcast buffer.
    #[error("CnC file is damaged: {0}")]
    InvalidBroadcast(#[from] InvalidBroadcastLength),
    /// The counters sections do not fit together.
    #[error("CnC file is damaged: {0}")]
    InvalidCounters(#[from] InvalidCountersLength),
}

impl CncError {
    /// Whether a driver that is just starting could be the reason, so that another look is worth it.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NotPopulated { .. } | Self::NotInitialised | Self::Truncated { .. }
        )
    }
}

/// What the heartbeat says about the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverState {
    /// The driver has not started its conductor yet.
    NoHeartbeat,
    /// The driver gave its last sign of life too long ago, or closed.
    Inactive,
    /// The driver is alive.
    Active,
}

impl<W: Words> Cnc<W> {
    /// Checks a mapped file, in the order in which a driver writes it.
    pub fn open(words: W, reader: Reader) -> Result<Self, CncError> {
        let length = words.len();
        if length <= HEADER_LENGTH {
            return Err(CncError::NotPopulated { length });
        }
        let file = SemanticVersion(words.load_i32_acquire(VERSION_OFFSET));
        if file.0 == 0 {
            return Err(CncError::NotInitialised);
        }
        let is_new_enough = reader == Reader::Tool || file.minor() >= CNC_VERSION.minor();
        if file.0 >> 16 != CNC_VERSION.major() || !is_new_enough {
            return Err(CncError::IncompatibleVersion { file });
        }
        Self::sections(words)
    }

    /// Whether the memory looks like the CnC file of a driver that stopped while it started: the header gives the lengths of all
    /// sections, and only the version is missing.
    pub fn is_without_version_only(words: W) -> bool {
        let is_unfinished =
            words.len() > HEADER_LENGTH && words.load_i32_acquire(VERSION_OFFSET) == 0;
        is_unfinished && words.load_i64_relaxed(PID_OFFSET) > 0 && Self::sections(words).is_ok()
    }

    /// What a client concludes from the heartbeat at `now_ms` (epoch). A heartbeat in the future counts as alive.
    pub fn driver_state(&self, now_ms: i64, driver_timeout_ms: i64) -> DriverState {
        match self.to_driver().consumer_heartbeat_ms() {
            0 => DriverState::NoHeartbeat,
            CLOSED_HEARTBEAT_MS => DriverState::Inactive,
            heartbeat_ms if now_ms.saturating_sub(heartbeat_ms) <= driver_timeout_ms => {
                DriverState::Active
            }
            _ => DriverState::Inactive,
        }
    }

    /// Whether a driver works on this file at `now_ms` (epoch); a starting driver then stays away.
    pub fn is_active(&self, now_ms: i64, driver_timeout_ms: i64) -> bool {
        let heartbeat_ms = self.to_driver().consumer_heartbeat_ms();
        heartbeat_ms != CLOSED_HEARTBEAT_MS
            && now_ms.saturating_sub(heartbeat_ms) <= driver_timeout_ms
    }
}

//! Checks of a CnC file by a client, a tool or a starting driver. The functions never wait: the caller decides whether
//! and how long to retry.

use std::fmt;

use super::{CLOSED_HEARTBEAT_MS, CNC_VERSION, Cnc, HEADER_LENGTH, PID_OFFSET, VERSION_OFFSET};
use crate::broadcast::InvalidBroadcastLength;
use crate::counters::InvalidCountersLength;
use crate::ring::InvalidRingLength;
use crate::words::Words;

/// A version of three numbers in one 32-bit value: `major << 16 | minor << 8 | patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SemanticVersion(pub i32);

impl SemanticVersion {
    /// Creates a version from three numbers.
    pub const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self((major as i32) << 16 | (minor as i32) << 8 | patch as i32)
    }

    /// Returns the first number.
    pub const fn major(self) -> i32 {
        self.0 >> 16 & 0xFF
    }

    /// Returns the second number.
    pub const fn minor(self) -> i32 {
        self.0 >> 8 & 0xFF
    }

    /// Returns the third number.
    pub const fn patch(self) -> i32 {
        self.0 & 0xFF
    }
}

impl fmt::Display for SemanticVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major(), self.minor(), self.patch())
    }
}

/// Kind of the process that opens the file. The kind determines the accepted versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Accepts its own major version with the same or a newer minor version.
    Client,
    /// Tools and starting drivers accept their own major version.
    Tool,
}

/// Reason why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CncError {
    /// The file is too short for a header.
    #[error("CnC file is created but not populated: {length} bytes")]
    NotPopulated {
        /// Length of the file in bytes.
        length: usize,
    },
    /// The version was not stored yet.
    #[error("CnC file is created but not initialised")]
    NotInitialised,
    /// The file is shorter than its header requires.
    #[error("CnC file of {length} bytes is shorter than the {required} bytes that its header says")]
    Truncated {
        /// Length of the file in bytes.
        length: usize,
        /// Length that the sections need.
        required: usize,
    },
    /// The file was written by a driver with another version of the layout.
    #[error("CnC version not compatible: app={CNC_VERSION} file={file}")]
    IncompatibleVersion {
        /// The version in the file.
        file: SemanticVersion,
    },
    /// The header has a negative length.
    #[error("CnC file is damaged: section length {length} is negative")]
    NegativeLength {
        /// The length in the header.
        length: i32,
    },
    /// The lengths in the header give misaligned sections.
    #[error("CnC file is damaged: the section at {offset} is not aligned to 8 bytes")]
    Misaligned {
        /// Offset at which a section would start.
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
    /// Whether the error may be temporary, because a driver is just starting. If so, open the file again later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NotPopulated { .. } | Self::NotInitialised | Self::Truncated { .. }
        )
    }
}

/// State of the driver according to its heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverState {
    /// The driver has not started its conductor yet.
    NoHeartbeat,
    /// The driver's last heartbeat is too old, or the driver has closed.
    Inactive,
    /// The driver is alive.
    Active,
}

impl<W: Words> Cnc<W> {
    /// Validates a mapped file: first its length, then the version, which a driver stores last, then all sections.
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

    /// Whether the memory looks like the CnC file of a driver that stopped during its start: the header has the lengths
    /// of all sections, and only the version is missing.
    pub fn is_without_version_only(words: W) -> bool {
        let is_unfinished =
            words.len() > HEADER_LENGTH && words.load_i32_acquire(VERSION_OFFSET) == 0;
        is_unfinished && words.load_i64_relaxed(PID_OFFSET) > 0 && Self::sections(words).is_ok()
    }

    /// Returns the driver's state according to the heartbeat at `now_ms` (epoch). A heartbeat in the future counts as
    /// alive.
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

    /// Whether a driver uses this file at `now_ms` (epoch). If a driver does, another driver must not start.
    pub fn is_active(&self, now_ms: i64, driver_timeout_ms: i64) -> bool {
        let heartbeat_ms = self.to_driver().consumer_heartbeat_ms();
        heartbeat_ms != CLOSED_HEARTBEAT_MS
            && now_ms.saturating_sub(heartbeat_ms) <= driver_timeout_ms
    }
}

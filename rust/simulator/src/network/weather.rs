//! Network conditions: the faults that the network applies to datagrams.

use fastrand::Rng;

use super::HostId;

/// Pattern of datagram loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossPattern {
    /// No loss.
    #[default]
    None,
    /// Each datagram is lost with this probability.
    Uniform(f64),
    /// Loss in bursts. A burst starts with the probability `begin`. After each lost datagram, the burst ends with the
    /// probability `end`.
    Bursts {
        /// Probability that a burst begins.
        begin: f64,
        /// Probability that a burst ends.
        end: f64,
    },
}

/// Kind of damage to a datagram. The UDP checksum of the damaged datagram is correct, so the datagram is like one that
/// a faulty sender has created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// The end of the datagram is missing.
    Truncated,
    /// The version is unknown.
    Version,
    /// The type is unknown.
    FrameType,
    /// The frame length is negative.
    FrameLength,
    /// All bytes are random, but the version is not 0.
    Noise,
}

/// The current network conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Weather {
    /// Pattern of loss.
    pub loss: LossPattern,
    /// Probability that a datagram is delivered twice.
    pub duplication: f64,
    /// Probability that a datagram is delayed, so that later datagrams arrive before it.
    pub reordering: f64,
    /// Probability that a datagram is damaged.
    pub corruption: f64,
    /// Delay of every datagram, in nanoseconds.
    pub delay_ns: i64,
    /// Maximum additional delay, in nanoseconds.
    pub jitter_ns: i64,
    /// Probability that a socket accepts no datagrams, or fewer than the caller passes.
    pub short_sends: f64,
    /// Maximum length of datagrams between hosts. Longer datagrams are lost without an error, as they are at a router
    /// that does not fragment.
    pub longest_datagram: usize,
    /// Pairs of hosts (from, to) between which no datagram is delivered.
    pub cut: Vec<(HostId, HostId)>,
}

impl Weather {
    /// Returns conditions without faults.
    pub fn fair(delay_ns: i64) -> Self {
        Self {
            loss: LossPattern::None,
            duplication: 0.0,
            reordering: 0.0,
            corruption: 0.0,
            delay_ns,
            jitter_ns: 0,
            short_sends: 0.0,
            longest_datagram: usize::MAX,
            cut: Vec::new(),
        }
    }

    /// Whether datagrams from `from` reach `to`.
    pub fn connects(&self, from: HostId, to: HostId) -> bool {
        from == to || !self.cut.contains(&(from, to))
    }
}

/// State of burst loss: whether a burst is active.
#[derive(Debug, Default)]
pub struct Bursts {
    is_on: bool,
}

impl Bursts {
    /// Whether the next datagram is lost.
    pub fn loses(&mut self, loss: &LossPattern, random: &mut Rng) -> bool {
        match *loss {
            LossPattern::None => false,
            LossPattern::Uniform(probability) => random.f64() < probability,
            LossPattern::Bursts { begin, end } => {
                let changes = random.f64() < if self.is_on { end } else { begin };
                self.is_on ^= changes;
                self.is_on
            }
        }
    }
}

impl Corruption {
    const ALL: [Self; 5] = [
        Self::Truncated,
        Self::Version,
        Self::FrameType,
        Self::FrameLength,
        Self::Noise,
    ];

    /// Damages a datagram.
    pub fn apply(bytes: &mut Vec<u8>, random: &mut Rng) {
        const FIRST_UNKNOWN_TYPE: u16 = 0x100;
        match Self::ALL[random.usize(..Self::ALL.len())] {
            // A frame of the datagram is truncated, and the datagram's length is not aligned.
            Self::Truncated => bytes.truncate((random.usize(..bytes.len()) & !31) + 7),
            Self::Version => bytes[4] = random.u8(1..),
            Self::FrameType => {
                bytes[6..8].copy_from_slice(&random.u16(FIRST_UNKNOWN_TYPE..).to_le_bytes());
            }
            Self::FrameLength => {
                let length = random.i32(i32::MIN..0);
                bytes[..4].copy_from_slice(&length.to_le_bytes());
            }
            Self::Noise => {
                bytes.iter_mut().for_each(|byte| *byte = random.u8(..));
                bytes[4] |= 1;
            }
        }
    }
}

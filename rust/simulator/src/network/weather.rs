//! What the network does to datagrams.

use fastrand::Rng;

use super::HostId;

/// How datagrams get lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// None does.
    #[default]
    None,
    /// Each with this probability.
    Uniform(f64),
    /// In bursts: one begins with the first probability and ends, after each datagram that it took, with the second.
    Bursts {
        /// A burst begins.
        begin: f64,
        /// A burst ends.
        end: f64,
    },
}

/// How a datagram is damaged. Whatever gets through the checksum of UDP: a frame that no sender makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// The end is missing.
    Truncated,
    /// The version is one that nobody knows.
    Version,
    /// The type is one that nobody knows.
    FrameType,
    /// The frame claims to be longer than the datagram.
    FrameLength,
    /// It is noise.
    Noise,
}

/// What the network does to datagrams now.
#[derive(Clone, Debug, PartialEq)]
pub struct Weather {
    /// Datagrams get lost.
    pub loss: Loss,
    /// Probability that a datagram comes twice.
    pub duplication: f64,
    /// Probability that a datagram is held back and overtaken by others.
    pub reordering: f64,
    /// Probability that a datagram is damaged.
    pub corruption: f64,
    /// The time that every datagram takes, in nanoseconds.
    pub delay_ns: i64,
    /// Most that it takes longer, in nanoseconds.
    pub jitter_ns: i64,
    /// Probability that a socket takes nothing, or less than it is given.
    pub short_sends: f64,
    /// Longer datagrams do not arrive from another host, as where a router cuts none and tells nobody.
    pub longest_datagram: usize,
    /// From host to host nothing arrives.
    pub cut: Vec<(HostId, HostId)>,
}

impl Weather {
    /// No faults.
    pub fn fair(delay_ns: i64) -> Self {
        Self {
            loss: Loss::None,
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

    /// Whether `from` reaches `to`.
    pub fn connects(&self, from: HostId, to: HostId) -> bool {
        from == to || !self.cut.contains(&(from, to))
    }
}

/// The weather's memory: whether a burst of loss is on.
#[derive(Debug, Default)]
pub struct Bursts {
    is_on: bool,
}

impl Bursts {
    /// Whether the next datagram is lost.
    pub fn loses(&mut self, loss: &Loss, random: &mut Rng) -> bool {
        match *loss {
            Loss::None => false,
            Loss::Uniform(probability) => random.f64() < probability,
            Loss::Bursts { begin, end } => {
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
            // A frame of the datagram is no longer whole, and its beginning not aligned.
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

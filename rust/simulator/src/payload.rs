//! Contents of messages. The bytes are computed from the seed, the publication and the message number, so that a
//! receiver can identify each message.

use fastrand::Rng;

/// Length in bytes of the part that identifies the message.
pub const HEADER_LENGTH: usize = 16;

/// One message of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the publication, unique in the whole schedule.
    pub publication: u32,
    /// Number of the message within the publication, from 0.
    pub number: u32,
    /// Length in bytes.
    pub length: usize,
}

impl Message {
    /// Returns the bytes of the message under `seed`.
    pub fn bytes(&self, seed: u64) -> Vec<u8> {
        let mut bytes = self.bytes_of_zeros();
        let key = u64::from(self.publication) << 32 | u64::from(self.number);
        let mut random = Rng::with_seed(seed ^ key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        if let Some(content) = bytes.get_mut(HEADER_LENGTH..) {
            random.fill(content);
        }
        bytes
    }

    /// Returns the bytes of the message, but three of four messages have only zeros after the header. An archive may
    /// regard the frames of such a message as torn.
    pub fn bytes_with_gaps(&self, seed: u64) -> Vec<u8> {
        match self.number.is_multiple_of(4) {
            true => self.bytes(seed),
            false => self.bytes_of_zeros(),
        }
    }

    fn bytes_of_zeros(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length.max(HEADER_LENGTH));
        bytes.extend_from_slice(&self.publication.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&(self.length as u64).to_le_bytes());
        bytes.resize(self.length, 0);
        bytes
    }

    /// Returns the message with these bytes; `None` if any byte differs from a message of this seed.
    pub fn recognise(bytes: &[u8], seed: u64) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let message = Self {
            publication: word(0)?,
            number: word(4)?,
            length: bytes.len(),
        };
        let is_it = bytes.len() >= HEADER_LENGTH
            && (message.bytes_with_gaps(seed) == bytes || message.bytes(seed) == bytes);
        is_it.then_some(message)
    }
}

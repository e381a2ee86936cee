//! What is sent: bytes that follow from seed, stream, publication and number, so that whoever receives a message knows it.

use fastrand::Rng;

/// Bytes that say which message it is.
pub const HEADER_LENGTH: usize = 16;

/// One message of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the publication, counted over the whole schedule.
    pub publication: u32,
    /// Number within the publication, from 0 on.
    pub number: u32,
    /// Its length in bytes.
    pub length: usize,
}

impl Message {
    /// Its bytes under `seed`.
    pub fn bytes(&self, seed: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length);
        bytes.extend(self.publication.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend((self.length as u64).to_le_bytes());
        let key = u64::from(self.publication) << 32 | u64::from(self.number);
        let mut random = Rng::with_seed(seed ^ key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        while bytes.len() < self.length {
            bytes.extend(random.u64(..).to_le_bytes());
        }
        bytes.truncate(self.length);
        bytes
    }

    /// Which message these bytes are, if they are one of this seed, every byte of it.
    pub fn recognise(bytes: &[u8], seed: u64) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let message = Self {
            publication: word(0)?,
            number: word(4)?,
            length: bytes.len(),
        };
        (bytes.len() >= HEADER_LENGTH && message.bytes(seed) == bytes).then_some(message)
    }
}

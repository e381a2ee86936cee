//! [`CatalogEntry`]: one entry of the file, its bytes, and where they are.

use std::ops::Range;

use aeron_layout::I32;

use super::descriptor::{CHECKSUM_OFFSET, ENTRY_HEADER_LENGTH};
use super::{RecordingDescriptor, RecordingState};
use crate::checksum::Checksum;

/// Bytes of an entry that hold its checksum.
pub(super) const CHECKSUM_FIELD: Range<usize> = CHECKSUM_OFFSET..CHECKSUM_OFFSET + size_of::<I32>();

/// A recording that is or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Whether it is there.
    pub state: RecordingState,
    /// What it is of.
    pub descriptor: RecordingDescriptor,
    /// Where the entry begins in the file.
    pub(super) offset: u64,
    /// Bytes of the file that the entry takes, with its header. More than it needs, if its texts became shorter.
    pub(super) length: usize,
    /// Checksum in the file; 0 if none was written.
    pub(super) checksum: i32,
}

impl CatalogEntry {
    /// An entry that is not in the file yet.
    pub(super) fn new(descriptor: RecordingDescriptor) -> Self {
        Self {
            state: RecordingState::Valid,
            descriptor,
            offset: 0,
            length: 0,
            checksum: 0,
        }
    }

    /// Bytes after the entry's header, padding included. The message that describes the recording to clients is 8 bytes longer.
    #[must_use]
    pub fn body_length(&self) -> usize {
        self.length - ENTRY_HEADER_LENGTH
    }

    /// The bytes of the entry. With `checksum`, they have the checksum of what they say now; otherwise the one that was there.
    pub(super) fn encode(&mut self, checksum: Option<Checksum>) -> Vec<u8> {
        let mut bytes = self.descriptor.encode_entry(self.state, self.length);
        if let Some(checksum) = checksum {
            self.checksum = checksum.compute(&bytes[ENTRY_HEADER_LENGTH..]);
        }
        bytes[CHECKSUM_FIELD].copy_from_slice(&I32::new(self.checksum).to_bytes());
        self.length = bytes.len();
        bytes
    }
}

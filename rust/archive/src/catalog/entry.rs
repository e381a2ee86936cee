//! [`CatalogEntry`]: encodes one entry of the catalog file, and stores the offset of the entry in the file.

use std::ops::Range;

use aeron_layout::I32;
use aeron_layout::catalog::ENTRY_ALIGNMENT;

use super::descriptor::{CHECKSUM_OFFSET, ENTRY_HEADER_LENGTH};
use super::{RecordingDescriptor, RecordingState};
use crate::checksum::Checksum;

/// The bytes of an entry that hold its checksum.
pub(super) const CHECKSUM_FIELD: Range<usize> = CHECKSUM_OFFSET..CHECKSUM_OFFSET + size_of::<I32>();

/// An entry of the catalog. Its recording exists, is marked as broken, or is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// State of the recording.
    pub state: RecordingState,
    /// Data about the recording.
    pub descriptor: RecordingDescriptor,
    /// Offset of the entry in the file.
    pub(super) offset: u64,
    /// Number of bytes of the file that the entry occupies, with the entry header. The number is
    /// larger than necessary if the texts of the entry became shorter.
    pub(super) length: usize,
    /// Checksum in the file; 0 if none was written.
    pub(super) checksum: i32,
    /// Why a valid recording cannot be served. The file does not have this reason: each opening finds it again.
    pub(super) fault: Option<Box<str>>,
}

impl CatalogEntry {
    /// Creates an entry that is not in the file yet.
    pub(super) fn new(descriptor: RecordingDescriptor) -> Self {
        Self {
            state: RecordingState::Valid,
            descriptor,
            offset: 0,
            length: 0,
            checksum: 0,
            fault: None,
        }
    }

    /// Returns whether the recording exists and can be served.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.state == RecordingState::Valid && self.fault.is_none()
    }

    /// Returns why a valid recording cannot be served; `None` if the recording can be served, or is not valid.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Returns the number of bytes after the entry's header, with padding. The message that
    /// describes the recording to clients is 8 bytes longer.
    #[must_use]
    pub fn body_length(&self) -> usize {
        self.length - ENTRY_HEADER_LENGTH
    }

    /// Returns the number of bytes of the entry, with header and padding.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the checksum in the file; 0 if none was written.
    #[must_use]
    pub fn stored_checksum(&self) -> i32 {
        self.checksum
    }

    /// Computes the correct checksum of the entry.
    #[must_use]
    pub fn compute_checksum(&self, checksum: Checksum) -> i32 {
        let bytes = self.descriptor.encode_entry(self.state, self.length);
        checksum.compute(&bytes[ENTRY_HEADER_LENGTH..])
    }

    /// Returns the algorithm of the checksum in the file; `None` if the entry has no checksum or a
    /// wrong checksum.
    #[must_use]
    pub fn checksum_algorithm(&self) -> Option<Checksum> {
        [Checksum::Crc32, Checksum::Crc32c]
            .into_iter()
            .find(|&checksum| {
                self.checksum != 0 && self.compute_checksum(checksum) == self.checksum
            })
    }

    /// Returns the bytes of the entry. With `checksum`, the checksum in the bytes is computed now. Otherwise the bytes
    /// contain the previous checksum.
    pub(super) fn encode(&mut self, checksum: Option<Checksum>) -> Vec<u8> {
        let mut bytes = self.descriptor.encode_entry(self.state, self.length);
        if let Some(checksum) = checksum {
            self.checksum = checksum.compute(&bytes[ENTRY_HEADER_LENGTH..]);
        }
        bytes[CHECKSUM_FIELD].copy_from_slice(&I32::new(self.checksum).to_bytes());
        debug_assert!(
            bytes.len() >= self.length && bytes.len().is_multiple_of(ENTRY_ALIGNMENT),
            "the entry of recording {} must not change from {} to {} bytes: the next entry follows it",
            self.descriptor.recording_id,
            self.length,
            bytes.len()
        );
        self.length = bytes.len();
        bytes
    }
}

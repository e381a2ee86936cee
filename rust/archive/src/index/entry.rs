//! The bytes of an index file: a header, and then entries. In a sparse index, a record of its
//! [recorder](super::IndexRecorder) is between header and entries.
//!
//! The header, the record and each entry have 64 bytes, with a checksum. 64 aligned bytes never
//! cross the end of a page. So if the process is killed during a write, the entry is either complete or absent.

use aeron_layout::private_archive::{IndexEntryLayout, IndexHeaderLayout, ProgressLayout};
use aeron_layout::{I64, U32, offset};
use aeron_memory::log::frame::FRAME_ALIGNMENT;

use super::heads::{Counts, Progress};
use crate::damage::NewerVersion;

/// An entry is due if this number of bytes was recorded since the last entry.
pub(super) const ENTRY_INTERVAL_BYTES: i64 = 64 * 1024;
/// An entry is due if this time has passed since the last entry, in microseconds.
pub(crate) const ENTRY_INTERVAL_US: i64 = 1_000;
/// Maximum number of bytes at the end of a recording that have no entry after a kill. These are the
/// bytes for which no entry was due, and one block.
pub(crate) const MAX_UNINDEXED_BYTES: i64 = ENTRY_INTERVAL_BYTES + super::MAX_BLOCK_LENGTH as i64;
/// Length of the header and of each entry, in bytes.
pub const ENTRY_LENGTH: usize = IndexEntryLayout::LENGTH;

/// Offset of the checksum, the last field of the header and of each entry.
const CHECKSUM_AT: usize = offset!(IndexEntryLayout, checksum: U32);
const _: () = assert!(CHECKSUM_AT == offset!(IndexHeaderLayout, checksum: U32));
const MAGIC: [u8; 4] = *b"AIDX";
/// Versions of the layout. A later version keeps the place of version and checksum in the header, so that this software
/// can refuse its files.
const DENSE_VERSION: u32 = 1;
const SPARSE_VERSION: u32 = 2;
/// Recording id in the header of a sparse index. Only the file name has the real id. So a move of
/// segments to another recording only renames the file.
const NAMED: i64 = -1;
/// Value for an unknown position or time. It is not a valid position or time.
const NONE: i64 = i64::MIN;

/// The rule for when an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexForm {
    /// At the end of each block.
    Dense,
    /// After 64 KiB, or after 1 ms while data arrive.
    Sparse,
}

/// Header of an index file: the recording and the segment of the file, and the progress of the
/// messages before the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexHeader {
    /// Recording id.
    pub recording_id: i64,
    /// Base of the segment: the position of its first byte.
    pub base_position: i64,
    /// Progress of the messages before the segment.
    pub progress: Progress,
    /// The rule for when an entry is written.
    pub form: IndexForm,
}

/// Progress of a recording at the end of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// Position after the block.
    pub end_position: i64,
    /// Progress of the messages at the end of the block.
    pub progress: Progress,
    /// Time at which the recorder polled the block, in microseconds since the epoch; `None` if the
    /// time was lost.
    pub arrival_us: Option<i64>,
}

impl IndexHeader {
    /// Returns the bytes of the header.
    pub fn encode(&self) -> [u8; ENTRY_LENGTH] {
        let mut layout = IndexHeaderLayout {
            magic: MAGIC,
            version: match self.form {
                IndexForm::Dense => DENSE_VERSION,
                IndexForm::Sparse => SPARSE_VERSION,
            }
            .into(),
            recording_id: match self.form {
                IndexForm::Dense => self.recording_id.into(),
                IndexForm::Sparse => NAMED.into(),
            },
            base_position: self.base_position.into(),
            progress: progress_layout(self.progress),
            reserved: [0; 4],
            checksum: U32::ZERO,
        };
        layout.checksum = checksum(&layout.to_bytes()).into();
        layout.to_bytes()
    }

    /// Decodes the header of a file that has `named_id` in its name. Returns `None` if the header
    /// is damaged or belongs to another recording.
    pub fn decode(bytes: &[u8; ENTRY_LENGTH], named_id: i64) -> Option<Self> {
        let layout = IndexHeaderLayout::of(bytes);
        let (form, expected_id) = match layout.version.get() {
            DENSE_VERSION => (IndexForm::Dense, named_id),
            SPARSE_VERSION => (IndexForm::Sparse, NAMED),
            _ => return None,
        };
        let header = Self {
            form,
            recording_id: named_id,
            base_position: layout.base_position.get(),
            progress: progress_of(&layout.progress)?,
        };
        let is_sound = layout.checksum.get() == checksum(bytes)
            && layout.magic == MAGIC
            && layout.recording_id.get() == expected_id
            && is_position(header.base_position);
        is_sound.then_some(header)
    }

    /// Returns the version of a sound header if it is later than the versions of this software.
    pub(super) fn newer_version(bytes: &[u8; ENTRY_LENGTH]) -> Option<NewerVersion> {
        let layout = IndexHeaderLayout::of(bytes);
        let version = layout.version.get();
        let is_sound = layout.magic == MAGIC && layout.checksum.get() == checksum(bytes);
        (is_sound && version > SPARSE_VERSION).then_some(NewerVersion {
            version,
            newest: SPARSE_VERSION,
        })
    }
}

impl IndexEntry {
    /// Returns the bytes of the entry.
    pub fn encode(&self) -> [u8; ENTRY_LENGTH] {
        let mut layout = IndexEntryLayout {
            end_position: self.end_position.into(),
            arrival_us: self.arrival_us.unwrap_or(NONE).into(),
            reserved_after_arrival: [0; 8],
            progress: progress_layout(self.progress),
            reserved: [0; 4],
            checksum: U32::ZERO,
        };
        layout.checksum = checksum(&layout.to_bytes()).into();
        layout.to_bytes()
    }

    /// Decodes an entry. Returns `None` if the entry is incomplete or damaged.
    pub fn decode(bytes: &[u8; ENTRY_LENGTH]) -> Option<Self> {
        let layout = IndexEntryLayout::of(bytes);
        let entry = Self {
            end_position: layout.end_position.get(),
            progress: progress_of(&layout.progress)?,
            arrival_us: known(layout.arrival_us),
        };
        let is_sound = layout.checksum.get() == checksum(bytes)
            && is_position(entry.end_position)
            && entry.progress.head <= Some(entry.end_position);
        is_sound.then_some(entry)
    }
}

fn progress_layout(progress: Progress) -> ProgressLayout {
    ProgressLayout {
        head: progress.head.unwrap_or(NONE).into(),
        messages: progress.counts.messages.into(),
        payload_bytes: progress.counts.payload_bytes.into(),
        unfinished: progress.unfinished.unwrap_or(NONE).into(),
    }
}

fn progress_of(layout: &ProgressLayout) -> Option<Progress> {
    let (head, unfinished) = (layout.head.get(), layout.unfinished.get());
    let is_sound = (is_position(head) || head == NONE) && (unfinished >= 0 || unfinished == NONE);
    is_sound.then_some(Progress {
        head: known(layout.head),
        counts: Counts {
            messages: layout.messages.get(),
            payload_bytes: layout.payload_bytes.get(),
        },
        unfinished: known(layout.unfinished),
    })
}

fn known(value: I64) -> Option<i64> {
    Some(value.get()).filter(|value| *value != NONE)
}

/// Returns whether a frame can begin at this position.
fn is_position(value: i64) -> bool {
    value >= 0 && value % FRAME_ALIGNMENT as i64 == 0
}

/// Returns the checksum of a header or an entry, over all bytes before the checksum field.
pub(super) fn checksum(bytes: &[u8; ENTRY_LENGTH]) -> u32 {
    crc32fast::hash(&bytes[..CHECKSUM_AT])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn positions(most: i64) -> impl Strategy<Value = i64> {
        (0..=most / 32).prop_map(|frames| frames * 32)
    }

    prop_compose! {
        fn progress(most: i64)(
            head in prop::option::of(positions(most)), counts: (i64, i64), unfinished in prop::option::of(0..=i64::MAX),
        ) -> Progress {
            let (messages, payload_bytes) = counts;
            Progress { head, counts: Counts { messages, payload_bytes }, unfinished }
        }
    }

    prop_compose! {
        fn headers()(
            recording_id: i64, base_position in positions(i64::MAX), progress in progress(i64::MAX),
            form in prop_oneof![Just(IndexForm::Dense), Just(IndexForm::Sparse)],
        ) -> IndexHeader {
            IndexHeader { recording_id, base_position, progress, form }
        }
    }

    prop_compose! {
        fn entries()(end_position in positions(i64::MAX))(
            end_position in Just(end_position), progress in progress(end_position),
            arrival_us in prop::option::of(-i64::MAX..=i64::MAX),
        ) -> IndexEntry {
            IndexEntry { end_position, progress, arrival_us }
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn header_and_entry_have_the_same_bytes_as_in_earlier_versions() {
        let header = IndexHeader {
            recording_id: 7,
            base_position: 65_536,
            progress: Progress {
                head: Some(32),
                counts: Counts {
                    messages: 2,
                    payload_bytes: 11,
                },
                unfinished: Some(64),
            },
            form: IndexForm::Dense,
        };
        let expected = concat!(
            "4149445801000000070000000000000000000100000000002000000000000000",
            "02000000000000000b0000000000000040000000000000000000000024a8ab22",
        );
        assert_eq!(hex(&header.encode()), expected);
        let entry = IndexEntry {
            end_position: 96,
            progress: Progress {
                head: Some(64),
                counts: Counts {
                    messages: 3,
                    payload_bytes: 40,
                },
                unfinished: None,
            },
            arrival_us: Some(-5),
        };
        let expected = concat!(
            "6000000000000000fbffffffffffffff00000000000000004000000000000000",
            "030000000000000028000000000000000000000000000080000000003c97c31b",
        );
        assert_eq!(hex(&entry.encode()), expected);
    }

    #[test]
    fn zeros_are_not_an_entry() {
        assert_eq!(IndexEntry::decode(&[0; ENTRY_LENGTH]), None);
        assert_eq!(IndexHeader::decode(&[0; ENTRY_LENGTH], 0), None);
    }

    proptest! {
        #[test]
        fn header_and_entry_are_decoded_unchanged_and_refused_after_a_flipped_bit(
            header in headers(), entry in entries(), bit in 0..ENTRY_LENGTH * 8,
        ) {
            let id = header.recording_id;
            prop_assert_eq!(IndexHeader::decode(&header.encode(), id), Some(header));
            prop_assert_eq!(IndexEntry::decode(&entry.encode()), Some(entry));
            let mut flipped = entry.encode();
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(IndexEntry::decode(&flipped), None);
            let mut flipped = header.encode();
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(IndexHeader::decode(&flipped, id), None);
        }
    }
}

//! The bytes of an index file: one header, then one entry per block, 64 bytes each and each with its checksum.
//!
//! 64 bytes never cross a page, so a write that a kill cuts short leaves an entry whole or absent.

use aeron_memory::log::frame::FRAME_ALIGNMENT;

use super::super::heads::{Counts, Progress};

/// Bytes of the header and of each entry.
pub const ENTRY_LENGTH: usize = 64;

/// Length of a checksum, which ends header and entry.
const CHECKSUM_AT: usize = ENTRY_LENGTH - 4;
/// "AIDX" and the version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"AIDX\x01\0\0\0");
/// Stands for a position or a time that is not known. No time of this value exists, and no position is negative.
const NONE: i64 = i64::MIN;

/// What an index file begins with: whose it is, and what the recording held before its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexHeader {
    /// The recording.
    pub recording_id: i64,
    /// Position of the segment's first byte.
    pub base_position: i64,
    /// How far the messages went before the segment.
    pub progress: Progress,
}

/// What is known of the recording at the end of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// Position after the block.
    pub end_position: i64,
    /// How far the messages go with the block.
    pub progress: Progress,
    /// When the block was polled, in microseconds since the epoch; `None` when that was lost.
    pub arrival_us: Option<i64>,
}

impl IndexHeader {
    /// The bytes of the header.
    pub fn encode(&self) -> [u8; ENTRY_LENGTH] {
        let [head, messages, payload_bytes, unfinished] = words(self.progress);
        let place = [MAGIC as i64, self.recording_id, self.base_position];
        let [magic, id, base] = place;
        seal([magic, id, base, head, messages, payload_bytes, unfinished])
    }

    /// The header in these bytes; `None` unless they are one, whole and unharmed.
    pub fn decode(bytes: &[u8; ENTRY_LENGTH]) -> Option<Self> {
        let [magic, recording_id, base_position, progress @ ..] = unseal(bytes)?;
        let header = Self {
            recording_id,
            base_position,
            progress: progress_of(progress)?,
        };
        (magic == MAGIC as i64 && is_position(base_position)).then_some(header)
    }
}

impl IndexEntry {
    /// The bytes of the entry.
    pub fn encode(&self) -> [u8; ENTRY_LENGTH] {
        let [head, messages, payload_bytes, unfinished] = words(self.progress);
        let arrival = self.arrival_us.unwrap_or(NONE);
        let end = self.end_position;
        seal([end, arrival, 0, head, messages, payload_bytes, unfinished])
    }

    /// The entry in these bytes; `None` unless they are one, whole and unharmed.
    pub fn decode(bytes: &[u8; ENTRY_LENGTH]) -> Option<Self> {
        let [end_position, arrival, _, progress @ ..] = unseal(bytes)?;
        let entry = Self {
            end_position,
            progress: progress_of(progress)?,
            arrival_us: known(arrival),
        };
        let is_behind_head = entry.progress.head <= Some(end_position);
        (is_position(end_position) && is_behind_head).then_some(entry)
    }
}

fn words(progress: Progress) -> [i64; 4] {
    let Progress {
        head,
        counts,
        unfinished,
    } = progress;
    [
        head.unwrap_or(NONE),
        counts.messages,
        counts.payload_bytes,
        unfinished.unwrap_or(NONE),
    ]
}

fn progress_of(words: [i64; 4]) -> Option<Progress> {
    let [head, messages, payload_bytes, unfinished] = words;
    let is_sound = (is_position(head) || head == NONE) && (unfinished >= 0 || unfinished == NONE);
    is_sound.then_some(Progress {
        head: known(head),
        counts: Counts {
            messages,
            payload_bytes,
        },
        unfinished: known(unfinished),
    })
}

fn known(value: i64) -> Option<i64> {
    (value != NONE).then_some(value)
}

/// Whether a frame can begin there.
fn is_position(value: i64) -> bool {
    value >= 0 && value % FRAME_ALIGNMENT as i64 == 0
}

/// The words, four zero bytes and the checksum of all that.
fn seal(words: [i64; 7]) -> [u8; ENTRY_LENGTH] {
    let mut bytes = [0; ENTRY_LENGTH];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn unseal(bytes: &[u8; ENTRY_LENGTH]) -> Option<[i64; 7]> {
    let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
    if bytes[CHECKSUM_AT..] != checksum.to_le_bytes() {
        return None;
    }
    let mut words = [0; 7];
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = i64::from_le_bytes(place.try_into().ok()?);
    }
    Some(words)
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
        ) -> IndexHeader {
            IndexHeader { recording_id, base_position, progress }
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

    #[test]
    fn nothing_written_is_no_entry() {
        assert_eq!(IndexEntry::decode(&[0; ENTRY_LENGTH]), None);
        assert_eq!(IndexHeader::decode(&[0; ENTRY_LENGTH]), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_no_flipped_bit_passes(
            header in headers(), entry in entries(), bit in 0..ENTRY_LENGTH * 8,
        ) {
            prop_assert_eq!(IndexHeader::decode(&header.encode()), Some(header));
            prop_assert_eq!(IndexEntry::decode(&entry.encode()), Some(entry));
            let mut flipped = entry.encode();
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(IndexEntry::decode(&flipped), None);
            let mut flipped = header.encode();
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(IndexHeader::decode(&flipped), None);
        }
    }
}

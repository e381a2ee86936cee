//! [`RecordingPositionKey`]: finds and decodes the position counters of active recordings. The driver of an archive has
//! one such counter for each active recording.

use aeron_layout::{I32, I64};

use super::types::ARCHIVE_RECORDING_POSITION;
use super::{CountersReader, MAX_KEY_LENGTH};
use crate::words::Words;

/// Key of an active recording's position counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingPositionKey {
    /// Recording id.
    pub recording_id: i64,
    /// Session id of the stream.
    pub session_id: i32,
    /// Source of the image: `aeron:ipc`, or address and port.
    pub source_identity: String,
    /// Id of the archive; `None` if the source identity is so long that the key has no room for the
    /// id.
    pub archive_id: Option<i64>,
}

impl RecordingPositionKey {
    /// Decodes the key of a counter. Returns `None` if the bytes are not the key of a position
    /// counter.
    #[must_use]
    pub fn decode(key: &[u8; MAX_KEY_LENGTH]) -> Option<Self> {
        let (recording_id, rest) = key.split_first_chunk()?;
        let (session_id, rest) = rest.split_first_chunk()?;
        let (source_length, rest) = rest.split_first_chunk()?;
        let source_length = usize::try_from(I32::from_bytes(*source_length).get()).ok()?;
        let (source_identity, rest) = rest.split_at_checked(source_length)?;
        Some(Self {
            recording_id: I64::from_bytes(*recording_id).get(),
            session_id: I32::from_bytes(*session_id).get(),
            source_identity: String::from_utf8_lossy(source_identity).into_owned(),
            archive_id: rest.first_chunk().map(|id| I64::from_bytes(*id).get()),
        })
    }

    /// Returns the key of a recording's counter. Returns `None` if the counter does not exist or has another type.
    #[must_use]
    pub fn of<W: Words>(counters: &CountersReader<W>, counter_id: i32) -> Option<Self> {
        // Most counters have another type. To read a whole counter, with its label, takes much longer.
        if counters.type_id(counter_id)? != ARCHIVE_RECORDING_POSITION {
            return None;
        }
        let record = counters.record(counter_id)?;
        (record.type_id == ARCHIVE_RECORDING_POSITION)
            .then(|| Self::decode(&record.key))
            .flatten()
    }

    /// Finds the counter of an active recording. If `archive_id` is set, only that archive's counters match.
    #[must_use]
    pub fn find_by_recording<W: Words>(
        counters: &CountersReader<W>,
        recording_id: i64,
        archive_id: Option<i64>,
    ) -> Option<i32> {
        find(counters, archive_id, |key| key.recording_id == recording_id)
    }

    /// Finds the counter of the active recording of a session. If `archive_id` is set, only that archive's counters
    /// match.
    #[must_use]
    pub fn find_by_session<W: Words>(
        counters: &CountersReader<W>,
        session_id: i32,
        archive_id: Option<i64>,
    ) -> Option<i32> {
        find(counters, archive_id, |key| key.session_id == session_id)
    }

    /// Returns whether the counter belongs to the recording. A recording with a counter is active.
    #[must_use]
    pub fn is_active<W: Words>(
        counters: &CountersReader<W>,
        counter_id: i32,
        recording_id: i64,
    ) -> bool {
        Self::of(counters, counter_id).is_some_and(|key| key.recording_id == recording_id)
    }
}

fn find<W: Words>(
    counters: &CountersReader<W>,
    archive_id: Option<i64>,
    matches: impl Fn(&RecordingPositionKey) -> bool,
) -> Option<i32> {
    counters.find_by_key(ARCHIVE_RECORDING_POSITION, |key| {
        RecordingPositionKey::decode(key).is_some_and(|key| {
            matches(&key) && (archive_id.is_none() || key.archive_id == archive_id)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(source_length: i32, bytes: &[u8]) -> [u8; MAX_KEY_LENGTH] {
        let mut key = [0; MAX_KEY_LENGTH];
        key[..8].copy_from_slice(&7_i64.to_le_bytes());
        key[8..12].copy_from_slice(&(-3_i32).to_le_bytes());
        key[12..16].copy_from_slice(&source_length.to_le_bytes());
        key[16..16 + bytes.len()].copy_from_slice(bytes);
        key
    }

    /// 07-46
    #[test]
    fn a_key_is_decoded_with_source_identity_and_archive_id() {
        let bytes = [b"aeron:ipc".as_slice(), &42_i64.to_le_bytes()].concat();
        let expected = RecordingPositionKey {
            recording_id: 7,
            session_id: -3,
            source_identity: "aeron:ipc".to_owned(),
            archive_id: Some(42),
        };
        assert_eq!(
            RecordingPositionKey::decode(&key_of(9, &bytes)),
            Some(expected)
        );
    }

    #[test]
    fn a_key_with_an_impossible_length_of_the_source_identity_is_refused() {
        for length in [-1, 97, i32::MAX, i32::MIN] {
            assert_eq!(RecordingPositionKey::decode(&key_of(length, &[])), None);
        }
        let full = RecordingPositionKey::decode(&key_of(96, &[b's'; 96])).unwrap();
        assert_eq!(full.archive_id, None);
    }
}

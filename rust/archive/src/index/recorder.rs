//! [`IndexRecorder`]: the record in a sparse index. It names the recorder of the segment and the
//! position at which this recorder began.

use aeron_layout::private_archive::IndexRecorderLayout;

use super::ENTRY_LENGTH;
use super::entry::checksum;
use crate::catalog::RecordingDescriptor;
use crate::checksum::Checksum;
use crate::ownership::BootId;
use crate::storage::SyncLevel;
use crate::verifier::SessionField;

const MAGIC: [u8; 4] = *b"AIDW";
const _: () = assert!(IndexRecorderLayout::LENGTH == ENTRY_LENGTH);

/// The recorder that writes a segment and its index.
///
/// If an archive of other software continues the recording, it writes other ids into the catalog
/// and does not update the index. So an index is valid only if the catalog entry has the same ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexRecorder {
    /// Session id of the image.
    pub session_id: i32,
    /// Control session of the request that extended the recording last; 0 if it was never extended.
    pub control_session_id: i64,
    /// Correlation id of that request.
    pub correlation_id: i64,
    /// First position that the recorder wrote in the segment.
    pub begin_position: i64,
    /// Boot of the recorder's machine, if it is known.
    pub boot_id: Option<BootId>,
    /// How much of each block is forced to the disk before the block is acknowledged.
    pub sync_level: SyncLevel,
    /// Content of the session id fields of all frames in the segment.
    pub session_field: SessionField,
}

impl IndexRecorder {
    /// Returns whether the catalog entry names this recorder.
    #[must_use]
    pub fn is_of(&self, descriptor: &RecordingDescriptor) -> bool {
        let ids = (
            self.session_id,
            self.control_session_id,
            self.correlation_id,
        );
        let named = (
            descriptor.session_id,
            descriptor.control_session_id,
            descriptor.correlation_id,
        );
        ids == named
    }

    /// Returns whether the index of a segment is complete for the recording up to `end`.
    ///
    /// The index is complete if the catalog names this recorder. The index is also complete if the
    /// begin position of this recorder is `end`. Then the recorder was killed before the catalog
    /// named it, and before it wrote frames or entries.
    #[must_use]
    pub fn is_last_of(&self, descriptor: &RecordingDescriptor, end: i64) -> bool {
        self.is_of(descriptor) || self.begin_position == end
    }

    /// Returns the bytes of the record.
    pub fn encode(&self) -> [u8; ENTRY_LENGTH] {
        let mut layout = IndexRecorderLayout {
            magic: MAGIC,
            session_id: self.session_id.into(),
            control_session_id: self.control_session_id.into(),
            correlation_id: self.correlation_id.into(),
            begin_position: self.begin_position.into(),
            boot_id: self.boot_id.map_or([0; 16], BootId::to_bytes),
            sync_level: (self.sync_level as u32).into(),
            session_field: match self.session_field {
                SessionField::Unknown => 0_u32,
                SessionField::SessionId => 1,
                SessionField::Checksum(Checksum::Crc32) => 2,
                SessionField::Checksum(Checksum::Crc32c) => 3,
                SessionField::Mixed => 4,
            }
            .into(),
            reserved: [0; 4],
            checksum: 0.into(),
        };
        layout.checksum = checksum(&layout.to_bytes()).into();
        layout.to_bytes()
    }

    /// Decodes a record. Returns `None` if the record is incomplete or damaged.
    pub fn decode(bytes: &[u8; ENTRY_LENGTH]) -> Option<Self> {
        let layout = IndexRecorderLayout::of(bytes);
        let sync_level = match layout.sync_level.get() {
            0 => SyncLevel::None,
            1 => SyncLevel::Data,
            2 => SyncLevel::DataAndMetadata,
            _ => return None,
        };
        let is_sound = layout.checksum.get() == checksum(bytes)
            && layout.magic == MAGIC
            && layout.begin_position.get() >= 0;
        is_sound.then(|| Self {
            session_id: layout.session_id.get(),
            control_session_id: layout.control_session_id.get(),
            correlation_id: layout.correlation_id.get(),
            begin_position: layout.begin_position.get(),
            boot_id: BootId::from_bytes(layout.boot_id),
            sync_level,
            session_field: match layout.session_field.get() {
                1 => SessionField::SessionId,
                2 => SessionField::Checksum(Checksum::Crc32),
                3 => SessionField::Checksum(Checksum::Crc32c),
                4 => SessionField::Mixed,
                _ => SessionField::Unknown,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn recorders()(
            ids: (i32, i64, i64), begin_position in 0..i64::MAX, boot: [u8; 16], level in 0usize..3,
            field in 0usize..5,
        ) -> IndexRecorder {
            let (session_id, control_session_id, correlation_id) = ids;
            let levels = [SyncLevel::None, SyncLevel::Data, SyncLevel::DataAndMetadata];
            IndexRecorder {
                session_id, control_session_id, correlation_id, begin_position,
                boot_id: BootId::from_bytes(boot), sync_level: levels[level],
                session_field: [
                    SessionField::Unknown, SessionField::SessionId, SessionField::Checksum(Checksum::Crc32),
                    SessionField::Checksum(Checksum::Crc32c), SessionField::Mixed,
                ][field],
            }
        }
    }

    #[test]
    fn zeros_are_not_a_recorder() {
        assert_eq!(IndexRecorder::decode(&[0; ENTRY_LENGTH]), None);
    }

    proptest! {
        #[test]
        fn a_recorder_is_decoded_unchanged_and_refused_after_a_flipped_bit(
            recorder in recorders(), bit in 0..ENTRY_LENGTH * 8,
        ) {
            prop_assert_eq!(IndexRecorder::decode(&recorder.encode()), Some(recorder));
            let mut flipped = recorder.encode();
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(IndexRecorder::decode(&flipped), None);
        }
    }
}

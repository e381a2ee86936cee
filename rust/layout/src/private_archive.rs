//! Files that Aeron's archive does not have: the lock file of a private archive, the index file of each segment, and
//! the file of extensions.

use crate::declare::layout;
use crate::{I32, I64, U32};

layout! {
    /// The lock file (`private.lock`). It is shorter than a page, so a write stores all of it or nothing.
    pub struct LockRecordLayout: 192 {
        /// "APRV".
        pub magic: [u8; 4] = 0,
        /// Version of the layout.
        pub version: U32 = 4,
        /// Id of the archive.
        pub archive_id: [u8; 16] = 8,
        /// Random bytes that were generated with the archive.
        pub nonce: [u8; 16] = 24,
        /// Process id of the owner.
        pub pid: I64 = 40,
        /// Epoch milliseconds at which the owner opened the archive.
        pub start_timestamp_ms: I64 = 48,
        /// Written as zero and never read. Earlier versions wrote a hash of options.
        pub reserved_after_owner: [u8; 8] = 56,
        /// Boot id of the owner's machine as text, padded with zeros.
        pub boot_id: [u8; 64] = 64,
        reserved: [u8; 60] = 128,
        /// CRC-32 of all bytes before this field.
        pub checksum: U32 = 188,
    }

    /// Counts of the messages of a recording up to a position. An unknown head is `i64::MIN`.
    pub struct ProgressLayout: 32 {
        /// Position after the last whole message. If no message is whole yet, the position at which the first
        /// message starts.
        pub head: I64 = 0,
        /// Number of whole messages.
        pub messages: I64 = 8,
        /// Total payload length of these messages in bytes.
        pub payload_bytes: I64 = 16,
        /// Number of payload bytes of the unfinished message up to the position; `i64::MIN` if no message is
        /// unfinished.
        pub unfinished: I64 = 24,
    }

    /// First 64 bytes of an index file.
    pub struct IndexHeaderLayout: 64 {
        /// "AIDX".
        pub magic: [u8; 4] = 0,
        /// Version of the layout: 1, or 2 if a record of the recorder follows.
        pub version: U32 = 4,
        /// The recording. -1 in version 2, where the file name contains the id.
        pub recording_id: I64 = 8,
        /// Position of the segment's first byte.
        pub base_position: I64 = 16,
        /// Progress up to the start of the segment.
        pub progress: ProgressLayout = 24,
        /// Zero.
        pub reserved: [u8; 4] = 56,
        /// CRC-32 of all bytes before this field.
        pub checksum: U32 = 60,
    }

    /// Second 64 bytes of an index file of version 2: the recorder that writes the segment.
    pub struct IndexRecorderLayout: 64 {
        /// "AIDW".
        pub magic: [u8; 4] = 0,
        /// Session id of the image, equal to the one in the catalog.
        pub session_id: I32 = 4,
        /// Id of the control session of the request that extended the recording, equal to the one in the catalog.
        pub control_session_id: I64 = 8,
        /// Correlation id of the request that extended the recording, equal to the one in the catalog.
        pub correlation_id: I64 = 16,
        /// First position that the recorder wrote in the segment.
        pub begin_position: I64 = 24,
        /// Boot id of the recorder's machine; zeros if unknown.
        pub boot_id: [u8; 16] = 32,
        /// `aeron.archive.file.sync.level` of the recorder.
        pub sync_level: U32 = 48,
        /// Content of the session id fields of the segment's frames: 0 unknown, 1 session ids, 2 CRC-32, 3 CRC-32C,
        /// 4 both session ids and checksums.
        pub session_field: U32 = 52,
        /// Zero.
        pub reserved: [u8; 4] = 56,
        /// CRC-32 of all bytes before this field.
        pub checksum: U32 = 60,
    }

    /// Entry of an index file: the end of a block.
    pub struct IndexEntryLayout: 64 {
        /// Position after the block.
        pub end_position: I64 = 0,
        /// Epoch microseconds at which the block was polled; `i64::MIN` if unknown.
        pub arrival_us: I64 = 8,
        /// Zero.
        pub reserved_after_arrival: [u8; 8] = 16,
        /// Progress up to the end of the block.
        pub progress: ProgressLayout = 24,
        /// Zero.
        pub reserved: [u8; 4] = 56,
        /// CRC-32 of all bytes before this field.
        pub checksum: U32 = 60,
    }

    /// First 16 bytes of the file of extensions (`archive-extensions.dat`).
    pub struct ExtensionFileLayout: 16 {
        /// "AEXT".
        pub magic: [u8; 4] = 0,
        /// Version of the layout: 1.
        pub version: U32 = 4,
        /// Zero.
        pub reserved: [u8; 4] = 8,
        /// CRC-32 of all bytes before this field.
        pub checksum: U32 = 12,
    }

    /// Header of a record in the file of extensions. A message of the control protocol follows the header. Zeros pad
    /// the record to a multiple of 8 bytes.
    pub struct ExtensionRecordLayout: 8 {
        /// Length of the message in bytes.
        pub length: U32 = 0,
        /// CRC-32 of the length and of the message.
        pub checksum: U32 = 4,
    }
}

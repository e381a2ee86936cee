//! Files of a private archive that are this project's own: the lock file and the index beside each segment.

use crate::declare::layout;
use crate::{I64, U32};

layout! {
    /// The lock file (`private.lock`). Less than a page: a write of it is whole or absent.
    pub struct LockRecordLayout: 192 {
        /// "APRV".
        pub magic: [u8; 4] = 0,
        /// Version of the layout.
        pub version: U32 = 4,
        /// Id of the archive.
        pub archive_id: [u8; 16] = 8,
        /// Random bytes that were made with the archive.
        pub nonce: [u8; 16] = 24,
        /// Process id of the owner.
        pub pid: I64 = 40,
        /// Epoch milliseconds at which the owner opened the archive.
        pub start_timestamp_ms: I64 = 48,
        /// Written as zero and never read. Earlier versions wrote a hash of options.
        pub reserved_after_owner: [u8; 8] = 56,
        /// Boot of the owner's machine as text, zeros after it.
        pub boot_id: [u8; 64] = 64,
        reserved: [u8; 60] = 128,
        /// CRC-32 of all bytes before it.
        pub checksum: U32 = 188,
    }

    /// How far the messages of a recording went at one position. A position that is not known is `i64::MIN`.
    pub struct ProgressLayout: 32 {
        /// Position after the last whole message.
        pub head: I64 = 0,
        /// Number of messages.
        pub messages: I64 = 8,
        /// Bytes of their payloads.
        pub payload_bytes: I64 = 16,
        /// Position of a message that has no end yet.
        pub unfinished: I64 = 24,
    }

    /// First 64 bytes of an index file.
    pub struct IndexHeaderLayout: 64 {
        /// "AIDX" and the version of the layout.
        pub magic: [u8; 8] = 0,
        /// The recording.
        pub recording_id: I64 = 8,
        /// Position of the segment's first byte.
        pub base_position: I64 = 16,
        /// Progress before the segment.
        pub progress: ProgressLayout = 24,
        /// Zero.
        pub reserved: [u8; 4] = 56,
        /// CRC-32 of all bytes before it.
        pub checksum: U32 = 60,
    }

    /// Entry of an index file: the end of a block.
    pub struct IndexEntryLayout: 64 {
        /// Position after the block.
        pub end_position: I64 = 0,
        /// Epoch microseconds at which the block was polled; `i64::MIN` if that is not known.
        pub arrival_us: I64 = 8,
        /// Zero.
        pub reserved_after_arrival: [u8; 8] = 16,
        /// Progress with the block.
        pub progress: ProgressLayout = 24,
        /// Zero.
        pub reserved: [u8; 4] = 56,
        /// CRC-32 of all bytes before it.
        pub checksum: U32 = 60,
    }
}

//! The catalog of an archive (`archive.catalog`): a header, then entries.

use crate::declare::layout;
use crate::{I32, I64};

/// Entries begin at multiples of this many bytes after the catalog's header.
pub const ENTRY_ALIGNMENT: usize = 64;

layout! {
    /// Header of the file.
    pub struct CatalogHeaderLayout: 32 {
        /// Version of the layout.
        pub version: I32 = 0,
        /// Length of this header in bytes.
        pub length: I32 = 4,
        /// Id of the next recording; 0 if this field was never written.
        pub next_recording_id: I64 = 8,
        /// Alignment of the entries in bytes.
        pub alignment: I32 = 16,
        reserved: [u8; 12] = 20,
    }

    /// Header of an entry; the recording follows.
    pub struct EntryHeaderLayout: 32 {
        /// Number of bytes after this header, padding included; 0 ends the catalog.
        pub length: I32 = 0,
        /// 0: invalid, 1: valid, 2: deleted.
        pub state: I32 = 4,
        /// Checksum of the bytes after this header; 0 if the archive writes no checksums.
        pub checksum: I32 = 8,
        reserved: [u8; 20] = 12,
    }

    /// A recording; its three texts follow: stripped channel, original channel, source.
    pub struct RecordingLayout: 80 {
        /// Id of the control session whose request last extended the recording.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request that last extended the recording.
        pub correlation_id: I64 = 8,
        /// Id of the recording.
        pub recording_id: I64 = 16,
        /// Epoch milliseconds at which the recording began.
        pub start_timestamp_ms: I64 = 24,
        /// Epoch milliseconds at which the recording ended.
        pub stop_timestamp_ms: I64 = 32,
        /// Position of the first byte that is kept.
        pub start_position: I64 = 40,
        /// Position after the last byte.
        pub stop_position: I64 = 48,
        /// Id of the stream's first term.
        pub initial_term_id: I32 = 56,
        /// Length of a segment file in bytes.
        pub segment_length: I32 = 60,
        /// Length of the stream's terms in bytes.
        pub term_length: I32 = 64,
        /// Maximum length of a frame of the stream in bytes.
        pub mtu_length: I32 = 68,
        /// Session id of the stream.
        pub session_id: I32 = 72,
        /// Stream id.
        pub stream_id: I32 = 76,
    }
}

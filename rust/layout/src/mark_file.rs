//! The header of an archive's mark file. It consists of a [message header](crate::sbe::MessageHeaderLayout), the
//! block that is declared here, and texts of any length.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// Process and settings of the archive. The texts follow.
    pub struct MarkFileLayout: 128 {
        /// Version of the layout; 0 until the archive is ready.
        pub version: I32 = 0,
        reserved_after_version: [u8; 4] = 4,
        /// Epoch milliseconds of the last heartbeat.
        pub activity_timestamp_ms: I64 = 8,
        /// Epoch milliseconds of the archive's start.
        pub start_timestamp_ms: I64 = 16,
        /// Process id of the archive.
        pub pid: I64 = 24,
        /// Stream id of control requests over the network.
        pub control_stream_id: I32 = 32,
        /// Stream id of control requests on the same machine.
        pub local_control_stream_id: I32 = 36,
        /// Stream id of recording events.
        pub events_stream_id: I32 = 40,
        /// Number of bytes before the error log. Since version 1 of the schema.
        pub header_length: I32 = 44,
        /// Length of the error log in bytes. Since version 1 of the schema.
        pub error_buffer_length: I32 = 48,
        reserved_after_lengths: [u8; 4] = 52,
        /// Id of the archive. Since version 2 of the schema.
        pub archive_id: I64 = 56,
        reserved: [u8; 64] = 64,
    }
}

//! The ring buffer of commands and the broadcast buffer of events: records, and the trailers after the data.

use crate::declare::layout;
use crate::{I32, I64};

/// Records begin at multiples of this many bytes, in both buffers.
pub const RECORD_ALIGNMENT: usize = 8;

layout! {
    /// Header of a record, in both buffers; the payload follows.
    pub struct RecordHeaderLayout: 8 {
        /// Length with this header and without alignment. In the ring, 0 means that the record does not exist yet, and
        /// a negative length means that a producer is writing the record.
        pub length: I32 = 0,
        /// Type of the message, -1 for padding.
        pub msg_type_id: I32 = 4,
    }

    /// Trailer of the many-to-one ring. Fields of different writers are two cache lines apart.
    pub struct RingTrailerLayout: 768 {
        reserved_before_tail: [u8; 128] = 0,
        /// Number of bytes claimed since the ring was created.
        pub tail_position: I64 = 128,
        reserved_after_tail: [u8; 120] = 136,
        /// The head as last read by a producer.
        pub head_cache_position: I64 = 256,
        reserved_after_head_cache: [u8; 120] = 264,
        /// Number of bytes consumed since the ring was created.
        pub head_position: I64 = 384,
        reserved_after_head: [u8; 120] = 392,
        /// The next correlation id.
        pub correlation_counter: I64 = 512,
        reserved_after_correlation: [u8; 120] = 520,
        /// Time of the consumer's last heartbeat, in epoch milliseconds.
        pub consumer_heartbeat_ms: I64 = 640,
        reserved_after_heartbeat: [u8; 120] = 648,
    }

    /// Trailer of the broadcast buffer.
    pub struct BroadcastTrailerLayout: 128 {
        /// Position up to which the buffer is about to be overwritten.
        pub tail_intent: I64 = 0,
        /// Position after the newest record.
        pub tail: I64 = 8,
        /// Position of the newest record.
        pub latest: I64 = 16,
        reserved: [u8; 104] = 24,
    }
}

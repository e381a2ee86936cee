//! Measuring the time to the other side and back.

use super::layout::{At, Flag, fixed_frame};

fixed_frame! {
    /// A measurement of the round trip, or the answer to one. The round trip took the time that passed since
    /// `echo_timestamp_ns`, less `reception_delta_ns`.
    pub struct Rttm: 40 {
        /// Whether an answer is wanted.
        pub is_request: bool = Flag(0x80),
        /// Session of the stream.
        pub session_id: i32 = At(8),
        /// Stream.
        pub stream_id: i32 = At(12),
        /// The asking side's clock when it asked; the answer gives it back.
        pub echo_timestamp_ns: i64 = At(16),
        /// How long the answering side held the request.
        pub reception_delta_ns: i64 = At(24),
        /// The receiver that asks or is asked; 0 addresses any.
        pub receiver_id: i64 = At(32),
    }
}

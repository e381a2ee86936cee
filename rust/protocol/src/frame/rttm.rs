//! Measuring the time to the other side and back.

use aeron_layout::frame::RttmLayout;

use super::fixed::fixed_frame;

fixed_frame! {
    /// A measurement of the round trip, or the answer to one. The round trip took the time that passed since
    /// `echo_timestamp_ns`, less `reception_delta_ns`.
    pub struct Rttm(RttmLayout) {
        flags {
            /// Whether an answer is wanted.
            is_request = 0x80,
        }
        /// Session of the stream.
        pub session_id: i32,
        /// Stream.
        pub stream_id: i32,
        /// The asking side's clock when it asked; the answer gives it back.
        pub echo_timestamp_ns: i64,
        /// How long the answering side held the request.
        pub reception_delta_ns: i64,
        /// The receiver that asks or is asked; 0 addresses any.
        pub receiver_id: i64,
    }
}

//! RTTM frames: measure the round-trip time.

use aeron_layout::frame::RttmLayout;

use super::fixed::fixed_frame;

fixed_frame! {
    /// A measurement of the round-trip time, or the response to one. The round-trip time is the time since
    /// `echo_timestamp_ns`, minus `reception_delta_ns`.
    pub struct Rttm(RttmLayout) {
        flags {
            /// Whether the frame requests a response.
            is_request = 0x80,
        }
        /// Session id of the stream.
        pub session_id: i32,
        /// Stream id.
        pub stream_id: i32,
        /// Clock of the requesting side at the request; the response repeats it.
        pub echo_timestamp_ns: i64,
        /// Time for which the responding side held the request, in nanoseconds.
        pub reception_delta_ns: i64,
        /// Id of the receiver that sends the frame, or to which the frame is sent. 0 means all receivers.
        pub receiver_id: i64,
    }
}

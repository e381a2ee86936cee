//! RTTM frames: measurements of the round-trip time.

use aeron_layout::frame::RttmLayout;

use super::fixed::fixed_frame;

fixed_frame! {
    /// A measurement of the round-trip time, or the response to a measurement. The round-trip time is the time since
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
        /// Time of the request by the clock of the requesting side, in nanoseconds. The response repeats this time.
        pub echo_timestamp_ns: i64,
        /// Time between the receipt of the request and the response, in nanoseconds.
        pub reception_delta_ns: i64,
        /// Id of the receiver that sends or receives the frame. 0 means all receivers.
        pub receiver_id: i64,
    }
}

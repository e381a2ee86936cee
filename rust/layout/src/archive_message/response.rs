//! Blocks of an archive's responses. The block of a recording is [`RecordingLayout`](crate::catalog::RecordingLayout),
//! as in the catalog.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// Response to a request. Older archives send only the first 28 bytes.
    pub struct ControlResponseLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Result of a successful request, or number of the error.
        pub relevant_id: I64 = 16,
        /// Code of the result: success, or the kind of the error.
        pub code: I32 = 24,
        /// Semantic version of the protocol. Since version 4 of the schema.
        pub version: I32 = 28,
    }

    /// Challenge to a client; the bytes of the challenge follow.
    pub struct ChallengeLayout: 20 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Archives leave this field undefined.
        pub version: I32 = 16,
    }

    /// A recording subscription of the archive; the channel follows.
    pub struct RecordingSubscriptionLayout: 28 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Registration id of the archive's subscription.
        pub subscription_id: I64 = 16,
        /// Stream id.
        pub stream_id: I32 = 24,
    }

    /// A recording signal.
    pub struct RecordingSignalLayout: 44 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Registration id of the archive's subscription.
        pub subscription_id: I64 = 24,
        /// Position in the recording to which the signal refers.
        pub position: I64 = 32,
        /// Number of the recording signal.
        pub signal: I32 = 40,
    }
}

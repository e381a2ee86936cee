//! Messages that an archive only writes to its file of extensions and never sends.

use aeron_layout::archive_message::extension::{ClockNoteLayout, SubscriptionNoteLayout};

use super::super::codes::SourceLocation;
use super::super::declare::{archive_message, archive_message_set};

archive_message! {
    /// A recording subscription that was started or stopped. At its next start, an archive resumes the subscriptions
    /// that were not stopped.
    pub struct SubscriptionNote<'a>(SubscriptionNoteLayout) = 20_105 {
        /// Unused, 0.
        pub control_session_id: i64,
        /// Unused, 0.
        pub correlation_id: i64,
        /// Id of the recording that the subscription extends; -1 if each image becomes a new recording.
        pub recording_id: i64,
        /// Stream id.
        pub stream_id: i32,
        /// Location of the source.
        pub source_location: SourceLocation,
        /// Whether the subscription was stopped.
        pub is_removed: bool,
        data {
            /// Channel of the request.
            channel,
        }
    }
}

archive_message! {
    /// The state of the clock by which retention measures ages. An archive with policies or readers writes it from time
    /// to time.
    pub struct ClockNote(ClockNoteLayout) = 20_107 {
        /// Unused, 0.
        pub control_session_id: i64,
        /// Unused, 0.
        pub correlation_id: i64,
        /// Wall clock when the note was written, in milliseconds since the epoch.
        pub last_ms: i64,
        /// Time of running in milliseconds for which deletion by age still waits; 0 if it does not wait.
        pub remaining_ms: i64,
    }
}

archive_message_set! {
    /// A message that is only in an archive's file of extensions, and never sent.
    pub enum ExtensionNote {
        /// A recording subscription.
        Subscription(SubscriptionNote<'a>),
        /// The state of the clock.
        Clock(ClockNote),
    }
}

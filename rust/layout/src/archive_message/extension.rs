//! Blocks of the messages that this project adds to the archive's control protocol: named readers, retention, metadata,
//! positions by time, and replays at a rate. Aeron's archive ignores these messages.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// Creates a named reader of a recording, or stores the position of the reader; the name follows.
    pub struct CommitReaderLayout: 48 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Position up to which the reader has processed the recording.
        pub position: I64 = 24,
        /// Maximum time without a commit, in milliseconds. After this time the reader expires; -1 for no limit.
        pub max_age_ms: I64 = 32,
        /// Maximum number of bytes recorded after the reader's position. Above this number the reader expires; -1 for
        /// no limit.
        pub max_lag: I64 = 40,
    }

    /// A request for entries of a list of readers, retention policies or recordings; a name follows.
    pub struct ListByNameLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id, or -1 for all recordings.
        pub recording_id: I64 = 16,
        /// Index of the first entry.
        pub from_index: I32 = 24,
        /// Maximum number of entries.
        pub count: I32 = 28,
    }

    /// Sets or removes a retention policy; a text that the channel must contain follows.
    pub struct SetRetentionLayout: 48 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id, or -1 for all recordings that match stream and channel.
        pub recording_id: I64 = 16,
        /// Maximum number of bytes; -1 for no limit.
        pub max_bytes: I64 = 24,
        /// Maximum age in milliseconds; -1 for no limit.
        pub max_age_ms: I64 = 32,
        /// Whether only recordings of `stream_id` match.
        pub apply_stream_id: I32 = 40,
        /// Stream id.
        pub stream_id: I32 = 44,
    }

    /// Applies the retention policies, or reports what they would delete.
    pub struct ApplyRetentionLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id, or -1 for all recordings.
        pub recording_id: I64 = 16,
        /// Whether the archive only reports and deletes nothing.
        pub dry_run: I32 = 24,
        /// Whether the archive trusts the wall clock from now on.
        pub trust_clock: I32 = 28,
    }

    /// Finds a position by time.
    pub struct FindPositionLayout: 40 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Time in microseconds since the epoch.
        pub timestamp_us: I64 = 24,
        /// Kind of the position. 0: to read from this position, 1: to read up to this position.
        pub edge: I32 = 32,
        /// Unused, 0.
        pub reserved: I32 = 36,
    }

    /// Request for a replay at a rate; the channel follows.
    pub struct ReplayAtRateLayout: 72 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Position of the first frame.
        pub position: I64 = 24,
        /// Number of bytes to replay.
        pub length: I64 = 32,
        /// Token for a replay over a response channel.
        pub replay_token: I64 = 40,
        /// Maximum number of bytes for each second; -1 for no limit.
        pub max_bytes_per_second: I64 = 48,
        /// Speed in millionths of the recorded speed; -1 if the replay ignores the recorded speed.
        pub speed_millionths: I64 = 56,
        /// Stream id of the replay.
        pub replay_stream_id: I32 = 64,
        /// Maximum length of a read from a segment file in bytes.
        pub file_io_max_length: I32 = 68,
    }

    /// A named reader; the name follows.
    pub struct ReaderLayout: 56 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Committed position.
        pub position: I64 = 24,
        /// Time of the last commit in milliseconds since the epoch.
        pub committed_ms: I64 = 32,
        /// Maximum time without a commit, in milliseconds. After this time the reader expires; -1 for no limit.
        pub max_age_ms: I64 = 40,
        /// Maximum number of bytes recorded after the reader's position. Above this number the reader expires; -1 for
        /// no limit.
        pub max_lag: I64 = 48,
    }

    /// A retention policy; a text that the channel must contain follows.
    pub struct RetentionLayout: 48 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id, or -1 for all recordings that match stream and channel.
        pub recording_id: I64 = 16,
        /// Maximum number of bytes; -1 for no limit.
        pub max_bytes: I64 = 24,
        /// Maximum age in milliseconds; -1 for no limit.
        pub max_age_ms: I64 = 32,
        /// Whether only recordings of `stream_id` match.
        pub apply_stream_id: I32 = 40,
        /// Stream id.
        pub stream_id: I32 = 44,
    }

    /// A part of a recording that retention deletes or would delete; the name of a reader that prevents more deletion
    /// follows.
    pub struct RetentionStepLayout: 56 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Start position before the deletion.
        pub start_position: I64 = 24,
        /// Start position after the deletion.
        pub new_start_position: I64 = 32,
        /// Position up to which the policy allows deletion.
        pub allowed_position: I64 = 40,
        /// Whether the whole recording is deleted.
        pub is_purge: I32 = 48,
        /// Reason why data that the policy would delete is kept.
        pub held_by: I32 = 52,
    }

    /// Link from a recording to its predecessor; name and metadata of the recording follow.
    pub struct RecordingInfoLayout: 48 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Id of the recording that this recording continues; -1 if there is none.
        pub predecessor_id: I64 = 24,
        /// End position of the predecessor; -1 if there is none.
        pub gap_from: I64 = 32,
        /// Position in the stream of the predecessor at which this recording starts; -1 if unknown.
        pub gap_to: I64 = 40,
    }

    /// A recording subscription that the archive resumes at its next start; the channel follows.
    pub struct SubscriptionNoteLayout: 36 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the recording that the subscription extends; -1 for new recordings.
        pub recording_id: I64 = 16,
        /// Stream id.
        pub stream_id: I32 = 24,
        /// Location of the source.
        pub source_location: I32 = 28,
        /// Whether the subscription was stopped.
        pub is_removed: I32 = 32,
    }

    /// The state of the clock by which retention measures ages.
    pub struct ClockNoteLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Wall clock when the note was written, in milliseconds since the epoch.
        pub last_ms: I64 = 16,
        /// Time of running in milliseconds for which deletion by age still waits; 0 if it does not wait.
        pub remaining_ms: I64 = 24,
    }

    /// The part of a recording that is on the disk, and the part that is in object storage.
    pub struct CopiedRangeLayout: 48 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// First position that can be read.
        pub start_position: I64 = 24,
        /// Start position in the catalog.
        pub local_start_position: I64 = 32,
        /// Position up to which all segments have copies.
        pub copied_position: I64 = 40,
    }

    /// A position that was found by time.
    pub struct TimePositionLayout: 44 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// The position.
        pub position: I64 = 24,
        /// Arrival time at the position in microseconds since the epoch; -1 if unknown.
        pub timestamp_us: I64 = 32,
        /// Whether the position is approximate.
        pub is_approximate: I32 = 40,
    }
}

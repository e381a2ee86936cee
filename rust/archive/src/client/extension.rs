//! Descriptors in the responses to requests that this project adds to Aeron's protocol.

use aeron_protocol::archive::NULL_VALUE;
use aeron_protocol::archive::extension::ExtensionResponse;

use super::descriptor::text;
use crate::extensions::{
    NamedReader, RecordingLabels, RecordingLink, RetentionPolicy, RetentionScope,
};
use crate::objects::CopiedRange;
use crate::retention::RetentionOutcome;

/// Maximum time for the response to a request for capabilities, in nanoseconds. An archive that does not respond in
/// this time counts as an archive without capabilities.
pub(super) const CAPABILITIES_TIMEOUT_NS: i64 = 1_000_000_000;

/// A position that was found by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedPosition {
    /// Recording id.
    pub recording_id: i64,
    /// The position, at which a message begins.
    pub position: i64,
    /// Arrival time at the position in microseconds since the epoch, if it is known.
    pub timestamp_us: Option<i64>,
    /// Whether the position is approximate: the archive's index lacks the times, so a whole segment
    /// was taken as one unit.
    pub is_approximate: bool,
}

/// A range of time, in microseconds since the epoch. It contains the messages that arrived at or after `since_us` and
/// before `until_us`. [`TimeSearch`](crate::index::TimeSearch) has the exact rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// Begin of the range; `None` if the range begins at the position of the request or at the start of the recording.
    pub since_us: Option<i64>,
    /// End of the range; `None` if the length of the request determines the end.
    pub until_us: Option<i64>,
}

/// A recording with its name, metadata and link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedInfo {
    /// Recording id.
    pub recording_id: i64,
    /// Name, metadata and link.
    pub info: RecordingLabels,
}

/// Descriptors of one kind, and the index of the next descriptor in the archive's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionPage<D> {
    /// The descriptors.
    pub entries: Vec<D>,
    /// Index of the next entry; `None` after the last entry.
    pub next_index: Option<i32>,
}

/// Declares [`ExtensionDescriptor`], with a variant for each type of descriptor.
macro_rules! descriptors {
    ($($variant:ident($kind:ty),)+) => {
        /// A descriptor of any kind.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(super) enum ExtensionDescriptor {
            $($variant($kind),)+
        }

        $(impl OfDescriptor for $kind {
            fn select(descriptor: ExtensionDescriptor) -> Option<Self> {
                match descriptor {
                    ExtensionDescriptor::$variant(found) => Some(found),
                    _ => None,
                }
            }
        })+
    };
}

/// A type of descriptor.
pub(super) trait OfDescriptor: Sized {
    /// Returns the descriptor if it has this type.
    fn select(descriptor: ExtensionDescriptor) -> Option<Self>;
}

descriptors! {
    Reader(NamedReader),
    Retention(RetentionPolicy),
    RetentionOutcome(RetentionOutcome),
    Info(ListedInfo),
    TimedPosition(TimedPosition),
    CopiedRange(CopiedRange),
}

impl From<&ExtensionResponse<'_>> for ExtensionDescriptor {
    fn from(response: &ExtensionResponse<'_>) -> Self {
        match response {
            ExtensionResponse::Reader(reader) => Self::Reader(NamedReader {
                recording_id: reader.recording_id,
                name: text(reader.name),
                owner: Vec::new(),
                position: reader.position,
                committed_ms: reader.committed_ms,
                max_age_ms: set(reader.max_age_ms),
                max_lag: set(reader.max_lag),
            }),
            ExtensionResponse::Retention(policy) => Self::Retention(RetentionPolicy {
                scope: match set(policy.recording_id) {
                    Some(recording_id) => RetentionScope::Recording(recording_id),
                    None => RetentionScope::Matching {
                        stream_id: policy.apply_stream_id.then_some(policy.stream_id),
                        channel_fragment: text(policy.channel),
                    },
                },
                max_bytes: set(policy.max_bytes),
                max_age_ms: set(policy.max_age_ms),
            }),
            ExtensionResponse::RetentionStep(step) => Self::RetentionOutcome(RetentionOutcome {
                recording_id: step.recording_id,
                start_position: step.start_position,
                new_start_position: step.new_start_position,
                allowed_position: step.allowed_position,
                is_purge: step.is_purge,
                held_by: step.held_by,
                reader: text(step.reader),
            }),
            ExtensionResponse::RecordingInfo(info) => Self::Info(ListedInfo {
                recording_id: info.recording_id,
                info: RecordingLabels {
                    name: text(info.name),
                    metadata: info.metadata.to_vec(),
                    link: set(info.predecessor_id).map(|predecessor_id| RecordingLink {
                        predecessor_id,
                        gap_from: info.gap_from,
                        gap_to: set(info.gap_to),
                    }),
                },
            }),
            ExtensionResponse::CopiedRange(range) => Self::CopiedRange(CopiedRange {
                recording_id: range.recording_id,
                start_position: range.start_position,
                local_start_position: range.local_start_position,
                copied_position: range.copied_position,
            }),
            ExtensionResponse::TimePosition(found) => Self::TimedPosition(TimedPosition {
                recording_id: found.recording_id,
                position: found.position,
                timestamp_us: set(found.timestamp_us),
                is_approximate: found.is_approximate,
            }),
        }
    }
}

/// Returns an optional value of a message. In the message, -1 means that the value is not set.
fn set(value: i64) -> Option<i64> {
    (value != NULL_VALUE).then_some(value)
}

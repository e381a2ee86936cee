//! Chooses the retention policy of a recording.

use std::cmp::Reverse;

use crate::catalog::RecordingDescriptor;
use crate::extensions::{RetentionPolicy, RetentionScope};

/// Returns the policy of a recording; a recording has at most one.
///
/// The policy of the recording itself comes first. Otherwise it is the policy with the most specific match: one with a
/// stream id before one without, then the longest part of the channel, then the first in the order of `policies`.
pub fn policy_of<'a>(
    policies: impl IntoIterator<Item = &'a RetentionPolicy>,
    recording: &RecordingDescriptor,
) -> Option<&'a RetentionPolicy> {
    policies
        .into_iter()
        .enumerate()
        .filter_map(|(index, policy)| {
            Some((
                (specificity(&policy.scope, recording)?, Reverse(index)),
                policy,
            ))
        })
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, policy)| policy)
}

/// How specific a match is: of the recording itself, with a stream id, and the length of the part of the channel.
type Specificity = (bool, bool, usize);

/// Returns how specific a scope is for a recording; `None` if the recording is not in the scope.
fn specificity(scope: &RetentionScope, recording: &RecordingDescriptor) -> Option<Specificity> {
    match scope {
        RetentionScope::Recording(id) => {
            (*id == recording.recording_id).then_some((true, false, 0))
        }
        RetentionScope::Matching {
            stream_id,
            channel_fragment,
        } => {
            let is_in_scope = stream_id.is_none_or(|id| id == recording.stream_id)
                && recording
                    .original_channel
                    .contains(channel_fragment.as_str());
            is_in_scope.then_some((false, stream_id.is_some(), channel_fragment.len()))
        }
    }
}

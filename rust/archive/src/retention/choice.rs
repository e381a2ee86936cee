//! Chooses the retention policy of a recording.

use std::cmp::Reverse;

use crate::extensions::{RetentionPolicy, RetentionScope};

/// Returns the policy of a recording, given its id, stream id and original channel; a recording has at most one.
///
/// If a policy is for this one recording, that policy is returned. Otherwise, the matching policy
/// with the most specific scope is returned. A scope with a stream id is more specific than a scope
/// without a stream id. Among these, a longer `channel_fragment` is more specific. If several
/// policies are left, the first of `policies` is returned.
pub fn policy_of<'a>(
    policies: impl IntoIterator<Item = &'a RetentionPolicy>,
    recording_id: i64,
    stream_id: i32,
    original_channel: &str,
) -> Option<&'a RetentionPolicy> {
    let specificity = |scope| specificity(scope, recording_id, stream_id, original_channel);
    policies
        .into_iter()
        .enumerate()
        .filter_map(|(index, policy)| Some(((specificity(&policy.scope)?, Reverse(index)), policy)))
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, policy)| policy)
}

/// Order of scopes, compared from left to right: whether the scope is one recording, whether it has
/// a stream id, and the length of its `channel_fragment` in bytes.
type Specificity = (bool, bool, usize);

/// Returns how specific a scope is for a recording; `None` if the recording is not in the scope.
fn specificity(
    scope: &RetentionScope,
    recording_id: i64,
    recorded_stream_id: i32,
    original_channel: &str,
) -> Option<Specificity> {
    match scope {
        RetentionScope::Recording(id) => (*id == recording_id).then_some((true, false, 0)),
        RetentionScope::Matching {
            stream_id,
            channel_fragment,
        } => {
            let is_in_scope = stream_id.is_none_or(|id| id == recorded_stream_id)
                && original_channel.contains(channel_fragment.as_str());
            is_in_scope.then_some((false, stream_id.is_some(), channel_fragment.len()))
        }
    }
}

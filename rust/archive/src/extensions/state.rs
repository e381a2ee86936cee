//! [`ExtensionState`]: readers, policies, infos, subscriptions and segment deletions in memory. [`ExtensionChange`]: a
//! change of the state.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use aeron_protocol::archive::SourceLocation;

/// A reader of a recording. The archive stores the position of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedReader {
    /// Recording id.
    pub recording_id: i64,
    /// Name of the reader, unique for the recording.
    pub name: String,
    /// Principal of the user who created the reader. Empty if the archive has no users, or for a client.
    pub owner: Vec<u8>,
    /// Position up to which the reader has processed the recording.
    pub position: i64,
    /// Time of the last commit in milliseconds since the epoch.
    pub committed_ms: i64,
    /// Time without a commit after which the reader expires, in milliseconds; `None` for no limit.
    pub max_age_ms: Option<i64>,
    /// Number of bytes: if more bytes are recorded after the reader's position, the reader expires.
    /// `None` for no limit.
    pub max_lag: Option<i64>,
}

/// The recordings of a retention policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetentionScope {
    /// One recording.
    Recording(i64),
    /// All recordings with this stream id and a channel that contains the text.
    Matching {
        /// Stream id; `None` for all streams.
        stream_id: Option<i32>,
        /// Part of the original channel; empty for all channels.
        channel_fragment: String,
    },
}

/// Limits for the recordings of a scope. A policy without limits removes the policy of its scope, and is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// The recordings to which the limits apply.
    pub scope: RetentionScope,
    /// Maximum number of bytes of all recordings of the scope together.
    pub max_bytes: Option<i64>,
    /// Maximum age of a segment or a stopped recording, in milliseconds.
    pub max_age_ms: Option<i64>,
}

/// Name, metadata and link of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingLabels {
    /// Name, unique in the archive; may be empty.
    pub name: String,
    /// Metadata: any bytes, may be empty.
    pub metadata: Vec<u8>,
    /// Link to the recording that this recording continues.
    pub link: Option<RecordingLink>,
}

/// Link from a recording to an earlier recording of the same stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLink {
    /// The earlier recording.
    pub predecessor_id: i64,
    /// Position at which the earlier recording ends.
    pub gap_from: i64,
    /// Position at which this recording begins, if both recordings are of the same session.
    pub gap_to: Option<i64>,
}

/// A recording subscription that the archive resumes at its next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumableSubscription {
    /// Channel of the request.
    pub channel: String,
    /// Stream id.
    pub stream_id: i32,
    /// Location of the source.
    pub source_location: SourceLocation,
    /// Recording that the subscription extends; `None` if each image becomes a new recording.
    pub recording_id: Option<i64>,
}

/// A change of readers, policies, infos, subscriptions or segment deletions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionChange {
    /// A reader was created, or has stored its position.
    Reader(NamedReader),
    /// A reader was removed.
    ReaderRemoved {
        /// Recording id.
        recording_id: i64,
        /// Name of the reader.
        name: String,
    },
    /// A policy was set. If the policy has no limits, the policy with this scope was removed.
    Policy(RetentionPolicy),
    /// Name, metadata and link of a recording were replaced. If all new values are empty, the old
    /// values were removed.
    Info {
        /// Recording id.
        recording_id: i64,
        /// The new values.
        info: RecordingLabels,
    },
    /// A recording subscription was added.
    Subscription(ResumableSubscription),
    /// A recording subscription was stopped.
    SubscriptionStopped {
        /// Channel of the request.
        channel: String,
        /// Stream id.
        stream_id: i32,
    },
    /// The archive begins to delete these segments without a request. An empty range means that the deletion has ended.
    Deleting {
        /// Recording id.
        recording_id: i64,
        /// The segments.
        deletion: SegmentDeletion,
    },
    /// The state of the clock was stored.
    Clock(ClockState),
}

/// The state of the clock by which retention measures ages, for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// Wall clock when the state was stored, in milliseconds since the epoch.
    pub last_ms: i64,
    /// Time of running in milliseconds for which deletion by age still waits; 0 if it does not wait.
    pub remaining_ms: i64,
}

/// Segments that the archive deletes without a request of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentDeletion {
    /// Bases of the segments, as a range.
    pub range: Range<i64>,
    /// Whether the indexes of the segments stay, because the segments can be read back from object storage.
    pub keeps_indexes: bool,
}

/// Readers, policies, infos, subscriptions and segment deletions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExtensionState {
    pub(super) readers: BTreeMap<(i64, String), NamedReader>,
    pub(super) policies: BTreeMap<RetentionScope, RetentionPolicy>,
    pub(super) infos: BTreeMap<i64, RecordingLabels>,
    /// Subscriptions by stream and channel.
    pub(super) subscriptions: BTreeMap<(i32, String), ResumableSubscription>,
    /// Segments that are being deleted, by recording.
    pub(super) deletions: BTreeMap<i64, SegmentDeletion>,
    pub(super) clock: Option<ClockState>,
}

impl RetentionPolicy {
    /// Returns the policy that removes this one.
    #[must_use]
    pub fn without_limits(self) -> Self {
        Self {
            max_bytes: None,
            max_age_ms: None,
            ..self
        }
    }

    /// Returns whether the policy has no limit.
    pub const fn is_empty(&self) -> bool {
        self.max_bytes.is_none() && self.max_age_ms.is_none()
    }
}

impl RecordingLabels {
    /// Returns whether the recording has neither name nor metadata nor link.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ExtensionState {
    pub(super) fn apply(&mut self, change: ExtensionChange) {
        match change {
            ExtensionChange::Reader(reader) => {
                let key = (reader.recording_id, reader.name.clone());
                self.readers.insert(key, reader);
            }
            ExtensionChange::ReaderRemoved { recording_id, name } => {
                self.readers.remove(&(recording_id, name));
            }
            ExtensionChange::Policy(policy) if policy.is_empty() => {
                self.policies.remove(&policy.scope);
            }
            ExtensionChange::Policy(policy) => {
                self.policies.insert(policy.scope.clone(), policy);
            }
            ExtensionChange::Info { recording_id, info } if info.is_empty() => {
                self.infos.remove(&recording_id);
            }
            ExtensionChange::Info { recording_id, info } => {
                self.infos.insert(recording_id, info);
            }
            ExtensionChange::Subscription(subscription) => {
                let key = (subscription.stream_id, subscription.channel.clone());
                self.subscriptions.insert(key, subscription);
            }
            ExtensionChange::SubscriptionStopped { channel, stream_id } => {
                self.subscriptions.remove(&(stream_id, channel));
            }
            ExtensionChange::Deleting {
                recording_id,
                deletion,
            } if deletion.range.is_empty() => {
                self.deletions.remove(&recording_id);
            }
            ExtensionChange::Deleting {
                recording_id,
                deletion,
            } => {
                self.deletions.insert(recording_id, deletion);
            }
            ExtensionChange::Clock(clock) => self.clock = Some(clock),
        }
    }

    /// Returns changes that lead from the empty state to this state.
    pub(super) fn changes(&self) -> Vec<ExtensionChange> {
        let readers = self.readers.values().cloned().map(ExtensionChange::Reader);
        let policies = self.policies.values().cloned().map(ExtensionChange::Policy);
        let infos = self.infos.iter().map(|(id, info)| ExtensionChange::Info {
            recording_id: *id,
            info: info.clone(),
        });
        let subscriptions = self.subscriptions.values().cloned();
        let subscriptions = subscriptions.map(ExtensionChange::Subscription);
        let deletions = self.deletions.iter();
        let deletions = deletions.map(|(id, deletion)| ExtensionChange::Deleting {
            recording_id: *id,
            deletion: deletion.clone(),
        });
        readers
            .chain(policies)
            .chain(infos)
            .chain(subscriptions)
            .chain(deletions)
            .chain(self.clock.map(ExtensionChange::Clock))
            .collect()
    }

    /// Returns changes that remove the readers, the policy, the labels and the segment deletion of a recording. Links
    /// from other recordings to this recording stay, because they show where the other recordings came from.
    pub(super) fn changes_to_forget(&self, recording_id: i64) -> Vec<ExtensionChange> {
        let readers = self.readers.keys().filter(|(id, _)| *id == recording_id);
        let mut changes: Vec<_> = readers
            .map(|(_, name)| ExtensionChange::ReaderRemoved {
                recording_id,
                name: name.clone(),
            })
            .collect();
        let scope = RetentionScope::Recording(recording_id);
        if self.policies.contains_key(&scope) {
            changes.push(ExtensionChange::Policy(RetentionPolicy {
                scope,
                max_bytes: None,
                max_age_ms: None,
            }));
        }
        if self.infos.contains_key(&recording_id) {
            let info = RecordingLabels::default();
            changes.push(ExtensionChange::Info { recording_id, info });
        }
        if self.deletions.contains_key(&recording_id) {
            changes.push(ExtensionChange::Deleting {
                recording_id,
                deletion: SegmentDeletion::default(),
            });
        }
        changes
    }

    /// Returns the ids of recordings that have data in the state.
    pub(super) fn recording_ids(&self) -> impl Iterator<Item = i64> {
        let readers = self.readers.keys().map(|(id, _)| *id);
        let policies = self.policies.keys().filter_map(|scope| match scope {
            RetentionScope::Recording(id) => Some(*id),
            RetentionScope::Matching { .. } => None,
        });
        let ids: BTreeSet<i64> = readers
            .chain(policies)
            .chain(self.infos.keys().copied())
            .chain(self.deletions.keys().copied())
            .collect();
        ids.into_iter()
    }
}

//! Objects that describe named readers, retention policies, and names and metadata of recordings.

use aeron_archive::client::ListedInfo;
use aeron_archive::extensions::{NamedReader, RetentionPolicy, RetentionScope};
use aeron_archive::objects::CopiedRange;
use aeron_archive::retention::{RetentionOutcome, policy_of};
use aeron_protocol::archive::RetentionHolder;
use pyo3::prelude::*;

use super::recording::PyRecording;
use crate::snapshot::{Octets, snapshot};

snapshot! {
    /// A reader of a recording that stores its position in the archive.
    ///
    /// Immutable. Comparison and pickling use the values.
    PyNamedReader("NamedReader") {
        /// Id of the recording.
        recording_id: i64,
        /// Name, unique for the recording.
        name: String,
        /// Position up to which the reader has processed the recording, in bytes.
        position: i64,
        /// Time of the last commit, in milliseconds since the epoch.
        committed_timestamp_ms: i64,
        /// Milliseconds without a commit after which the reader expires; `None` if there is no limit.
        max_age_ms: Option<i64>,
        /// Maximum number of bytes recorded after the position. With more bytes, the reader expires. `None` if there is
        /// no limit.
        max_lag_bytes: Option<i64>,
    }

    fn __repr__(&self) -> String {
        format!(
            "NamedReader(recording_id={}, name={:?}, position={})",
            self.recording_id, self.name, self.position,
        )
    }
}

snapshot! {
    /// Limits for one recording, or for all recordings that match. Immutable. Comparison and pickling use the values.
    PyRetentionPolicy("RetentionPolicy") {
        /// Id of the recording; `None` if the policy is for all recordings that match.
        recording_id: Option<i64>,
        /// Stream id of the recordings; `None` if all streams match.
        stream_id: Option<i32>,
        /// Text that the original channel of the recordings contains; `None` if all channels match.
        channel: Option<String>,
        /// Maximum number of bytes of all recordings of the policy together; `None` if there is no limit.
        max_bytes: Option<i64>,
        /// Maximum age of the data in milliseconds; `None` if there is no limit.
        max_age_ms: Option<i64>,
    }

    fn __repr__(&self) -> String {
        format!(
            "RetentionPolicy(recording_id={}, stream_id={}, channel={}, max_bytes={}, max_age_ms={})",
            shown(self.recording_id),
            shown(self.stream_id),
            self.channel.as_ref().map_or_else(|| "None".to_owned(), |channel| format!("{channel:?}")),
            shown(self.max_bytes),
            shown(self.max_age_ms),
        )
    }
}

snapshot! {
    /// A part of a recording that retention has deleted, or would delete.
    ///
    /// Immutable. Comparison and pickling use the values. Positions are in bytes.
    PyRetentionOutcome("RetentionOutcome") {
        /// Id of the recording.
        recording_id: i64,
        /// Start position before the deletion.
        start_position: i64,
        /// Start position after the deletion; the stop position if the whole recording is deleted.
        new_start_position: i64,
        /// Start position after the deletion if nothing held back data. `held_by` lists the possible reasons.
        allowed_position: i64,
        /// Whether the whole recording is deleted.
        is_purge: bool,
        /// The reason why data stays that the policy would delete: `READER`, `REPLAY`, `CHANGE`, `COPY` or `CLOCK`.
        /// `CHANGE`: a deletion, a migration, a start or an extension of the recording is in progress. `COPY`: a
        /// segment has no copy in object storage yet. `CLOCK`: the wall clock is not trusted. `None` if no such data
        /// stays.
        held_by: Option<String>,
        /// Name of the reader, if a reader keeps data; otherwise `None`.
        reader: Option<String>,
    }

    fn __repr__(&self) -> String {
        format!(
            "RetentionOutcome(recording_id={}, start_position={}, new_start_position={}, is_purge={}, held_by={})",
            self.recording_id,
            self.start_position,
            self.new_start_position,
            if self.is_purge { "True" } else { "False" },
            self.held_by.as_ref().map_or_else(|| "None".to_owned(), |held_by| format!("{held_by:?}")),
        )
    }
}

snapshot! {
    /// Name, metadata and link of a recording. Immutable. Comparison and pickling use the values.
    PyRecordingInfo("RecordingInfo") {
        /// Id of the recording.
        recording_id: i64,
        /// Name, unique in the archive; empty if the recording has no name.
        name: String,
        /// Metadata; empty if the recording has no metadata.
        metadata: Octets,
        /// Id of the earlier recording of the same stream that this recording continues; `None` if there is none.
        predecessor_id: Option<i64>,
        /// Position at which the earlier recording ends, in bytes; `None` if there is no earlier recording.
        gap_from: Option<i64>,
        /// Position at which this recording begins, in bytes; `None` if there is no earlier recording, or if the
        /// earlier recording is of another session.
        gap_to: Option<i64>,
    }

    fn __repr__(&self) -> String {
        format!(
            "RecordingInfo(recording_id={}, name={:?}, metadata of {} bytes)",
            self.recording_id, self.name, self.metadata.0.len(),
        )
    }
}

snapshot! {
    /// The parts of a recording that are on the archive's disk and in object storage.
    ///
    /// Immutable; pickled and compared by its values. Positions are in bytes.
    PyCopiedRange("CopiedRange") {
        /// Id of the recording.
        recording_id: i64,
        /// First position that can be replayed. It is in object storage, if it is before the local start position.
        start_position: i64,
        /// First position on the disk: the start position in the catalog.
        local_start_position: i64,
        /// Position up to which all segments have verified copies, from the start position on.
        copied_position: i64,
    }

    fn __repr__(&self) -> String {
        format!(
            "CopiedRange(recording_id={}, start_position={}, local_start_position={}, copied_position={})",
            self.recording_id, self.start_position, self.local_start_position, self.copied_position,
        )
    }
}

impl From<CopiedRange> for PyCopiedRange {
    fn from(range: CopiedRange) -> Self {
        Self {
            recording_id: range.recording_id,
            start_position: range.start_position,
            local_start_position: range.local_start_position,
            copied_position: range.copied_position,
        }
    }
}

impl From<NamedReader> for PyNamedReader {
    fn from(reader: NamedReader) -> Self {
        Self {
            recording_id: reader.recording_id,
            name: reader.name,
            position: reader.position,
            committed_timestamp_ms: reader.committed_ms,
            max_age_ms: reader.max_age_ms,
            max_lag_bytes: reader.max_lag,
        }
    }
}

impl PyRetentionPolicy {
    fn to_policy(&self) -> RetentionPolicy {
        let scope = match self.recording_id {
            Some(recording_id) => RetentionScope::Recording(recording_id),
            None => RetentionScope::Matching {
                stream_id: self.stream_id,
                channel_fragment: self.channel.clone().unwrap_or_default(),
            },
        };
        RetentionPolicy {
            scope,
            max_bytes: self.max_bytes,
            max_age_ms: self.max_age_ms,
        }
    }
}

/// Returns the policy that an archive applies to a recording, or `None`.
#[pyfunction]
pub fn _policy_of(
    policies: Vec<PyRef<'_, PyRetentionPolicy>>,
    recording: PyRef<'_, PyRecording>,
) -> Option<PyRetentionPolicy> {
    let policies: Vec<_> = policies.iter().map(|policy| policy.to_policy()).collect();
    let (id, channel) = (recording.recording_id, &recording.original_channel);
    policy_of(&policies, id, recording.stream_id, channel).map(|policy| policy.clone().into())
}

impl From<RetentionPolicy> for PyRetentionPolicy {
    fn from(policy: RetentionPolicy) -> Self {
        let (recording_id, stream_id, channel) = match policy.scope {
            RetentionScope::Recording(recording_id) => (Some(recording_id), None, None),
            RetentionScope::Matching {
                stream_id,
                channel_fragment,
            } => {
                let channel = (!channel_fragment.is_empty()).then_some(channel_fragment);
                (None, stream_id, channel)
            }
        };
        Self {
            recording_id,
            stream_id,
            channel,
            max_bytes: policy.max_bytes,
            max_age_ms: policy.max_age_ms,
        }
    }
}

impl From<RetentionOutcome> for PyRetentionOutcome {
    fn from(outcome: RetentionOutcome) -> Self {
        let held_by = match outcome.held_by {
            RetentionHolder::Nothing => None,
            RetentionHolder::Reader => Some("READER"),
            RetentionHolder::Replay => Some("REPLAY"),
            RetentionHolder::Change => Some("CHANGE"),
            RetentionHolder::Copy => Some("COPY"),
            RetentionHolder::Clock => Some("CLOCK"),
        };
        Self {
            recording_id: outcome.recording_id,
            start_position: outcome.start_position,
            new_start_position: outcome.new_start_position,
            allowed_position: outcome.allowed_position,
            is_purge: outcome.is_purge,
            held_by: held_by.map(str::to_owned),
            reader: (outcome.held_by == RetentionHolder::Reader).then_some(outcome.reader),
        }
    }
}

impl From<ListedInfo> for PyRecordingInfo {
    fn from(listed: ListedInfo) -> Self {
        let link = listed.info.link;
        Self {
            recording_id: listed.recording_id,
            name: listed.info.name,
            metadata: Octets(listed.info.metadata),
            predecessor_id: link.map(|link| link.predecessor_id),
            gap_from: link.map(|link| link.gap_from),
            gap_to: link.and_then(|link| link.gap_to),
        }
    }
}

/// Returns a number as Python prints it; `None` if there is no number.
fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| value.to_string())
}

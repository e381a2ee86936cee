//! Objects that describe recordings: `Recording`, `RecordingSubscription` and `RecordingSignal`. [`Source`]: the source
//! of a recorded stream.

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::RecordingSubscription;
use aeron_protocol::archive::{NULL_VALUE, RecordingSignal, RecordingSignalEvent, SourceLocation};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::argument::{Argument, wrong_type};
use crate::snapshot::snapshot;

/// The source of a stream to record: `LOCAL` or `REMOTE`.
pub struct Source(pub SourceLocation);

impl Argument for Source {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let text = value.cast::<PyString>().ok();
        match text
            .map(|text| text.to_string_lossy().to_uppercase())
            .as_deref()
        {
            Some("LOCAL") => Ok(Self(SourceLocation::Local)),
            Some("REMOTE") => Ok(Self(SourceLocation::Remote)),
            _ => Err(wrong_type(value, name, "\"LOCAL\" or \"REMOTE\"")),
        }
    }
}

snapshot! {
    /// An archive's description of a recording.
    ///
    /// Positions are in bytes. Immutable. Comparison and pickling use the values.
    PyRecording("Recording") {
        /// Id of the recording in its archive.
        recording_id: i64,
        /// Position of the first byte of the recording.
        start_position: i64,
        /// Position after the last byte; `None` if the recording is active.
        stop_position: Option<i64>,
        /// Start of the recording, in milliseconds since the epoch.
        start_timestamp_ms: i64,
        /// End of the recording, in milliseconds since the epoch; `None` if the recording is active.
        stop_timestamp_ms: Option<i64>,
        /// Session id of the stream.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
        /// Channel, without the parameters that do not identify the stream.
        stripped_channel: String,
        /// Channel in the request that started the recording.
        original_channel: String,
        /// Source of the image: `aeron:ipc`, or the address and port of the sender.
        source_identity: String,
        /// Id of the stream's first term.
        initial_term_id: i32,
        /// Length of a term, in bytes.
        term_buffer_length: i32,
        /// Length of a segment file, in bytes.
        segment_file_length: i32,
        /// Maximum length of a frame, in bytes.
        mtu_length: i32,
    }

    /// Whether the recording was active when the archive described it.
    #[getter]
    fn is_active(&self) -> bool {
        self.stop_position.is_none()
    }

    fn __repr__(&self) -> String {
        let stop = self.stop_position.map_or_else(|| "None".to_owned(), |stop| stop.to_string());
        format!(
            "Recording(recording_id={}, start_position={}, stop_position={stop}, channel={:?}, stream_id={}, session_id={})",
            self.recording_id, self.start_position, self.original_channel, self.stream_id, self.session_id,
        )
    }
}

snapshot! {
    /// An archive's subscription to streams that it records. Immutable. Comparison and pickling use the values.
    PyRecordingSubscription("RecordingSubscription") {
        /// Id of the subscription. `AeronArchive.stop_recording` accepts it.
        subscription_id: i64,
        /// Stream id.
        stream_id: i32,
        /// Channel of the subscription; it has the prefix `aeron-spy:` if the subscription is a spy.
        stripped_channel: String,
    }

    fn __repr__(&self) -> String {
        format!(
            "RecordingSubscription(subscription_id={}, stream_id={}, stripped_channel={:?})",
            self.subscription_id, self.stream_id, self.stripped_channel,
        )
    }
}

snapshot! {
    /// An event of a recording. Immutable. Comparison and pickling use the values.
    PyRecordingSignal("RecordingSignal") {
        /// `START`, `STOP`, `EXTEND`, `REPLICATE`, `MERGE`, `SYNC`, `DELETE` or `REPLICATE_END`.
        signal: String,
        /// Id of the recording; -1 if a replication ended before it had a recording.
        recording_id: i64,
        /// Id of the archive's subscription; -1 if the signal belongs to no subscription.
        subscription_id: i64,
        /// Position of the recording, in bytes; -1 with `DELETE` and `REPLICATE_END`.
        position: i64,
        /// Correlation id of the request, or the id of the replication.
        correlation_id: i64,
    }

    fn __repr__(&self) -> String {
        format!(
            "RecordingSignal(signal={:?}, recording_id={}, position={})",
            self.signal, self.recording_id, self.position,
        )
    }
}

impl From<RecordingDescriptor> for PyRecording {
    fn from(descriptor: RecordingDescriptor) -> Self {
        let if_set = |value| (value != NULL_VALUE).then_some(value);
        Self {
            recording_id: descriptor.recording_id,
            start_position: descriptor.start_position,
            stop_position: if_set(descriptor.stop_position),
            start_timestamp_ms: descriptor.start_timestamp_ms,
            stop_timestamp_ms: if_set(descriptor.stop_timestamp_ms),
            session_id: descriptor.session_id,
            stream_id: descriptor.stream_id,
            stripped_channel: descriptor.stripped_channel.as_ref().into(),
            original_channel: descriptor.original_channel.as_ref().into(),
            source_identity: descriptor.source_identity.as_ref().into(),
            initial_term_id: descriptor.initial_term_id,
            term_buffer_length: descriptor.term_length,
            segment_file_length: descriptor.segment_length,
            mtu_length: descriptor.mtu_length,
        }
    }
}

impl From<RecordingSubscription> for PyRecordingSubscription {
    fn from(subscription: RecordingSubscription) -> Self {
        Self {
            subscription_id: subscription.subscription_id,
            stream_id: subscription.stream_id,
            stripped_channel: subscription.stripped_channel,
        }
    }
}

impl From<&RecordingSignalEvent> for PyRecordingSignal {
    fn from(event: &RecordingSignalEvent) -> Self {
        let signal = match event.signal {
            RecordingSignal::Start => "START",
            RecordingSignal::Stop => "STOP",
            RecordingSignal::Extend => "EXTEND",
            RecordingSignal::Replicate => "REPLICATE",
            RecordingSignal::Merge => "MERGE",
            RecordingSignal::Sync => "SYNC",
            RecordingSignal::Delete => "DELETE",
            RecordingSignal::ReplicateEnd => "REPLICATE_END",
        };
        Self {
            signal: signal.to_owned(),
            recording_id: event.recording_id,
            subscription_id: event.subscription_id,
            position: event.position,
            correlation_id: event.correlation_id,
        }
    }
}

//! [`RecordedPublisherStatus`]: the state of a recorded publisher. Any thread can read it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::error::RecordedPublisherError;
use super::kept::KeptMessages;

/// Value of an id or position that is not known yet.
const UNKNOWN: i64 = -1;

/// The state of a recorded publisher as of its last call. Clones share one status. Any thread and
/// the listener may use it.
#[derive(Clone, Debug)]
pub struct RecordedPublisherStatus {
    shared: Arc<SharedPublisherStatus>,
}

#[derive(Debug)]
struct SharedPublisherStatus {
    recording_id: AtomicI64,
    position: AtomicI64,
    recorded_position: AtomicI64,
    kept_messages: AtomicUsize,
    kept_bytes: AtomicUsize,
    reconnects: AtomicU64,
    offered_again: AtomicU64,
    is_recording: AtomicBool,
    failure: OnceLock<RecordedPublisherError>,
    is_closed: AtomicBool,
}

/// The messages of a recorded publisher that are not known to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecorded {
    /// Number of messages.
    pub messages: usize,
    /// Number of bytes of these messages.
    pub bytes: usize,
}

impl RecordedPublisherStatus {
    pub(super) fn new() -> Self {
        let shared = SharedPublisherStatus {
            recording_id: AtomicI64::new(UNKNOWN),
            position: AtomicI64::new(UNKNOWN),
            recorded_position: AtomicI64::new(UNKNOWN),
            kept_messages: AtomicUsize::new(0),
            kept_bytes: AtomicUsize::new(0),
            reconnects: AtomicU64::new(0),
            offered_again: AtomicU64::new(0),
            is_recording: AtomicBool::new(false),
            failure: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the recording id. Returns `None` until the recording is found or started.
    #[must_use]
    pub fn recording_id(&self) -> Option<i64> {
        known(&self.shared.recording_id)
    }

    /// Returns the stream position after the last accepted message. Returns `None` until the
    /// recording is found or started.
    #[must_use]
    pub fn position(&self) -> Option<i64> {
        known(&self.shared.position)
    }

    /// Returns the stream position up to which the messages are recorded. Returns `None` until the recording is found
    /// or started.
    #[must_use]
    pub fn recorded_position(&self) -> Option<i64> {
        known(&self.shared.recorded_position)
    }

    /// Returns the number of messages and bytes that are not known to be recorded.
    #[must_use]
    pub fn unrecorded(&self) -> Unrecorded {
        Unrecorded {
            messages: self.shared.kept_messages.load(Ordering::Acquire),
            bytes: self.shared.kept_bytes.load(Ordering::Acquire),
        }
    }

    /// Returns the number of times that the recording was extended after a loss.
    #[must_use]
    pub fn reconnects(&self) -> u64 {
        self.shared.reconnects.load(Ordering::Acquire)
    }

    /// Returns the number of messages that were sent again after a loss. A message counts each time
    /// that it is sent again.
    #[must_use]
    pub fn offered_again(&self) -> u64 {
        self.shared.offered_again.load(Ordering::Acquire)
    }

    /// Returns whether the archive records a stream of the publisher, as of the publisher's last
    /// call.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.shared.is_recording.load(Ordering::Acquire)
    }

    /// Returns the error with which the publisher has ended. Returns `None` if it has not failed.
    #[must_use]
    pub fn failure(&self) -> Option<&RecordedPublisherError> {
        self.shared.failure.get()
    }

    /// Returns whether the publisher is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    pub(super) fn set_recording_id(&self, recording_id: i64) {
        self.shared
            .recording_id
            .store(recording_id, Ordering::Release);
    }

    /// Copies the positions and the number of messages into the status.
    #[inline]
    pub(super) fn show(&self, kept: &KeptMessages) {
        let shared = &self.shared;
        shared
            .position
            .store(kept.end_position(), Ordering::Release);
        shared
            .recorded_position
            .store(kept.recorded_position(), Ordering::Release);
        shared.kept_messages.store(kept.count(), Ordering::Release);
        shared
            .kept_bytes
            .store(kept.payload_bytes(), Ordering::Release);
    }

    pub(super) fn set_is_recording(&self, is_recording: bool) {
        self.shared
            .is_recording
            .store(is_recording, Ordering::Release);
    }

    pub(super) fn count_reconnect(&self) {
        self.shared.reconnects.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn count_offered_again(&self, messages: u64) {
        self.shared
            .offered_again
            .fetch_add(messages, Ordering::AcqRel);
    }

    /// Stores the error if it is the first error.
    pub(super) fn set_failure(&self, error: RecordedPublisherError) {
        let _ = self.shared.failure.set(error);
    }

    pub(super) fn set_closed(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
    }
}

fn known(value: &AtomicI64) -> Option<i64> {
    let value = value.load(Ordering::Acquire);
    (value != UNKNOWN).then_some(value)
}

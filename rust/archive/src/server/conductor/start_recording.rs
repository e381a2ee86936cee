//! Starts and extends recordings. If the file system has too little space, the request waits until retention has made
//! room.

use aeron_protocol::archive::RequestIds;

use super::{ArchiveConductor, Caller, Later};
use crate::server::ArchiveError;
use crate::server::recording::RecordingRequest;
use crate::storage::Storage;

/// Maximum number of requests that wait for room. Further requests are executed at once.
const MAX_HELD: usize = 64;

/// A request that waits for room.
#[derive(Debug)]
pub(super) struct HeldRecording {
    request: RecordingRequest,
    /// The recording to be extended; `None` for a new recording.
    recording_id: Option<i64>,
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Subscribes to a stream and records each of its images. The reply is the registration id, when the driver has
    /// added the subscription. The catalog gets an entry when an image arrives, in `recordings/begin.rs`.
    ///
    /// # Errors
    /// See [`Recordings::start`](crate::server::recording::Recordings::start).
    pub(super) fn start_recording(
        &mut self,
        caller: &Caller<'_>,
        request: RecordingRequest,
    ) -> Result<Later, ArchiveError> {
        self.record(caller.ids, request, None)
    }

    /// Subscribes to a stream and extends a recording by its image. Replies like
    /// [`start_recording`](Self::start_recording).
    ///
    /// # Errors
    /// See [`Recordings::extend`](crate::server::recording::Recordings::extend).
    pub(super) fn extend_recording(
        &mut self,
        caller: &Caller<'_>,
        recording_id: i64,
        request: RecordingRequest,
    ) -> Result<Later, ArchiveError> {
        self.record(caller.ids, request, Some(recording_id))
    }

    fn record(
        &mut self,
        requester: RequestIds,
        request: RecordingRequest,
        recording_id: Option<i64>,
    ) -> Result<Later, ArchiveError> {
        let now_ns = self.now_ns();
        let may_hold = self.held_recordings.count() < MAX_HELD;
        if may_hold && self.retention.is_making_room(&self.store, now_ns) {
            let held = HeldRecording {
                request,
                recording_id,
            };
            self.held_recordings.hold(requester, held);
            return Ok(Later);
        }
        self.record_now(requester, &request, recording_id)
    }

    fn record_now(
        &mut self,
        requester: RequestIds,
        request: &RecordingRequest,
        recording_id: Option<i64>,
    ) -> Result<Later, ArchiveError> {
        let (aeron, store) = (&self.aeron, &self.store);
        match recording_id {
            None => self.recordings.start(aeron, store, requester, request)?,
            Some(id) => {
                self.recordings
                    .extend(aeron, store, id, requester, request)?;
            }
        }
        Ok(Later)
    }

    /// Starts the waiting recordings when the round for them has ended and its files are deleted. Returns the number of
    /// waiting requests, including requests that are refused now.
    pub(super) fn start_held_recordings(&mut self) -> usize {
        let has_deleted = self.deletions.is_empty();
        if self.retention.is_room_pending(has_deleted, self.now_ns()) {
            return 0;
        }
        let held = self.held_recordings.take_ready(|_| true);
        for (requester, held) in &held {
            if let Err(error) = self.record_now(*requester, &held.request, held.recording_id) {
                self.outlets.refuse(*requester, error);
            }
        }
        held.len()
    }

    /// Stops one recording. Returns 1 if it was active, otherwise 0.
    ///
    /// # Errors
    /// The recording does not exist.
    pub(super) fn stop_recording_by_identity(
        &mut self,
        recording_id: i64,
    ) -> Result<i64, ArchiveError> {
        self.store.recording(recording_id)?;
        Ok(self.recordings.stop_by_identity(recording_id).into())
    }
}

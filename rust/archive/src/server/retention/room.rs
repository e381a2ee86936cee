//! [`Room`] and [`HeldRecordings`]: if the file system has too little space for a new recording,
//! retention runs before the recording is refused.

use aeron_protocol::archive::{RequestIds, SourceLocation};

use crate::server::ArchiveError;
use crate::server::conductor::ArchiveConductor;
use crate::server::recording::RecordingRequest;
use crate::storage::Storage;
use crate::store::StoreError;

/// Time after a round in nanoseconds. During this time, no further round is begun for a recording:
/// if there is still too little space, the recording is refused at once.
const ROOM_VALIDITY_NS: i64 = 1_000_000_000;
/// Maximum number of requests that wait for room.
const MAX_HELD: usize = 64;

/// Progress of a round that makes room for recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Room {
    /// No recording waits for room.
    #[default]
    Unasked,
    /// A round must begin.
    Requested,
    /// The round has ended, and its files are being deleted.
    Deleting,
    /// All files of the round were deleted. No further round is begun before `valid_until_ns`.
    Made { valid_until_ns: i64 },
}

/// Recording requests that wait until retention has made room.
#[derive(Debug, Default)]
pub(in crate::server) struct HeldRecordings {
    held: Vec<HeldRecording>,
}

#[derive(Debug)]
struct HeldRecording {
    requester: RequestIds,
    channel: String,
    stream_id: i32,
    source_location: SourceLocation,
    is_auto_stop: bool,
    /// The recording to be extended; `None` for a new recording.
    recording_id: Option<i64>,
}

impl Room {
    /// Returns whether a round must begin.
    pub fn is_requested(self) -> bool {
        self == Self::Requested
    }

    /// Notes the end of a round that began after the request.
    pub fn on_round_ended(&mut self) {
        debug_assert!(
            self.is_requested(),
            "a round for room has ended, but the room is {self:?} and not requested"
        );
        *self = Self::Deleting;
    }

    fn is_in_progress(self) -> bool {
        matches!(self, Self::Requested | Self::Deleting)
    }
}

impl HeldRecordings {
    fn hold(&mut self, request: &RecordingRequest<'_>, recording_id: Option<i64>) {
        self.held.push(HeldRecording {
            requester: request.requester,
            channel: request.channel.to_owned(),
            stream_id: request.stream_id,
            source_location: request.source_location,
            is_auto_stop: request.is_auto_stop,
            recording_id,
        });
    }
}

impl HeldRecording {
    fn request(&self) -> RecordingRequest<'_> {
        RecordingRequest {
            requester: self.requester,
            channel: &self.channel,
            stream_id: self.stream_id,
            source_location: self.source_location,
            is_auto_stop: self.is_auto_stop,
        }
    }
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Returns whether new recordings must wait, because there is too little space and retention
    /// has not run yet.
    pub(in crate::server) fn is_making_room(&mut self) -> bool {
        if self.retention.room.is_in_progress() {
            return true;
        }
        if self.store.extensions().policy_count() == 0 || self.has_made_room() {
            return false;
        }
        let is_low = matches!(
            self.store.check_storage_space(),
            Err(StoreError::LowSpace { .. })
        );
        if is_low {
            self.retention.room = Room::Requested;
        }
        is_low
    }

    /// Subscribes to a stream, or holds the request until retention has made room.
    ///
    /// # Errors
    /// See [`Recordings::start`](crate::server::recording::Recordings::start).
    pub(in crate::server) fn start_recording(
        &mut self,
        request: &RecordingRequest<'_>,
    ) -> Result<(), ArchiveError> {
        match self.may_hold() && self.is_making_room() {
            true => {
                self.retention.held.hold(request, None);
                Ok(())
            }
            false => self.start_recording_now(request),
        }
    }

    /// Extends a recording, or holds the request until retention has made room.
    ///
    /// # Errors
    /// See [`Recordings::extend`](crate::server::recording::Recordings::extend).
    pub(in crate::server) fn extend_recording(
        &mut self,
        recording_id: i64,
        request: &RecordingRequest<'_>,
    ) -> Result<(), ArchiveError> {
        match self.may_hold() && self.is_making_room() {
            true => {
                self.retention.held.hold(request, Some(recording_id));
                Ok(())
            }
            false => self.extend_recording_now(recording_id, request),
        }
    }

    /// Starts the waiting recordings when the round for them has ended and its files are deleted. Returns the number of
    /// waiting requests, including requests that are refused now.
    pub(super) fn start_held_recordings(&mut self) -> usize {
        if self.retention.room == Room::Deleting && self.deletions.is_empty() {
            let valid_until_ns = self.now_ns.saturating_add(ROOM_VALIDITY_NS);
            self.retention.room = Room::Made { valid_until_ns };
        }
        if self.retention.room.is_in_progress() {
            return 0;
        }
        let held = std::mem::take(&mut self.retention.held.held);
        for held in &held {
            let request = held.request();
            let started = match held.recording_id {
                None => self.start_recording_now(&request),
                Some(recording_id) => self.extend_recording_now(recording_id, &request),
            };
            if let Err(error) = started {
                self.outbox.refuse(held.requester, error);
            }
        }
        held.len()
    }

    fn may_hold(&self) -> bool {
        self.retention.held.held.len() < MAX_HELD
    }

    fn has_made_room(&self) -> bool {
        match self.retention.room {
            Room::Made { valid_until_ns } => self.now_ns < valid_until_ns,
            _ => false,
        }
    }
}

//! [`Room`]: if the file system has too little space for a new recording, retention runs before the recording is
//! refused.

use super::Retention;
use crate::storage::Storage;
use crate::store::{ArchiveStore, StoreError};

/// Time after a round in nanoseconds. During this time, no further round is begun for a recording:
/// if there is still too little space, the recording is refused at once.
const ROOM_VALIDITY_NS: i64 = 1_000_000_000;

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

impl<S: Storage + Clone> Retention<S> {
    /// Returns whether new recordings must wait, because there is too little space and retention
    /// has not run yet.
    pub fn is_making_room(&mut self, store: &ArchiveStore<S>, now_ns: i64) -> bool {
        if self.room.is_in_progress() {
            return true;
        }
        let has_made_room =
            matches!(self.room, Room::Made { valid_until_ns } if now_ns < valid_until_ns);
        if store.extensions().policy_count() == 0 || has_made_room {
            return false;
        }
        let is_low = matches!(
            store.check_storage_space(),
            Err(StoreError::LowSpace { .. })
        );
        if is_low {
            self.room = Room::Requested;
        }
        is_low
    }

    /// Returns whether recordings still wait for the round, or for the deletion of its files. `has_deleted` is whether
    /// no file is left to be deleted.
    pub fn is_room_pending(&mut self, has_deleted: bool, now_ns: i64) -> bool {
        if self.room == Room::Deleting && has_deleted {
            let valid_until_ns = now_ns.saturating_add(ROOM_VALIDITY_NS);
            self.room = Room::Made { valid_until_ns };
        }
        self.room.is_in_progress()
    }
}

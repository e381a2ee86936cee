//! Methods that this project adds to Aeron's protocol.
//!
//! If the archive does not support a method, the operation fails with
//! [`ArchiveClientError::NotSupported`](super::super::ArchiveClientError::NotSupported). An archive of another project
//! does not respond to the request for its capabilities, so the operation fails after one second.

use aeron_protocol::archive::TimeEdge;
use aeron_protocol::archive::extension::Capabilities;

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::error::Result;
use super::super::extension::{ListedInfo, TimeRange, TimedPosition};
use super::super::operation::{
    ArchiveOperation, CheckedCall, CheckedListing, EarliestReplay, StartedReplay, TimedReplay,
};
use super::super::params::ReplayParams;
use crate::extensions::{NamedReader, RetentionPolicy};
use crate::objects::CopiedRange;
use crate::retention::RetentionOutcome;

/// Named readers.
impl AeronArchive {
    /// Creates a named reader of a recording, or stores the position of an existing reader.
    ///
    /// Retention never deletes data that a reader has not committed, unless the reader has expired.
    /// A reader expires if it has not committed for longer than `max_age_ms`, or if more than
    /// `max_lag` bytes are recorded after its position. The operation returns `position`.
    ///
    /// # Errors
    /// See [`AeronArchive`]. The archive refuses a position outside the recording.
    pub fn commit_reader(
        &self,
        recording_id: i64,
        name: &str,
        position: i64,
        max_age_ms: Option<i64>,
        max_lag: Option<i64>,
    ) -> ArchiveOperation<i64> {
        let call = ArchiveCall::commit_reader(recording_id, name, position, max_age_ms, max_lag);
        self.checked(Capabilities::READERS, call)
    }

    /// Removes a named reader. The operation returns 1, or 0 if the reader does not exist.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn remove_reader(&self, recording_id: i64, name: &str) -> ArchiveOperation<i64> {
        let call = ArchiveCall::remove_reader(recording_id, name);
        self.checked(Capabilities::READERS, call)
    }

    /// Lists named readers. Without `recording_id`, lists the readers of all recordings. If `name` is
    /// empty, lists readers with any name.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn list_readers(
        &self,
        recording_id: Option<i64>,
        name: &str,
    ) -> ArchiveOperation<Vec<NamedReader>> {
        let name = name.to_owned();
        let page = move |from| ArchiveCall::list_readers(recording_id, &name, from);
        ArchiveOperation::new(self, CheckedListing::new(Capabilities::READERS, page))
    }
}

/// Retention.
impl AeronArchive {
    /// Sets a retention policy: limits for one recording, or for all recordings that have a certain stream id and a
    /// certain text in their channel. A policy without limits removes the policy of its scope. The operation returns 1
    /// if a policy was replaced or removed, otherwise 0.
    ///
    /// # Errors
    /// See [`AeronArchive`]. The archive refuses an unknown recording and a negative limit.
    pub fn set_retention(&self, policy: &RetentionPolicy) -> ArchiveOperation<i64> {
        self.checked(Capabilities::RETENTION, ArchiveCall::set_retention(policy))
    }

    /// Lists the retention policies. Policies of single recordings come first.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn list_retention(&self) -> ArchiveOperation<Vec<RetentionPolicy>> {
        let page = ArchiveCall::list_retention;
        ArchiveOperation::new(self, CheckedListing::new(Capabilities::RETENTION, page))
    }

    /// Applies the retention policies to one recording. Without `recording_id`, applies them to all
    /// recordings. With `dry_run`, nothing is deleted. Returns all recordings from which the
    /// policies would delete data, even if readers or replays keep all these data. With `trust_clock`, the archive
    /// trusts the wall clock from now on: deletion by age and the expiry of readers stop waiting.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn apply_retention(
        &self,
        recording_id: Option<i64>,
        dry_run: bool,
        trust_clock: bool,
    ) -> ArchiveOperation<Vec<RetentionOutcome>> {
        let page = move |_| ArchiveCall::apply_retention(recording_id, dry_run, trust_clock);
        ArchiveOperation::new(self, CheckedListing::new(Capabilities::RETENTION, page))
    }
}

/// Names and metadata of recordings.
impl AeronArchive {
    /// Replaces the name of a recording. An empty name removes the old name.
    ///
    /// # Errors
    /// See [`AeronArchive`]. The archive refuses a name that another recording has.
    pub fn set_recording_name(&self, recording_id: i64, name: &str) -> ArchiveOperation<()> {
        let call = ArchiveCall::set_recording_name(recording_id, name);
        self.checked(Capabilities::RECORDING_INFO, call)
    }

    /// Replaces the metadata of a recording. Empty metadata remove the old metadata.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn set_recording_metadata(
        &self,
        recording_id: i64,
        metadata: &[u8],
    ) -> ArchiveOperation<()> {
        let call = ArchiveCall::set_recording_metadata(recording_id, metadata);
        self.checked(Capabilities::RECORDING_INFO, call)
    }

    /// Lists the recordings that have a name, metadata or a link. Without `recording_id`, lists all
    /// of them. If `name` is empty, lists recordings with any name and without a name.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn list_recording_info(
        &self,
        recording_id: Option<i64>,
        name: &str,
    ) -> ArchiveOperation<Vec<ListedInfo>> {
        let name = name.to_owned();
        let page = move |from| ArchiveCall::list_recording_info(recording_id, &name, from);
        ArchiveOperation::new(
            self,
            CheckedListing::new(Capabilities::RECORDING_INFO, page),
        )
    }
}

/// Copies in object storage.
impl AeronArchive {
    /// Lists the recordings that have copies in object storage at their start. With `recording_id`, lists only this
    /// recording.
    ///
    /// # Errors
    /// See [`AeronArchive`]. The archive refuses the request if it does not know the copies of the recording some
    /// seconds after its start. Without `recording_id`, it needs the copies of all recordings.
    pub fn list_copied_ranges(
        &self,
        recording_id: Option<i64>,
    ) -> ArchiveOperation<Vec<CopiedRange>> {
        let page = move |from| ArchiveCall::list_copied_ranges(recording_id, from);
        ArchiveOperation::new(self, CheckedListing::new(Capabilities::OBJECTS, page))
    }
}

/// Positions by time.
impl AeronArchive {
    /// Finds the position of a recording at which a range of time begins or ends. `timestamp_us` is in microseconds
    /// since the epoch.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn find_position(
        &self,
        recording_id: i64,
        edge: TimeEdge,
        timestamp_us: i64,
    ) -> ArchiveOperation<TimedPosition> {
        let call = ArchiveCall::find_position(recording_id, edge, timestamp_us);
        self.checked(Capabilities::TIME, call)
    }

    /// Replays a range of time like [`async_replay_with_id`](Self::async_replay_with_id).
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`](super::super::ArchiveClientError::InvalidArgument) if both the
    /// parameters and the range give the begin (a position and `since_us`) or the end (a length and `until_us`). The
    /// same error if the range has neither begin nor end, or begins after its end. The operation fails with
    /// [`ArchiveClientError::EmptyTimeRange`](super::super::ArchiveClientError::EmptyTimeRange) if the range has no
    /// message, and with other errors.
    pub fn async_replay_in_time(
        &self,
        recording_id: i64,
        range: TimeRange,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ArchiveOperation<StartedReplay>> {
        let steps = TimedReplay::new(
            recording_id,
            range,
            replay_channel,
            replay_stream_id,
            params,
        )?;
        Ok(ArchiveOperation::new(self, steps))
    }
}

/// Copies in object storage.
impl AeronArchive {
    /// Replays a recording like [`async_replay_with_id`](Self::async_replay_with_id), from the first position that the
    /// archive has. That position may be in object storage, before the start position of the catalog. The position of
    /// the parameters is not used.
    ///
    /// If the archive does not support copies, the replay begins at the start position of the catalog. In this case,
    /// the operation waits up to one second before it requests the replay.
    pub fn async_replay_from_earliest(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> ArchiveOperation<StartedReplay> {
        let steps = EarliestReplay::new(recording_id, replay_channel, replay_stream_id, params);
        ArchiveOperation::new(self, steps)
    }
}

impl AeronArchive {
    /// Begins an operation that sends one request after a check that the archive supports it.
    pub(super) fn checked<T: Clone + Send + 'static>(
        &self,
        required: Capabilities,
        call: ArchiveCall<T>,
    ) -> ArchiveOperation<T> {
        ArchiveOperation::new(self, CheckedCall::new(required, call))
    }
}

//! The requests of [`AeronArchive`]: single calls, and requests of several steps.

use aeron_client::{ExclusivePublication, Publication};

use super::aeron_archive::AeronArchive;
use super::call::ArchiveCall;
use super::channels::{is_response_mode, parse, with_session_id};
use super::error::Result;
use super::extension::{ExtensionPage, TimeRange};
use super::operation::{
    ArchiveOperation, CallSteps, EarliestReplay, ListingSteps, RecordedExclusivePublication,
    RecordedPublication, ReplaySubscription, ResponseReplay, StartedReplay, TimedReplay,
};
use super::params::ReplayParams;

/// Requests.
impl AeronArchive {
    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn call<T: Clone + 'static>(&self, call: ArchiveCall<T>) -> Result<T> {
        self.aeron().check_may_wait()?;
        self.begin(call)?.wait()
    }

    /// Sends a request without waiting for its response. If not each archive supports the request, the operation first
    /// checks that this archive does. If it does not, the operation fails with
    /// [`ArchiveClientError::NotSupported`](super::ArchiveClientError::NotSupported).
    ///
    /// # Errors
    /// The session cannot be used: see [`AeronArchive`]. The operation returns all other errors.
    pub fn begin<T: Clone + 'static>(&self, call: ArchiveCall<T>) -> Result<ArchiveOperation<T>> {
        self.operation(CallSteps::begin(self, call))
    }

    /// Lists the entries of all pages. `page` creates the request for the page from an index on.
    ///
    /// # Errors
    /// The session cannot be used: see [`AeronArchive`]. The operation returns all other errors.
    pub fn list<D: Clone + Send + 'static>(
        &self,
        page: impl Fn(i32) -> ArchiveCall<ExtensionPage<D>> + Send + 'static,
    ) -> Result<ArchiveOperation<Vec<D>>> {
        self.operation(ListingSteps::begin(self, page))
    }

    /// Adds a publication and starts to record it, from its first byte on.
    ///
    /// # Errors
    /// The command could not be sent to the driver. The operation returns the other errors:
    /// [`ArchiveClientError::InvalidArgument`](super::ArchiveClientError::InvalidArgument) if the client already has
    /// the publication, the errors of the driver, and those of [`AeronArchive`].
    pub fn async_add_recorded_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ArchiveOperation<Publication>> {
        self.operation(RecordedPublication::add(self, channel, stream_id))
    }

    /// Adds an exclusive publication and starts to record it, from its first byte on.
    ///
    /// # Errors
    /// The command could not be sent to the driver. The operation returns the other errors.
    pub fn async_add_recorded_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ArchiveOperation<ExclusivePublication>> {
        self.operation(RecordedExclusivePublication::add(self, channel, stream_id))
    }

    /// Returns the channel for a request that stops the recording of one publication. `channel` and
    /// `session_id` are the values of the publication.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidChannel`](super::ArchiveClientError::InvalidChannel) if
    /// the channel cannot be parsed.
    pub fn session_channel(channel: &str, session_id: i32) -> Result<String> {
        with_session_id(channel, session_id)
    }

    /// Starts a replay of a recording on a channel and stream. The result is the id of the replay. The
    /// low 32 bits of this id are the session id of the replay's stream.
    ///
    /// For a channel with `control-mode=response`, the parameters must have the registration id of
    /// the subscription that receives the replay.
    ///
    /// # Errors
    /// The session cannot be used, or an argument is wrong, for example because that registration id is missing. The
    /// operation returns all other errors. If the replay has no subscriber,
    /// [`poll_for_error_response`](Self::poll_for_error_response) returns an error later.
    pub fn async_start_replay(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ArchiveOperation<i64>> {
        params.validate()?;
        let (channel, stream_id) = (replay_channel, replay_stream_id);
        if is_response_mode(&parse(channel)?) {
            let steps = ResponseReplay::start(self, recording_id, channel, stream_id, params);
            return self.operation(steps);
        }
        self.begin(ArchiveCall::start_replay(
            recording_id,
            channel,
            stream_id,
            params,
        ))
    }

    /// Starts a replay of a recording on a channel and stream, and subscribes to the replay. The subscription may not
    /// have an image yet.
    ///
    /// If the channel has port 0 or `control-mode=response`, the client subscribes before it requests the replay.
    ///
    /// # Errors
    /// The session cannot be used, or an argument is wrong. The operation returns all other errors.
    pub fn async_replay(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ArchiveOperation<StartedReplay>> {
        let (channel, stream_id) = (replay_channel, replay_stream_id);
        let steps = ReplaySubscription::start(self, recording_id, channel, stream_id, params);
        self.operation(steps)
    }

    /// Replays a range of time like [`async_replay`](Self::async_replay).
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`](super::ArchiveClientError::InvalidArgument) if both the
    /// parameters and the range give the begin (a position and `since_us`) or the end (a length and `until_us`). The
    /// same error if the range has neither begin nor end, or begins after its end. The operation fails with
    /// [`ArchiveClientError::EmptyTimeRange`](super::ArchiveClientError::EmptyTimeRange) if the range has no
    /// message, and with other errors.
    pub fn async_replay_in_time(
        &self,
        recording_id: i64,
        range: TimeRange,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ArchiveOperation<StartedReplay>> {
        let (channel, stream_id) = (replay_channel, replay_stream_id);
        let steps = TimedReplay::new(self, recording_id, range, channel, stream_id, params);
        self.operation(steps)
    }

    /// Replays a recording like [`async_replay`](Self::async_replay), from the first position that the archive has.
    /// That position may be in object storage, before the start position of the catalog. The position of the
    /// parameters is not used.
    ///
    /// If the archive does not support copies, the replay begins at the start position of the catalog. In this case,
    /// the operation waits up to one second before it requests the replay.
    ///
    /// # Errors
    /// The session cannot be used. The operation returns all other errors.
    pub fn async_replay_from_earliest(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ArchiveOperation<StartedReplay>> {
        let (channel, stream_id) = (replay_channel, replay_stream_id);
        let steps = EarliestReplay::new(self, recording_id, channel, stream_id, params);
        self.operation(steps)
    }
}

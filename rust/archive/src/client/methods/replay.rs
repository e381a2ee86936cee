//! Methods that start and stop replays.

use aeron_client::Subscription;
use aeron_protocol::archive::extension::Capabilities;

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::channels::{is_response_mode, parse};
use super::super::error::Result;
use super::super::operation::{
    ArchiveOperation, ReplaySubscription, ResponseReplay, StartedReplay, SubscriptionOfReplay,
};
use super::super::params::ReplayParams;

/// Replays.
impl AeronArchive {
    /// Starts a replay of a recording on a channel and stream. Returns the id of the replay. The
    /// low 32 bits of this id are the session id of the replay's stream.
    ///
    /// For a channel with `control-mode=response`, the parameters must have the registration id of
    /// the subscription that receives the replay.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`](super::super::ArchiveClientError::InvalidArgument)
    /// if that registration id is missing. See also [`AeronArchive`]. If the replay has no
    /// subscriber, [`poll_for_error_response`](Self::poll_for_error_response) returns an error
    /// later.
    pub fn start_replay(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<i64> {
        self.aeron().check_may_wait()?;
        self.async_start_replay(recording_id, replay_channel, replay_stream_id, params)?
            .wait()
    }

    /// Does the same as [`start_replay`](Self::start_replay), without waiting.
    ///
    /// # Errors
    /// The session cannot be used, or an argument is wrong. The operation returns all other errors.
    pub fn async_start_replay(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ArchiveOperation<i64>> {
        params.validate()?;
        if is_response_mode(&parse(replay_channel)?) {
            let steps = ResponseReplay::start(
                self,
                recording_id,
                replay_channel,
                replay_stream_id,
                params,
            )?;
            return Ok(ArchiveOperation::new(self, steps));
        }
        let call =
            ArchiveCall::start_replay(recording_id, replay_channel, replay_stream_id, params);
        match params.is_paced() {
            true => Ok(self.checked(Capabilities::REPLAY_RATE, call)),
            false => self.begin(call),
        }
    }

    /// Starts a replay of a recording on a channel and stream, and subscribes to the replay.
    /// Returns the subscription, which may not have an image yet.
    ///
    /// If the channel has port 0 or `control-mode=response`, the client subscribes before it requests the replay.
    ///
    /// # Errors
    /// The driver returns an error. See also [`AeronArchive`].
    pub fn replay(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<Subscription> {
        self.aeron().check_may_wait()?;
        self.async_replay(recording_id, replay_channel, replay_stream_id, params)?
            .wait()
    }

    /// Does the same as [`replay`](Self::replay), without waiting.
    ///
    /// # Errors
    /// The session cannot be used, or an argument is wrong. The operation returns all other errors.
    pub fn async_replay(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ArchiveOperation<Subscription>> {
        let steps = ReplaySubscription::start(
            self,
            recording_id,
            replay_channel,
            replay_stream_id,
            params,
        )?;
        Ok(ArchiveOperation::new(self, SubscriptionOfReplay(steps)))
    }

    /// Does the same as [`async_replay`](Self::async_replay). The result also has the id of the
    /// replay.
    ///
    /// # Errors
    /// The same errors as [`async_replay`](Self::async_replay).
    pub fn async_replay_with_id(
        &self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ArchiveOperation<StartedReplay>> {
        let steps = ReplaySubscription::start(
            self,
            recording_id,
            replay_channel,
            replay_stream_id,
            params,
        )?;
        Ok(ArchiveOperation::new(self, steps))
    }
}

//! [`Parties`]: the subscription and the archive of a merge, and the commands to both.

use aeron_client::{Error, Image, PendingOperation, Subscription};
use aeron_protocol::uri::{ChannelUri, ControlMode, key};

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::channels::{has_wildcard_port, parse};
use super::super::error::ArchiveClientError;
use super::super::operation::ArchiveOperation;
use super::super::params::ReplayParams;
use super::error::ReplayMergeError;
use super::position_query::PositionQuery;
use super::{MergeResult, ReplayMergeParams};

/// Prefix of channels that cannot be merged.
const IPC_PREFIX: &str = "aeron:ipc";
/// Length that does not limit a replay. The replay of an active recording continues with new frames.
const NO_LIMIT: i64 = i64::MAX;
/// The live destination is added when the image is at most this far from the recorded position, in bytes. If a quarter
/// of a term is less than this value, the quarter is the limit.
const MAX_LIVE_DISTANCE: i64 = 32 * 1024 * 1024;

/// The subscription and the archive of a merge, with the commands to both and the results of the
/// commands.
pub(super) struct Parties {
    pub(super) subscription: Subscription,
    pub(super) archive: AeronArchive,
    params: ReplayMergeParams,
    /// Channel of the replay. It lacks the port until the driver has chosen the port.
    replay_channel: ChannelUri,
    /// Destinations that the driver has been asked to add.
    adding: Vec<PendingOperation<()>>,
    query: PositionQuery,
    replay_session_id: Option<i64>,
    pub(super) image: Option<Image>,
    pub(super) is_live_added: bool,
    removal: ReplayRemoval,
}

impl Parties {
    /// Checks the channels, and adds the destination of the replay.
    pub(super) fn new(
        subscription: &Subscription,
        archive: &AeronArchive,
        params: &ReplayMergeParams,
    ) -> MergeResult<Self> {
        check_channels(subscription.channel(), params)?;
        let replay_channel = replay_channel(params)?;
        Ok(Self {
            adding: vec![subscription.async_add_destination(&params.replay_destination)?],
            subscription: subscription.clone(),
            archive: archive.clone(),
            replay_channel,
            params: params.clone(),
            query: PositionQuery::new(params.recording_id),
            replay_session_id: None,
            image: None,
            is_live_added: false,
            removal: ReplayRemoval::default(),
        })
    }

    /// Returns whether the driver chooses the port of the replay.
    pub(super) fn awaits_port(&self) -> MergeResult<bool> {
        Ok(has_wildcard_port(&parse(&self.params.replay_destination)?))
    }

    /// Returns whether the driver has chosen the port of the replay. If so, puts the port into the
    /// replay channel.
    pub(super) fn resolve_port(&mut self) -> MergeResult<bool> {
        let Some(resolved) = self.subscription.resolved_endpoint() else {
            return Ok(false);
        };
        let channel = &mut self.replay_channel;
        let outcome = match has_wildcard_port(channel) {
            true => channel.replace_endpoint_wildcard_port(&resolved),
            false => channel.put(key::ENDPOINT, &resolved),
        };
        let refuse = |error| ArchiveClientError::channel(&self.params.replay_channel, error);
        outcome.map_err(refuse)?;
        Ok(true)
    }

    /// Fails if the driver has refused a destination.
    pub(super) fn check_destinations(&mut self) -> MergeResult<()> {
        let mut pending = Vec::new();
        for mut adding in self.adding.drain(..) {
            if adding.poll()?.is_none() {
                pending.push(adding);
            }
        }
        self.adding = pending;
        Ok(())
    }

    pub(super) fn start_replay(&self) -> MergeResult<ArchiveOperation<i64>> {
        let params = ReplayParams::range(self.params.start_position, NO_LIMIT);
        let channel = self.replay_channel.to_string();
        let stream_id = self.subscription.stream_id();
        let call =
            ArchiveCall::start_replay(self.params.recording_id, &channel, stream_id, &params);
        Ok(self.archive.begin(call)?)
    }

    /// Stores the id of the replay, and starts a new position query, which sends its first request without a delay.
    pub(super) fn begin_catchup(&mut self, replay_session_id: i64) {
        debug_assert!(
            self.replay_session_id.is_none(),
            "a merge must not start replay {replay_session_id} beside another replay"
        );
        self.replay_session_id = Some(replay_session_id);
        self.query = PositionQuery::new(self.params.recording_id);
    }

    /// Requests the position of the recording. Returns the position when the archive has responded.
    pub(super) fn poll_position(&mut self, now_ns: i64) -> MergeResult<Option<i64>> {
        Ok(self.query.poll(&self.archive, now_ns)?)
    }

    /// Returns the image of the replay. Its session id is in the low 32 bits of the replay id.
    pub(super) fn find_image(&mut self) -> Option<&Image> {
        if self.image.is_none() {
            let session_id = self.replay_session_id? as i32;
            self.image = self.subscription.image_by_session_id(session_id);
        }
        self.image.as_ref()
    }

    /// Adds the live destination when the image is near `target`, the recorded position. Removes the replay when the
    /// image has reached `target` and also receives the live stream. Returns whether the replay was removed.
    pub(super) fn join(&mut self, target: i64) -> MergeResult<bool> {
        debug_assert!(
            self.image.is_some(),
            "a merge joins the live stream before the image of its replay was found"
        );
        let Some(image) = &self.image else {
            return Ok(false);
        };
        let distance = target - image.position();
        let near = (image.term_buffer_length() as i64 / 4).min(MAX_LIVE_DISTANCE);
        if !self.is_live_added && distance <= near {
            let destination = &self.params.live_destination;
            let adding = self.subscription.async_add_destination(destination)?;
            self.adding.push(adding);
            self.is_live_added = true;
        } else if self.is_live_added && distance <= 0 && image.active_transport_count() >= 2 {
            self.leave_replay();
            return Ok(true);
        }
        // A closed image receives nothing more, so it cannot join the live stream.
        match image.is_closed() {
            true => Err(ReplayMergeError::ImageClosed),
            false => Ok(false),
        }
    }

    /// Removes the replay destination and stops the replay, if the Aeron client is still open.
    pub(super) fn leave_replay(&mut self) {
        if self.archive.aeron().is_closed() {
            return;
        }
        self.send_removal();
        if let Some(id) = self.replay_session_id.take() {
            // If the request fails, the replay still ends: the archive ends a replay without a subscriber.
            drop(self.archive.begin(ArchiveCall::stop_replay(id)));
        }
    }

    /// Returns whether the removal of the replay destination must be sent again.
    pub(super) const fn is_removal_unsent(&self) -> bool {
        self.removal.is_unsent
    }

    /// Sends the removal of the replay destination again, if the driver's command buffer was full before.
    pub(super) fn retry_removal(&mut self) {
        if self.removal.is_unsent {
            self.send_removal();
        }
    }

    fn send_removal(&mut self) {
        let destination = &self.params.replay_destination;
        let sent = self.subscription.async_remove_destination(destination);
        self.removal.on_sent(sent);
    }

    /// Cancels the destinations that are still being added, and removes the replay. Must not be called after a complete
    /// merge, because the live destination must then remain.
    pub(super) fn give_up(&mut self) {
        self.adding.clear();
        self.leave_replay();
    }

    pub(super) fn active_transport_count(&self) -> i32 {
        self.image.as_ref().map_or(0, Image::active_transport_count)
    }
}

/// Whether the removal of the replay destination must be sent again.
#[derive(Default)]
struct ReplayRemoval {
    is_unsent: bool,
}

impl ReplayRemoval {
    /// Notes the outcome of an attempt to send the removal. Other errors than a full command buffer are final: the
    /// subscription or the client is closed, so the destination is gone too.
    fn on_sent<T>(&mut self, sent: Result<T, Error>) {
        self.is_unsent = matches!(sent, Err(Error::CommandBufferFull { .. }));
    }
}

fn check_channels(subscription_channel: &str, params: &ReplayMergeParams) -> MergeResult<()> {
    let channels = [
        subscription_channel,
        &params.replay_channel,
        &params.replay_destination,
        &params.live_destination,
    ];
    if channels.iter().any(|it| it.starts_with(IPC_PREFIX)) {
        return Err(ReplayMergeError::IpcChannel);
    }
    if parse(subscription_channel)?.control_mode() != ControlMode::Manual {
        return Err(ReplayMergeError::NotManual {
            channel: subscription_channel.to_owned(),
        });
    }
    parse(&params.live_destination)?;
    if parse(&params.replay_destination)?
        .get(key::ENDPOINT)
        .is_none()
    {
        return Err(ReplayMergeError::NoEndpoint {
            destination: params.replay_destination.clone(),
        });
    }
    Ok(())
}

/// Returns the channel of the replay. It has `eos=false`, because the end of the replay must not
/// end the image. If the port of the destination is 0, the endpoint is added later.
fn replay_channel(params: &ReplayMergeParams) -> MergeResult<ChannelUri> {
    let destination = parse(&params.replay_destination)?;
    let refuse = |error| ArchiveClientError::channel(&params.replay_channel, error);
    let mut channel = parse(&params.replay_channel)?;
    channel.put(key::LINGER, "0").map_err(refuse)?;
    channel.put(key::EOS, "false").map_err(refuse)?;
    if !has_wildcard_port(&destination)
        && let Some(endpoint) = destination.get(key::ENDPOINT)
    {
        channel.put(key::ENDPOINT, endpoint).map_err(refuse)?;
    }
    Ok(channel)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = "aeron:udp?control-mode=manual|session-id=7";

    fn params() -> ReplayMergeParams {
        ReplayMergeParams::new(
            "aeron:udp?session-id=7",
            "aeron:udp?endpoint=localhost:9001",
            "aeron:udp?endpoint=localhost:9002",
            3,
        )
    }

    /// 07-130, 11-76
    #[test]
    fn ipc_channels_and_subscriptions_without_manual_destinations_are_refused() {
        let refusal = |channel: &str, params: &ReplayMergeParams| {
            check_channels(channel, params).unwrap_err().to_string()
        };
        assert_eq!(
            refusal("aeron:ipc", &params()),
            "IPC merging is not supported"
        );
        for change in [
            |params: &mut ReplayMergeParams, ipc| params.replay_channel = ipc,
            |params: &mut ReplayMergeParams, ipc| params.replay_destination = ipc,
            |params: &mut ReplayMergeParams, ipc| params.live_destination = ipc,
        ] {
            let mut params = params();
            change(&mut params, "aeron:ipc?term-length=64k".to_owned());
            assert_eq!(
                refusal("aeron:udp?endpoint=localhost:9001", &params),
                "IPC merging is not supported"
            );
        }
        assert_eq!(
            refusal("aeron:udp?endpoint=localhost:9001", &params()),
            "Subscription URI must have 'control-mode=manual' uri=aeron:udp?endpoint=localhost:9001"
        );
        check_channels(MANUAL, &params()).unwrap();
    }

    /// 11-76
    #[test]
    fn a_replay_destination_without_an_endpoint_is_refused() {
        let params = ReplayMergeParams {
            replay_destination: "aeron:udp?interface=localhost".to_owned(),
            ..params()
        };
        let error = check_channels(MANUAL, &params).unwrap_err();
        assert!(error.to_string().contains("has no endpoint"), "{error}");
    }

    #[test]
    fn a_removal_is_sent_again_only_after_a_full_command_buffer() {
        let full = || Error::CommandBufferFull {
            command: "REMOVE_RCV_DESTINATION",
        };
        let refused = Error::InUse("subscription");
        let mut removal = ReplayRemoval::default();
        for (sent, is_unsent) in [
            (Err(full()), true),
            (Err(full()), true),
            (Ok(()), false),
            (Err(full()), true),
            (Err(refused), false),
        ] {
            removal.on_sent(sent);
            assert_eq!(removal.is_unsent, is_unsent);
        }
    }

    /// 07-130
    #[test]
    fn the_replay_channel_has_the_endpoint_of_the_destination_and_eos_false() {
        assert_eq!(
            replay_channel(&params()).unwrap().to_string(),
            "aeron:udp?session-id=7|linger=0|eos=false|endpoint=localhost:9001"
        );
        let resolved_later = ReplayMergeParams {
            replay_destination: "aeron:udp?endpoint=localhost:0".to_owned(),
            ..params()
        };
        assert_eq!(
            replay_channel(&resolved_later).unwrap().to_string(),
            "aeron:udp?session-id=7|linger=0|eos=false"
        );
    }
}

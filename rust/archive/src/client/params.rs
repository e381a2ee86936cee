//! Parameters of replays and replications. Applications pass them to the methods of the archive client.

use aeron_protocol::archive::{NULL_LENGTH, NULL_SESSION_ID, NULL_VALUE, REPLAY_ALL_AND_FOLLOW};

use super::error::{ArchiveClientError, Result};

/// Value for a counter id that is not set.
pub const NULL_COUNTER_ID: i32 = -1;

/// The part of a recording to replay, and options. By default, the whole recording is replayed. If
/// the recording is active, the replay continues with new frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayParams {
    /// Position of the first frame; [`NULL_VALUE`] for the start of the recording.
    pub position: i64,
    /// Length in bytes, or [`REPLAY_ALL_AND_FOLLOW`], or
    /// [`REPLAY_ALL_AND_STOP`](aeron_protocol::archive::REPLAY_ALL_AND_STOP).
    pub length: i64,
    /// Id of the counter with the position that bounds the replay; [`NULL_COUNTER_ID`] if no
    /// counter bounds it.
    pub bounding_limit_counter_id: i32,
    /// Longest read of a segment file in bytes; [`NULL_LENGTH`] for the archive's setting.
    pub file_io_max_length: i32,
    /// Token for a replay over a response channel; [`NULL_VALUE`] if the client must request one.
    pub replay_token: i64,
    /// Registration id of the subscription that receives a replay over a response channel; [`NULL_VALUE`] otherwise.
    pub subscription_registration_id: i64,
    /// Maximum rate of the replay in bytes per second, at least 1; [`NULL_VALUE`] for no limit.
    /// Only archives of this project support a rate.
    pub max_bytes_per_second: i64,
    /// Speed of the replay in millionths, at least 1. With
    /// [`SPEED_UNIT`](aeron_protocol::archive::extension::SPEED_UNIT), the messages are sent at the
    /// intervals at which they arrived; with twice this value, twice as fast. With [`NULL_VALUE`],
    /// they are sent without regard to these intervals. Only archives of this project support a
    /// speed.
    pub speed_millionths: i64,
}

impl Default for ReplayParams {
    fn default() -> Self {
        Self {
            position: NULL_VALUE,
            length: REPLAY_ALL_AND_FOLLOW,
            bounding_limit_counter_id: NULL_COUNTER_ID,
            file_io_max_length: NULL_LENGTH,
            replay_token: NULL_VALUE,
            subscription_registration_id: NULL_VALUE,
            max_bytes_per_second: NULL_VALUE,
            speed_millionths: NULL_VALUE,
        }
    }
}

impl ReplayParams {
    /// Creates a replay of `length` bytes from `position` on.
    #[must_use]
    pub fn range(position: i64, length: i64) -> Self {
        Self {
            position,
            length,
            ..Self::default()
        }
    }

    /// Returns whether the replay has a rate or a speed.
    pub(super) const fn is_paced(&self) -> bool {
        self.max_bytes_per_second != NULL_VALUE || self.speed_millionths != NULL_VALUE
    }

    /// Returns an error if the rate or the speed is not positive, or if a counter bounds a replay
    /// with a rate or a speed.
    pub(super) fn validate(&self) -> Result<()> {
        let is_valid = |value: i64| value == NULL_VALUE || value > 0;
        let problem = if !is_valid(self.max_bytes_per_second) {
            format!(
                "rate={} bytes per second is not positive",
                self.max_bytes_per_second
            )
        } else if !is_valid(self.speed_millionths) {
            format!("speed={} millionths is not positive", self.speed_millionths)
        } else if self.is_paced() && self.bounding_limit_counter_id != NULL_COUNTER_ID {
            "a replay with a rate or a speed cannot be bounded by a counter".to_owned()
        } else {
            return Ok(());
        };
        Err(ArchiveClientError::InvalidArgument(problem))
    }
}

/// The part of another archive's recording to copy, and options. By default, the whole recording is copied to a new
/// recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationParams {
    /// Position at which the replication stops; [`NULL_VALUE`] for the end of the source recording.
    pub stop_position: i64,
    /// Recording of this archive that is extended; [`NULL_VALUE`] for a new recording.
    pub dst_recording_id: i64,
    /// Channel of the live stream with which the replication merges; empty if it does not merge.
    pub live_destination: String,
    /// Channel over which the source replays; empty for the archive's setting.
    pub replication_channel: String,
    /// Channel of the source's responses; empty for the archive's setting.
    pub src_response_channel: String,
    /// First tag of the channel on which this archive receives the replication; [`NULL_VALUE`] for no tag.
    pub channel_tag_id: i64,
    /// Second tag of this channel, which names the subscription; [`NULL_VALUE`] for no tag.
    pub subscription_tag_id: i64,
    /// Longest read of a segment file at the source in bytes; [`NULL_LENGTH`] for the setting of the source.
    pub file_io_max_length: i32,
    /// Session id of the replay at the source; [`NULL_SESSION_ID`] for the session id of the source
    /// recording.
    pub replication_session_id: i32,
    /// Credentials for the source archive.
    pub encoded_credentials: Vec<u8>,
}

impl Default for ReplicationParams {
    fn default() -> Self {
        Self {
            stop_position: NULL_VALUE,
            dst_recording_id: NULL_VALUE,
            live_destination: String::new(),
            replication_channel: String::new(),
            src_response_channel: String::new(),
            channel_tag_id: NULL_VALUE,
            subscription_tag_id: NULL_VALUE,
            file_io_max_length: NULL_LENGTH,
            replication_session_id: NULL_SESSION_ID,
            encoded_credentials: Vec::new(),
        }
    }
}

impl ReplicationParams {
    /// Returns an error if both a live destination and a replication session id are set. The
    /// session id of a live stream cannot be chosen.
    pub(super) fn validate(&self) -> Result<()> {
        if !self.live_destination.is_empty() && self.replication_session_id != NULL_SESSION_ID {
            return Err(ArchiveClientError::InvalidArgument(
                "a replication with a live destination cannot have a replication session id"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

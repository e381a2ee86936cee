//! Parameters that a driver reads from a subscription's channel.

use super::{ChannelUri, ControlMode, UntetheredTimeouts, UriError, key};

/// Whether a receiver is a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverGroup {
    /// The receiver is a member.
    Yes,
    /// The receiver is not a member.
    No,
    /// The receiver is a member if the channel is multicast or the sender sets the group flag.
    Infer,
}

/// Defaults for parameters that a subscription's channel does not set: a driver's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionDefaults {
    /// Whether the receiver requests lost data again.
    pub is_reliable: bool,
    /// Whether log files of images are sparse.
    pub is_sparse: bool,
    /// Whether a slow subscriber always limits the publisher.
    pub is_tether: bool,
    /// Whether the subscription rejoins a stream whose image has ended.
    pub is_rejoin: bool,
    /// Whether the receiver is a member of a group.
    pub group: ReceiverGroup,
    /// Receiver window in bytes.
    pub receiver_window_length: i64,
    /// Timeouts of untethered subscribers.
    pub untethered: UntetheredTimeouts,
}

/// Validated parameters of a subscription's channel, with defaults. IPC subscriptions and spies use only some of these
/// parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionParams {
    /// If set, the subscription only has images of this session.
    pub session_id: Option<i32>,
    /// Whether the receiver requests lost data again.
    pub is_reliable: bool,
    /// Whether log files of images are sparse.
    pub is_sparse: bool,
    /// Whether a slow subscriber always limits the publisher.
    pub is_tether: bool,
    /// Whether the subscription rejoins a stream whose image has ended.
    pub is_rejoin: bool,
    /// Whether the receiver is a member of a group.
    pub group: ReceiverGroup,
    /// Whether the subscription receives responses.
    pub is_response: bool,
    /// Receiver window in bytes.
    pub receiver_window_length: i64,
    /// Time for which an untethered subscriber may limit the window, in nanoseconds.
    pub untethered_window_limit_timeout_ns: i64,
    /// Time for which an untethered subscriber may continue to read, in nanoseconds.
    pub untethered_linger_timeout_ns: i64,
    /// Time after which an untethered subscriber may rejoin, in nanoseconds.
    pub untethered_resting_timeout_ns: i64,
}

impl SubscriptionParams {
    /// Reads the parameters from `uri`. Parameters that `uri` does not set are from `defaults`.
    ///
    /// # Errors
    /// Code 11 with the invalid key and value.
    pub fn parse(uri: &ChannelUri, defaults: &SubscriptionDefaults) -> Result<Self, UriError> {
        let flag = |key, default| Ok(uri.boolean(key)?.unwrap_or(default));
        let untethered = UntetheredTimeouts::parse(uri, &defaults.untethered)?;
        Ok(Self {
            session_id: uri.int32(key::SESSION_ID)?,
            is_reliable: flag(key::RELIABLE, defaults.is_reliable)?,
            is_sparse: flag(key::SPARSE, defaults.is_sparse)?,
            is_tether: flag(key::TETHER, defaults.is_tether)?,
            is_rejoin: flag(key::REJOIN, defaults.is_rejoin)?,
            group: parse_group(uri).unwrap_or(defaults.group),
            is_response: uri.control_mode() == ControlMode::Response,
            receiver_window_length: uri
                .size(key::RECEIVER_WINDOW)?
                .filter(|length| *length != 0)
                .unwrap_or(defaults.receiver_window_length),
            untethered_window_limit_timeout_ns: untethered.window_limit_timeout_ns,
            untethered_linger_timeout_ns: untethered.effective_linger_timeout_ns(),
            untethered_resting_timeout_ns: untethered.resting_timeout_ns,
        })
    }
}

fn parse_group(uri: &ChannelUri) -> Option<ReceiverGroup> {
    uri.get(key::GROUP).map(|text| match text {
        "true" => ReceiverGroup::Yes,
        "infer" => ReceiverGroup::Infer,
        _ => ReceiverGroup::No,
    })
}

//! What a driver takes out of a subscription's channel.

use super::{ChannelUri, ControlMode, UntetheredTimeouts, UriError, key};

/// Whether a receiver counts itself as one of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverGroup {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// It does when the channel is multicast or the sender says so.
    Infer,
}

/// What applies where a subscription's channel says nothing; a driver's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionDefaults {
    /// Whether lost data is asked for again.
    pub is_reliable: bool,
    /// Whether log files of images are sparse.
    pub is_sparse: bool,
    /// Whether the subscriber is always part of flow control.
    pub is_tether: bool,
    /// Whether a stream that went away may come back.
    pub is_rejoin: bool,
    /// Whether the receiver counts itself as one of a group.
    pub group: ReceiverGroup,
    /// Receiver window in bytes.
    pub receiver_window_length: i64,
    /// Timeouts of untethered subscribers.
    pub untethered: UntetheredTimeouts,
}

/// What a subscription's channel asks for, completed and checked. IPC subscriptions and spies use a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionParams {
    /// Take images of this session only.
    pub session_id: Option<i32>,
    /// Whether lost data is asked for again.
    pub is_reliable: bool,
    /// Whether log files of images are sparse.
    pub is_sparse: bool,
    /// Whether the subscriber is always part of flow control.
    pub is_tether: bool,
    /// Whether a stream that went away may come back.
    pub is_rejoin: bool,
    /// Whether the receiver counts itself as one of a group.
    pub group: ReceiverGroup,
    /// Whether the subscription takes responses.
    pub is_response: bool,
    /// Receiver window in bytes.
    pub receiver_window_length: i64,
    /// How long an untethered subscriber may hold back the window.
    pub untethered_window_limit_timeout_ns: i64,
    /// How long an untethered subscriber may finish reading.
    pub untethered_linger_timeout_ns: i64,
    /// How long until an untethered subscriber may rejoin.
    pub untethered_resting_timeout_ns: i64,
}

impl SubscriptionParams {
    /// Takes the parameters out of `uri`, completed by `defaults`.
    ///
    /// # Errors
    /// Code 11 with the key and value that are wrong.
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

//! A UDP channel with its addresses resolved, and when two of them are the same one.

use std::net::SocketAddr;

use aeron_protocol::uri::{ChannelUri, ControlMode, NetworkParams};

use super::interfaces::Interface;
use crate::error::DriverError;

/// What a channel is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelRole {
    /// A publication.
    Publication,
    /// A subscription.
    Subscription,
    /// A subscription to what a publication of this driver sends.
    Spy,
    /// A destination of a subscription.
    ReceiveDestination,
}

/// An address of a channel, as it was written and as it was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAddress {
    /// `host:port`.
    pub name: String,
    /// Where that is now.
    pub address: SocketAddr,
}

/// A UDP channel: what its text says, and the addresses behind the names.
#[derive(Clone, Debug)]
pub struct UdpChannel {
    /// The text, without the prefix of a spy.
    pub text: String,
    /// The text's parameters.
    pub uri: ChannelUri,
    /// The parameters that both ends of a channel have.
    pub params: NetworkParams,
    /// `UDP-<local>-<remote>`, equal for channels that share an endpoint.
    pub canonical_form: String,
    /// What the channel's `endpoint` says.
    pub endpoint: Option<NamedAddress>,
    /// What the channel's `control` says; absent also for multicast, which does not use it.
    pub control: Option<NamedAddress>,
    /// The data goes to a group.
    pub is_multicast: bool,
    /// The interface to join groups on, and to send to them.
    pub interface: Interface,
    /// Where data is sent to and received.
    pub remote_data: SocketAddr,
    /// Where data is sent from.
    pub local_data: SocketAddr,
    /// Where control frames go: the control group of multicast, else as for data.
    pub remote_control: SocketAddr,
    /// What a sender binds, unless the channel is multicast.
    pub local_control: SocketAddr,
}

impl UdpChannel {
    /// The tag by which other channels refer to this one.
    pub fn tag(&self) -> Option<i64> {
        self.params.channel_tag
    }

    /// How destinations are found.
    pub fn control_mode(&self) -> ControlMode {
        self.params.control_mode
    }

    /// Whether a publication sends to several destinations, one after the other.
    pub fn is_mdc(&self) -> bool {
        matches!(
            self.params.control_mode,
            ControlMode::Dynamic | ControlMode::Manual
        )
    }

    /// Whether there may be several receivers.
    pub fn has_group_semantics(&self) -> bool {
        self.is_multicast || self.is_mdc()
    }

    /// Whether the channel is for responses.
    pub fn is_response(&self) -> bool {
        self.params.control_mode == ControlMode::Response
    }

    /// Where a receiver sends its control frames, if it does not wait for the source of the first frame.
    pub fn receiver_control_address(&self) -> Option<SocketAddr> {
        if self.is_multicast {
            Some(self.remote_control)
        } else {
            self.control.as_ref().map(|control| control.address)
        }
    }

    /// Whether this channel refers to `existing` by its tag.
    ///
    /// # Errors
    /// Code 11 when it does and says something else about control mode or addresses.
    pub fn matches_tag(&self, existing: &UdpChannel) -> Result<bool, DriverError> {
        let Some(tag) = self.tag().filter(|_| self.tag() == existing.tag()) else {
            return Ok(false);
        };
        let mode = self.control_mode();
        if mode != ControlMode::None && mode != existing.control_mode() {
            return Err(self.mismatch(tag, "control-mode", existing));
        }
        let addresses = (self.remote_data, self.local_data);
        if !self.is_wildcard() && addresses != (existing.remote_data, existing.local_data) {
            return Err(self.mismatch(tag, "endpoint or control", existing));
        }
        Ok(true)
    }

    /// Whether this channel shares the endpoint of `existing` by what it says, without looking at their tags unless both
    /// have one.
    pub fn matches_canonical_form(&self, existing: &UdpChannel) -> bool {
        let tags_differ = match (self.tag(), existing.tag()) {
            (Some(tag), Some(other)) => tag != other,
            _ => false,
        };
        !tags_differ && self.canonical_form == existing.canonical_form
    }

    /// Checks that a publication can make an endpoint for this channel, whose tag no endpoint has.
    ///
    /// # Errors
    /// Code 11 when nothing but a tag says where data goes.
    pub fn check_original_publication(&self) -> Result<(), DriverError> {
        let says_where = self.endpoint.is_some()
            || self.control.is_some()
            || self.control_mode() == ControlMode::Manual;
        if self.tag().is_none() || says_where {
            return Ok(());
        }
        Err(DriverError::invalid_argument(format_args!(
            "URI must have explicit control, endpoint, or be manual control-mode when original: channel={}",
            self.text
        )))
    }

    fn is_wildcard(&self) -> bool {
        [self.remote_data, self.local_data]
            .iter()
            .all(|address| address.ip().is_unspecified() && address.port() == 0)
    }

    fn mismatch(&self, tag: i64, what: &str, existing: &UdpChannel) -> DriverError {
        DriverError::invalid_argument(format_args!(
            "matching tag {tag} has mismatched {what}: {} <> {}",
            self.text, existing.text
        ))
    }
}

//! [`UdpChannel`]: a UDP channel with resolved addresses, and the rules by which channels share an endpoint.

use std::net::SocketAddr;

use aeron_protocol::uri::{ChannelUri, ControlMode, NetworkParams};

use super::interfaces::Interface;
use crate::error::DriverError;

/// The use of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelRole {
    /// A publication.
    Publication,
    /// A subscription.
    Subscription,
    /// A spy: a subscription to the publications of this driver.
    Spy,
    /// A destination of a subscription.
    ReceiveDestination,
}

/// An address of a channel, as written and as resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAddress {
    /// `host:port`.
    pub name: String,
    /// The resolved address.
    pub address: SocketAddr,
}

/// A UDP channel: the parameters in its text, and the resolved addresses.
#[derive(Clone, Debug)]
pub struct UdpChannel {
    /// The text of the channel, without the prefix of a spy.
    pub text: String,
    /// The parameters in the text.
    pub uri: ChannelUri,
    /// The parameters that apply to both ends of a channel.
    pub params: NetworkParams,
    /// `UDP-<local>-<remote>`, equal for channels that share an endpoint.
    pub canonical_form: String,
    /// The channel's `endpoint`.
    pub endpoint: Option<NamedAddress>,
    /// The channel's `control`; `None` for multicast, which does not use it.
    pub control: Option<NamedAddress>,
    /// Whether data is sent to a multicast group.
    pub is_multicast: bool,
    /// The interface for joining multicast groups and for sending to groups.
    pub interface: Interface,
    /// Address to which the sender sends data, and at which receivers receive the data.
    pub remote_data: SocketAddr,
    /// Local address from which data is sent.
    pub local_data: SocketAddr,
    /// Address to which control frames are sent: the control group for multicast, else the same as
    /// [`Self::remote_data`].
    pub remote_control: SocketAddr,
    /// Local address that a sender binds, unless the channel is multicast.
    pub local_control: SocketAddr,
}

/// The addresses of the data of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAddresses {
    /// See [`UdpChannel::remote_data`].
    pub remote: SocketAddr,
    /// See [`UdpChannel::local_data`].
    pub local: SocketAddr,
}

impl UdpChannel {
    /// Returns the addresses of the data, as resolved for this channel.
    pub fn data_addresses(&self) -> DataAddresses {
        DataAddresses {
            remote: self.remote_data,
            local: self.local_data,
        }
    }

    /// Returns the tag by which other channels refer to this channel.
    pub fn tag(&self) -> Option<i64> {
        self.params.channel_tag
    }

    /// Returns the control mode, which says how destinations are added.
    pub fn control_mode(&self) -> ControlMode {
        self.params.control_mode
    }

    /// Returns whether the channel can have several destinations. A publication sends each datagram to all of them.
    pub fn is_mdc(&self) -> bool {
        matches!(
            self.params.control_mode,
            ControlMode::Dynamic | ControlMode::Manual
        )
    }

    /// Returns whether several receivers are possible.
    pub fn has_group_semantics(&self) -> bool {
        self.is_multicast || self.is_mdc()
    }

    /// Returns whether the channel carries responses.
    pub fn is_response(&self) -> bool {
        self.params.control_mode == ControlMode::Response
    }

    /// Returns the address for a receiver's control frames; `None` to use the source of the first received frame.
    pub fn receiver_control_address(&self) -> Option<SocketAddr> {
        if self.is_multicast {
            Some(self.remote_control)
        } else {
            self.control.as_ref().map(|control| control.address)
        }
    }

    /// Returns whether this channel refers to `existing` by its tag. `current` are the addresses of the endpoint of
    /// `existing`: a name of the channel may have got another address since the endpoint was opened.
    ///
    /// # Errors
    /// Error code 11 if the tag matches, but the control mode or the addresses differ.
    pub fn matches_tag(
        &self,
        existing: &UdpChannel,
        current: DataAddresses,
    ) -> Result<bool, DriverError> {
        let Some(tag) = self.tag().filter(|_| self.tag() == existing.tag()) else {
            return Ok(false);
        };
        let mode = self.control_mode();
        if mode != ControlMode::None && mode != existing.control_mode() {
            return Err(self.mismatch(tag, "control-mode", existing));
        }
        if !self.is_wildcard() && self.data_addresses() != current {
            return Err(self.mismatch(tag, "endpoint or control", existing));
        }
        Ok(true)
    }

    /// Returns whether this channel shares the endpoint of `existing` by its canonical form.
    ///
    /// Tags are compared only if both channels have a tag.
    pub fn matches_canonical_form(&self, existing: &UdpChannel) -> bool {
        let tags_differ = match (self.tag(), existing.tag()) {
            (Some(tag), Some(other)) => tag != other,
            _ => false,
        };
        !tags_differ && self.canonical_form == existing.canonical_form
    }

    /// Checks that a publication can create an endpoint for this channel. Call this method only if no existing endpoint
    /// has the channel's tag.
    ///
    /// # Errors
    /// Error code 11 if the channel has a tag, but no endpoint, no control address and not the control mode `manual`.
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

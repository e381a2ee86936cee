//! [`FlowControlSpec`]: chooses the strategy from the channel's `fc`, or else from the configuration.

use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_protocol::uri::{ChannelUri, FlowControlStrategy, UriError};

use super::{FlowControl, GroupConfig, MaxFlowControl, MinFlowControl};
use crate::config::Context;

const UNICAST_RETRANSMIT_WINDOW_MULTIPLE: usize = 16;
const GROUP_RETRANSMIT_WINDOW_MULTIPLE: usize = 4;

/// A strategy in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControlSupplier {
    /// `unicast_max`: follows the only receiver.
    UnicastMax,
    /// `multicast_max`: follows the fastest receiver.
    MulticastMax,
    /// `multicast_min`: follows the slowest receiver.
    MulticastMin,
    /// `multicast_tagged`: follows the slowest receiver with the group tag.
    MulticastTagged,
}

/// The strategy of a publication and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControlSpec {
    /// The group of [`MinFlowControl`]; `None` for [`MaxFlowControl`].
    pub group: Option<GroupConfig>,
    /// Maximum length of a retransmit, as a multiple of the initial receiver window, or of half a term if that is
    /// shorter.
    pub retransmit_window_multiple: usize,
}

impl FlowControlSupplier {
    /// The short names, as an error lists them.
    pub const NAMES: &str = "unicast_max, multicast_max, multicast_min or multicast_tagged";

    /// Returns the strategy with this name: a short name, the name of the C driver's function, or of the Java driver's
    /// class.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "unicast_max"
            | "aeron_unicast_flow_control_strategy_supplier"
            | "io.aeron.driver.DefaultUnicastFlowControlSupplier" => Some(Self::UnicastMax),
            "multicast_max"
            | "aeron_max_multicast_flow_control_strategy_supplier"
            | "aeron_default_multicast_flow_control_strategy_supplier"
            | "io.aeron.driver.DefaultMulticastFlowControlSupplier"
            | "io.aeron.driver.MaxMulticastFlowControlSupplier" => Some(Self::MulticastMax),
            "multicast_min"
            | "aeron_min_flow_control_strategy_supplier"
            | "io.aeron.driver.MinMulticastFlowControlSupplier" => Some(Self::MulticastMin),
            "multicast_tagged"
            | "aeron_tagged_flow_control_strategy_supplier"
            | "io.aeron.driver.TaggedMulticastFlowControlSupplier"
            | "io.aeron.driver.PreferredMulticastFlowControlSupplier" => {
                Some(Self::MulticastTagged)
            }
            _ => None,
        }
    }
}

impl FlowControlSpec {
    /// Returns the strategy for a publication of this channel. `context` must be valid.
    ///
    /// The channel's `fc` is used only if the channel can have several receivers.
    ///
    /// # Errors
    /// Error code 11 for an unknown strategy or option, and for an invalid value of an option.
    pub fn of_channel(
        uri: &ChannelUri,
        has_group_semantics: bool,
        context: &Context,
    ) -> Result<Self, UriError> {
        if !has_group_semantics {
            return Ok(Self::of_supplier(
                &context.unicast_flow_control_supplier,
                context,
            ));
        }
        let Some(stated) = uri.flow_control()? else {
            return Ok(Self::of_supplier(
                &context.multicast_flow_control_supplier,
                context,
            ));
        };
        let mut spec = Self::of_strategy(stated.strategy, context);
        if let Some(multiple) = stated.retransmit_window_multiple {
            spec.retransmit_window_multiple = multiple as usize;
        }
        if let Some(group) = &mut spec.group {
            group.group_tag = group.group_tag.map(|tag| stated.group_tag.unwrap_or(tag));
            if let Some(size) = stated.group_min_size {
                group.group_min_size = size as usize;
            }
            if let Some(timeout_ns) = stated.receiver_timeout_ns {
                group.receiver_timeout_ns = timeout_ns;
            }
        }
        Ok(spec)
    }

    /// Creates the strategy. If the strategy counts receivers, calls `receiver_count` for the counter.
    ///
    /// # Errors
    /// The error of `receiver_count`.
    pub fn build<E>(
        &self,
        receiver_count: impl FnOnce() -> Result<AtomicCounter<SharedBuffer>, E>,
    ) -> Result<Box<dyn FlowControl>, E> {
        Ok(match self.group {
            Some(group) => Box::new(MinFlowControl::new(group, receiver_count()?)),
            None => Box::new(MaxFlowControl),
        })
    }

    fn of_supplier(name: &str, context: &Context) -> Self {
        match FlowControlSupplier::from_name(name) {
            Some(FlowControlSupplier::MulticastMax) => {
                Self::of_strategy(FlowControlStrategy::Max, context)
            }
            Some(FlowControlSupplier::MulticastMin) => {
                Self::of_strategy(FlowControlStrategy::Min, context)
            }
            Some(FlowControlSupplier::MulticastTagged) => {
                Self::of_strategy(FlowControlStrategy::Tagged, context)
            }
            Some(FlowControlSupplier::UnicastMax) | None => FlowControlSpec {
                group: None,
                retransmit_window_multiple: UNICAST_RETRANSMIT_WINDOW_MULTIPLE,
            },
        }
    }

    /// Creates a strategy for several receivers from the configuration.
    fn of_strategy(strategy: FlowControlStrategy, context: &Context) -> Self {
        let group = |group_tag| GroupConfig {
            group_tag,
            group_min_size: context.flow_control_group_min_size.max(0) as usize,
            receiver_timeout_ns: context.flow_control_receiver_timeout_ns,
        };
        FlowControlSpec {
            group: match strategy {
                FlowControlStrategy::Max => None,
                FlowControlStrategy::Min => Some(group(None)),
                FlowControlStrategy::Tagged => Some(group(Some(context.flow_control_group_tag))),
            },
            retransmit_window_multiple: GROUP_RETRANSMIT_WINDOW_MULTIPLE,
        }
    }
}

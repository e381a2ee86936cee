//! [`Removal`]: a resource that the driver must remove.

use crate::error::Result;
use crate::proxy::{DestinationCommand, DriverProxy};

/// A resource that the driver must remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Removal {
    /// A publication of either kind.
    Publication { registration_id: i64, revoke: bool },
    /// A subscription.
    Subscription { registration_id: i64 },
    /// A counter.
    Counter { registration_id: i64 },
    /// A destination of a publication.
    Destination {
        publication_id: i64,
        destination_id: i64,
    },
    /// A destination from which a subscription receives.
    ReceiveDestination {
        subscription_id: i64,
        channel: String,
    },
}

/// Outcome of a removal by registration id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovalById {
    /// The client has no such resource.
    Unknown,
    /// The command that adds the resource has no response yet. The resource is removed when the response comes.
    Unanswered,
    /// The client has closed the resource and requested its removal from the driver. A static counter is only closed.
    Asked,
}

impl Removal {
    pub(super) fn send(&self, proxy: &DriverProxy) -> Result<i64> {
        match self {
            Self::Publication {
                registration_id,
                revoke,
            } => proxy.remove_publication(*registration_id, *revoke),
            Self::Subscription { registration_id } => proxy.remove_subscription(*registration_id),
            Self::Counter { registration_id } => proxy.remove_counter(*registration_id),
            Self::Destination {
                publication_id,
                destination_id,
            } => proxy.remove_destination_by_id(*publication_id, *destination_id),
            Self::ReceiveDestination {
                subscription_id,
                channel,
            } => proxy.destination(DestinationCommand::RemoveReceive, *subscription_id, channel),
        }
    }

    /// Returns the registration id of the resource to remove. For a receive destination, this is the id of its
    /// subscription.
    pub(super) fn registration_id(&self) -> i64 {
        match self {
            Self::Publication {
                registration_id, ..
            }
            | Self::Subscription { registration_id }
            | Self::Counter { registration_id } => *registration_id,
            Self::Destination { destination_id, .. } => *destination_id,
            Self::ReceiveDestination {
                subscription_id, ..
            } => *subscription_id,
        }
    }
}

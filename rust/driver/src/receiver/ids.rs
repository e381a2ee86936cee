//! Ids of the receiver's objects. The conductor assigns them.

/// Id of a receive endpoint.
pub type ReceiveEndpointId = u64;

/// Id of a destination, unique among all receive endpoints.
pub type DestinationId = u64;

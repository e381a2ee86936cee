//! Names that the conductor gives to what the receiver owns.

/// Names a receive endpoint.
pub type EndpointId = u64;

/// Names a destination of any receive endpoint.
pub type DestinationId = u64;

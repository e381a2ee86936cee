//! [`EndpointId`]: the name of a send endpoint between conductor and sender.

/// Names a send endpoint; given by the conductor, never used twice.
pub type EndpointId = u64;

//! [`SendEndpointId`]: identifies a send endpoint between conductor and sender.

/// Id of a send endpoint. The conductor assigns it and never uses it twice.
pub type SendEndpointId = u64;

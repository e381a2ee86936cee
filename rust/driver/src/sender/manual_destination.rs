//! [`ManualDestination`]: a destination that a client has added to a publication.

use std::net::SocketAddr;
use std::sync::Arc;

/// A destination of a publication with manual control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualDestination {
    /// Correlation id of the command that added the destination.
    pub registration_id: i64,
    /// The `endpoint` of the destination's URI, as written.
    pub name: Arc<str>,
    /// The address of the name; `None` until the name is resolved. No data is sent to a destination without an address.
    pub address: Option<SocketAddr>,
}

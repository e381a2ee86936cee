//! [`ManualDestination`]: where a client wants a publication with manual control to go.

use std::net::SocketAddr;
use std::sync::Arc;

/// A destination that a client added to a publication with manual control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualDestination {
    /// Correlation id of the command that added it.
    pub registration_id: i64,
    /// The `endpoint` of its URI, as it was written.
    pub name: Arc<str>,
    /// What the name stands for; nothing is sent as long as that is not known.
    pub address: Option<SocketAddr>,
}

//! [`Lifetime`]: closes a resource when its last handle is dropped.

use std::sync::Arc;

use crate::client::Client;
use crate::conductor::ResourceKind;

/// Shared by all handles of one resource. Closes the resource when the last handle is dropped.
pub(crate) struct Lifetime {
    client: Arc<Client>,
    kind: ResourceKind,
    registration_id: i64,
}

impl Lifetime {
    pub(crate) fn new(client: &Arc<Client>, kind: ResourceKind, registration_id: i64) -> Arc<Self> {
        Arc::new(Self {
            client: Arc::clone(client),
            kind,
            registration_id,
        })
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Closes the resource now. Does nothing if it is already closed.
    pub(crate) fn close(&self) {
        self.client
            .close_resource(self.kind, self.registration_id, false);
    }

    /// Closes the publication and ends its stream at once.
    pub(crate) fn revoke(&self) {
        self.client
            .close_resource(self.kind, self.registration_id, true);
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.close();
    }
}

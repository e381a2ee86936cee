//! [`Lifetime`]: closes a resource when its last handle is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::client::Client;
use crate::conductor::ResourceKind;

/// The entry of a resource in the conductor.
pub(crate) struct Registration {
    /// Key in the conductor's tables: the registration id. After the loss of a driver and until the next driver has the
    /// resource, a negative number that no driver uses.
    key: AtomicI64,
    /// Number of resources that the client had added before. The next driver gets the resources in this order.
    pub(crate) order: u64,
}

impl Registration {
    pub(crate) fn new(registration_id: i64, order: u64) -> Arc<Self> {
        Arc::new(Self {
            key: AtomicI64::new(registration_id),
            order,
        })
    }

    pub(crate) fn key(&self) -> i64 {
        self.key.load(Ordering::Acquire)
    }

    pub(crate) fn set_key(&self, key: i64) {
        self.key.store(key, Ordering::Release);
    }
}

/// Shared by all handles of one resource. Closes the resource when the last handle is dropped.
pub(crate) struct Lifetime {
    client: Arc<Client>,
    kind: ResourceKind,
    registration: Arc<Registration>,
}

impl Lifetime {
    pub(crate) fn new(
        client: &Arc<Client>,
        kind: ResourceKind,
        registration: &Arc<Registration>,
    ) -> Arc<Self> {
        Arc::new(Self {
            client: Arc::clone(client),
            kind,
            registration: Arc::clone(registration),
        })
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Closes the resource now. Does nothing if it is already closed.
    pub(crate) fn close(&self) {
        self.client
            .close_resource(self.kind, &self.registration, false);
    }

    /// Closes the publication and ends its stream at once.
    pub(crate) fn revoke(&self) {
        self.client
            .close_resource(self.kind, &self.registration, true);
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.close();
    }
}

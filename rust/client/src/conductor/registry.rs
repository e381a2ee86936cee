//! [`Registry`]: the open resources of one kind, by registration id.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use crate::lifetime::Lifetime;

/// Open resources of one kind.
pub(crate) struct Registry<T> {
    entries: HashMap<i64, Entry<T>>,
}

/// A resource and what its handles share.
pub(crate) struct Entry<T> {
    pub(crate) core: Arc<T>,
    lifetime: Weak<Lifetime>,
    /// Keeps the resource open until the application has fetched it.
    unclaimed: Option<Arc<Lifetime>>,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
        }
    }
}

impl<T> Registry<T> {
    /// Adds a resource that nobody has fetched yet.
    pub(crate) fn insert(&mut self, registration_id: i64, core: Arc<T>, lifetime: Arc<Lifetime>) {
        let entry = Entry {
            core,
            lifetime: Arc::downgrade(&lifetime),
            unclaimed: Some(lifetime),
        };
        self.entries.insert(registration_id, entry);
    }

    /// The parts of a handle to a resource.
    pub(crate) fn fetch(&mut self, registration_id: i64) -> Option<(Arc<T>, Arc<Lifetime>)> {
        let entry = self.entries.get_mut(&registration_id)?;
        let lifetime = entry
            .unclaimed
            .take()
            .or_else(|| entry.lifetime.upgrade())?;
        Some((Arc::clone(&entry.core), lifetime))
    }

    pub(crate) fn get(&self, registration_id: i64) -> Option<&Arc<T>> {
        self.entries.get(&registration_id).map(|entry| &entry.core)
    }

    /// Takes a resource out. The entry must be dropped outside the conductor's lock.
    pub(crate) fn remove(&mut self, registration_id: i64) -> Option<Entry<T>> {
        self.entries.remove(&registration_id)
    }

    pub(crate) fn cores(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.values().map(|entry| &entry.core)
    }
}

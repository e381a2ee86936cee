//! [`Counter`]: a counter that the client added.

pub(crate) mod core;

use std::sync::Arc;

use aeron_memory::counters::{AtomicCounter, MAX_KEY_LENGTH, MAX_LABEL_LENGTH};

use crate::error::{CloseCause, Error, Result};
use crate::lifetime::Lifetime;

use self::core::CounterCore;

/// A counter that the client added. All clones are one counter. The counter is closed by [`close`](Self::close), or
/// when the last clone is dropped. Usable from any thread.
///
/// A static counter stays in the driver when it is closed. Any other counter is freed, and its id may be reused for
/// another counter. Do not write to a closed counter. A client that reconnects keeps the value while it has no driver,
/// and gives it to the counter of the next driver.
#[derive(Clone)]
pub struct Counter {
    core: Arc<CounterCore>,
    lifetime: Arc<Lifetime>,
}

impl Counter {
    pub(crate) fn new(core: Arc<CounterCore>, lifetime: Arc<Lifetime>) -> Self {
        Self { core, lifetime }
    }

    /// Returns the id that identifies the counter to the driver. The application chooses it for a static counter.
    pub fn registration_id(&self) -> i64 {
        self.core.registration_id()
    }

    /// Returns the correlation id of the command that added the counter.
    pub fn correlation_id(&self) -> i64 {
        self.core.correlation_id()
    }

    /// Whether the counter outlives the client.
    pub fn is_static(&self) -> bool {
        self.core.is_static()
    }

    /// Returns the counter's label; `None` after the counter was freed.
    pub fn label(&self) -> Option<String> {
        self.lifetime.client().link().counters.label(self.id())
    }

    /// Returns the state of the counter's record: 1 allocated, −1 reclaimed.
    pub fn state(&self) -> i32 {
        self.lifetime
            .client()
            .link()
            .counters
            .state(self.id())
            .unwrap_or_default()
    }

    /// Whether the counter, or its client, is closed.
    pub fn is_closed(&self) -> bool {
        self.core.state.is_closed()
    }

    /// Returns the cause of the close.
    pub fn close_cause(&self) -> CloseCause {
        self.core.state.cause()
    }

    /// Closes the counter without waiting for the driver. Does nothing if it is already closed.
    pub fn close(&self) {
        self.lifetime.close();
    }
}

/// The value.
impl Counter {
    /// Returns the counter id.
    pub fn id(&self) -> i32 {
        self.core.id()
    }

    /// Returns the value (acquire).
    #[inline]
    pub fn get(&self) -> i64 {
        self.core.value.with(AtomicCounter::get)
    }

    /// Stores a value (release).
    #[inline]
    pub fn set(&self, value: i64) {
        self.core.value.with(|counter| counter.set(value));
    }

    /// Adds `delta` (wrapping) and returns the previous value. Safe with several writers.
    #[inline]
    pub fn fetch_add(&self, delta: i64) -> i64 {
        self.core.value.with(|counter| counter.fetch_add(delta))
    }

    /// Adds `delta` (wrapping) as the only writer.
    #[inline]
    pub fn add_release(&self, delta: i64) {
        self.core.value.with(|counter| counter.add_release(delta));
    }

    /// Raises a lower value to `proposed`, as the only writer. Returns whether the value was raised.
    #[inline]
    pub fn propose_max(&self, proposed: i64) -> bool {
        self.core
            .value
            .with(|counter| counter.propose_max(proposed))
    }

    /// Sets the reference id; its meaning depends on the counter's type.
    pub fn set_reference_id(&self, reference_id: i64) {
        self.core
            .value
            .with(|counter| counter.set_reference_id(reference_id));
    }

    /// Stores `new` if the value is `current`. Returns whether `new` was stored.
    pub fn compare_and_set(&self, current: i64, new: i64) -> bool {
        self.core
            .value
            .with(|counter| counter.compare_and_set(current, new))
    }
}

impl std::fmt::Debug for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counter")
            .field("id", &self.id())
            .field("registration_id", &self.registration_id())
            .field("value", &self.get())
            .field("is_static", &self.is_static())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Refuses a key or label that the driver would truncate.
pub(crate) fn check_lengths(key: &[u8], label: &str) -> Result<()> {
    let check = |what: &str, length: usize, limit: usize| match length <= limit {
        true => Ok(()),
        false => Err(Error::InvalidArgument(format!(
            "{what} of a counter has {length} bytes, the limit is {limit}"
        ))),
    };
    check("key", key.len(), MAX_KEY_LENGTH)?;
    check("label", label.len(), MAX_LABEL_LENGTH)
}

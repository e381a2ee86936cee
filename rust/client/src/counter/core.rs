//! [`CounterCore`]: the conductor's view of a counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use crate::error::CloseCause;
use crate::lifetime::Registration;
use crate::replaceable::Replaceable;
use crate::state::OpenState;

/// Type, key and label of a counter, as the application gave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CounterDescription {
    pub(crate) type_id: i32,
    pub(crate) key: Vec<u8>,
    pub(crate) label: String,
    /// Registration id of a static counter, which the application chose.
    pub(crate) static_registration_id: Option<i64>,
}

/// The conductor's view of a counter.
pub(crate) struct CounterCore {
    pub(super) value: Replaceable<AtomicCounter<SharedBuffer>>,
    pub(crate) registration: Arc<Registration>,
    pub(crate) description: CounterDescription,
    /// Correlation id of the command that added the counter to the current driver.
    correlation_id: AtomicI64,
    pub(super) state: OpenState,
}

impl CounterCore {
    pub(crate) fn new(
        value: AtomicCounter<SharedBuffer>,
        registration: Arc<Registration>,
        description: CounterDescription,
        can_be_replaced: bool,
    ) -> Self {
        Self {
            value: Replaceable::new(value, can_be_replaced),
            correlation_id: AtomicI64::new(registration.key()),
            registration,
            description,
            state: OpenState::default(),
        }
    }

    pub(crate) fn close(&self, cause: &CloseCause) {
        self.state.close(cause.clone());
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Keeps the value in private memory until the next driver has the counter.
    pub(crate) fn suspend(&self) {
        self.state.suspend();
        self.value.replace(|counter| {
            let kept = AtomicCounter::private(counter.id(), counter.get());
            kept.set_reference_id(counter.reference_id());
            kept
        });
    }

    /// Continues in the next driver, with the current value.
    pub(crate) fn resume(&self, next: &AtomicCounter<SharedBuffer>, correlation_id: i64) {
        self.value.replace(|counter| {
            next.set_reference_id(counter.reference_id());
            next.set(counter.get());
            next.clone()
        });
        self.correlation_id.store(correlation_id, Ordering::Relaxed);
        self.state.resume();
    }

    pub(crate) fn is_static(&self) -> bool {
        self.description.static_registration_id.is_some()
    }

    pub(crate) fn id(&self) -> i32 {
        self.value.with(AtomicCounter::id)
    }

    pub(crate) fn correlation_id(&self) -> i64 {
        self.correlation_id.load(Ordering::Relaxed)
    }

    pub(crate) fn registration_id(&self) -> i64 {
        self.description
            .static_registration_id
            .unwrap_or_else(|| self.correlation_id())
    }
}

//! [`CounterCore`]: the conductor's view of a counter.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use crate::error::CloseCause;
use crate::state::OpenState;

/// The conductor's view of a counter.
pub(crate) struct CounterCore {
    pub(super) value: AtomicCounter<SharedBuffer>,
    pub(super) registration_id: i64,
    pub(super) correlation_id: i64,
    pub(super) is_static: bool,
    pub(super) state: OpenState,
}

impl CounterCore {
    pub(crate) fn new(
        value: AtomicCounter<SharedBuffer>,
        correlation_id: i64,
        registration_id: i64,
        is_static: bool,
    ) -> Self {
        Self {
            value,
            registration_id,
            correlation_id,
            is_static,
            state: OpenState::default(),
        }
    }

    pub(crate) fn close(&self, cause: &CloseCause) {
        self.state.close(cause.clone());
    }

    pub(crate) fn is_static(&self) -> bool {
        self.is_static
    }

    pub(crate) fn id(&self) -> i32 {
        self.value.id()
    }

    pub(crate) fn registration_id(&self) -> i64 {
        self.registration_id
    }
}

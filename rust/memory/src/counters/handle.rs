//! [`AtomicCounter`]: a handle on the value of one counter. Driver, archive and clients update counters through
//! handles.

use super::{
    OWNER_ID_OFFSET, REFERENCE_ID_OFFSET, REGISTRATION_ID_OFFSET, VALUE_OFFSET, VALUE_RECORD_LENGTH,
};
use crate::buffer::SharedBuffer;
use crate::words::Words;

/// Handle on the value of one counter, for example a position, a limit, a count or a time.
///
/// Any number of handles may exist. The relaxed and release stores are for counters with one writer. For a counter with
/// several writers, use `fetch_add` and `compare_and_set`.
#[derive(Clone, Debug)]
pub struct AtomicCounter<W> {
    record: W,
    id: i32,
}

impl AtomicCounter<SharedBuffer> {
    /// Creates a counter in private memory, which no other process sees, with this id and value.
    pub fn private(id: i32, value: i64) -> Self {
        let counter = Self::new(SharedBuffer::heap(VALUE_RECORD_LENGTH), id);
        counter.set(value);
        counter
    }
}

impl<W: Words> AtomicCounter<W> {
    pub(super) fn new(record: W, id: i32) -> Self {
        Self { record, id }
    }

    /// Returns the counter id.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Returns the value (acquire). The load also makes the writer's earlier stores visible.
    #[inline]
    pub fn get(&self) -> i64 {
        self.record.load_i64_acquire(VALUE_OFFSET)
    }

    /// Returns the value without ordering. Only for the counter's only writer.
    #[inline]
    pub fn get_relaxed(&self) -> i64 {
        self.record.load_i64_relaxed(VALUE_OFFSET)
    }

    /// Stores a value and publishes all earlier stores (release).
    #[inline]
    pub fn set(&self, value: i64) {
        self.record.store_i64_release(VALUE_OFFSET, value);
    }

    /// Stores a value without publishing anything else.
    #[inline]
    pub fn set_relaxed(&self, value: i64) {
        self.record.store_i64_relaxed(VALUE_OFFSET, value);
    }

    /// Adds `delta` (wrapping) and returns the previous value. Safe with several writers.
    #[inline]
    pub fn fetch_add(&self, delta: i64) -> i64 {
        self.record.fetch_add_i64(VALUE_OFFSET, delta)
    }

    /// Adds `delta` (wrapping) as the only writer, without a locked instruction.
    #[inline]
    pub fn add_release(&self, delta: i64) {
        self.set(self.get_relaxed().wrapping_add(delta));
    }

    /// Raises a lower value to `proposed`, as the only writer. Returns whether the value was raised.
    #[inline]
    pub fn propose_max(&self, proposed: i64) -> bool {
        let raised = self.get_relaxed() < proposed;
        if raised {
            self.set(proposed);
        }
        raised
    }

    /// Stores `new` if the value is `current`. Returns whether `new` was stored.
    pub fn compare_and_set(&self, current: i64, new: i64) -> bool {
        self.record
            .compare_exchange_i64(VALUE_OFFSET, current, new)
            .is_ok()
    }

    /// Returns the registration id of the resource for which the counter was created.
    pub fn registration_id(&self) -> i64 {
        self.record.load_i64_acquire(REGISTRATION_ID_OFFSET)
    }

    /// Returns the id of the client that owns the counter; [`NULL_VALUE`](super::NULL_VALUE) if there is no owner.
    pub fn owner_id(&self) -> i64 {
        self.record.load_i64_relaxed(OWNER_ID_OFFSET)
    }

    /// Returns the reference id; its meaning depends on the counter's type.
    pub fn reference_id(&self) -> i64 {
        self.record.load_i64_relaxed(REFERENCE_ID_OFFSET)
    }

    /// Sets the reference id.
    pub fn set_reference_id(&self, reference_id: i64) {
        self.record
            .store_i64_release(REFERENCE_ID_OFFSET, reference_id);
    }
}

//! One counter's value.

use super::{OWNER_ID_OFFSET, REFERENCE_ID_OFFSET, REGISTRATION_ID_OFFSET, VALUE_OFFSET};
use crate::words::Words;

/// The value of one counter, for whoever holds its id: positions, limits, counts, timestamps.
///
/// Any number of handles may exist. The plain and release stores are for counters with one writer; the additions for the others.
#[derive(Clone, Debug)]
pub struct AtomicCounter<W> {
    record: W,
    id: i32,
}

impl<W: Words> AtomicCounter<W> {
    pub(super) fn new(record: W, id: i32) -> Self {
        Self { record, id }
    }

    /// Which counter this is.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The value, and all that its writer stored before it.
    #[inline]
    pub fn get(&self) -> i64 {
        self.record.load_i64_acquire(VALUE_OFFSET)
    }

    /// The value, for its only writer.
    #[inline]
    pub fn get_relaxed(&self) -> i64 {
        self.record.load_i64_relaxed(VALUE_OFFSET)
    }

    /// Stores a value and publishes all that was stored before it.
    #[inline]
    pub fn set(&self, value: i64) {
        self.record.store_i64_release(VALUE_OFFSET, value);
    }

    /// Stores a value without publishing anything else.
    #[inline]
    pub fn set_relaxed(&self, value: i64) {
        self.record.store_i64_relaxed(VALUE_OFFSET, value);
    }

    /// Adds `delta` (wrapping) and answers the value before; safe with several writers.
    #[inline]
    pub fn fetch_add(&self, delta: i64) -> i64 {
        self.record.fetch_add_i64(VALUE_OFFSET, delta)
    }

    /// Adds `delta` (wrapping) as the only writer, without a locked instruction.
    #[inline]
    pub fn add_release(&self, delta: i64) {
        self.set(self.get_relaxed().wrapping_add(delta));
    }

    /// Raises the value to `proposed` as the only writer; answers whether it was lower.
    #[inline]
    pub fn propose_max(&self, proposed: i64) -> bool {
        let raised = self.get_relaxed() < proposed;
        if raised {
            self.set(proposed);
        }
        raised
    }

    /// Stores `new` if the value is `current`; answers whether it was.
    pub fn compare_and_set(&self, current: i64, new: i64) -> bool {
        self.record
            .compare_exchange_i64(VALUE_OFFSET, current, new)
            .is_ok()
    }

    /// The id of the registration that the counter was made for.
    pub fn registration_id(&self) -> i64 {
        self.record.load_i64_acquire(REGISTRATION_ID_OFFSET)
    }

    /// The client that owns the counter, [`NULL_VALUE`](super::NULL_VALUE) for none.
    pub fn owner_id(&self) -> i64 {
        self.record.load_i64_relaxed(OWNER_ID_OFFSET)
    }

    /// What the counter refers to; its meaning depends on the type.
    pub fn reference_id(&self) -> i64 {
        self.record.load_i64_relaxed(REFERENCE_ID_OFFSET)
    }

    /// Sets what the counter refers to.
    pub fn set_reference_id(&self, reference_id: i64) {
        self.record
            .store_i64_release(REFERENCE_ID_OFFSET, reference_id);
    }
}

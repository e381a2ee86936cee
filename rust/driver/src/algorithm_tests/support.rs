//! Units of time, and a counter for tests.

use crate::testing::PLAIN_COUNTER;
use aeron_memory::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, CountersManager};

pub const US: i64 = 1_000;
pub const MS: i64 = 1_000 * US;
pub const SECOND: i64 = 1_000 * MS;

/// Returns a new counter.
pub fn counter() -> AtomicCounter<SharedBuffer> {
    let (metadata, values) = (SharedBuffer::heap(512), SharedBuffer::heap(128));
    let mut manager = CountersManager::new(metadata, values, 0).unwrap();
    manager.allocate(&PLAIN_COUNTER, 0).unwrap()
}

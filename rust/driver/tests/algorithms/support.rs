//! What several of these tests need.

use aeron_memory::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, CountersManager, NewCounter};

pub const US: i64 = 1_000;
pub const MS: i64 = 1_000 * US;
pub const SECOND: i64 = 1_000 * MS;

/// A counter of its own.
pub fn counter() -> AtomicCounter<SharedBuffer> {
    let (metadata, values) = (SharedBuffer::heap(512), SharedBuffer::heap(128));
    let mut manager = CountersManager::new(metadata, values, 0).unwrap();
    let new = NewCounter {
        type_id: 1001,
        key: b"",
        label: b"",
        registration_id: 0,
        owner_id: 0,
        reference_id: 0,
        value: 0,
    };
    manager.allocate(&new, 0).unwrap()
}

//! Counters: 64-bit values with an id, a type, a key and a label, shared by driver, clients and tools (layouts, section 5).
//!
//! A counter is two records: 128 bytes in the values section and 512 bytes in the metadata section. The driver's conductor alone
//! allocates and frees them ([`CountersManager`]); everybody reads them ([`CountersReader`]) and updates the values they own
//! ([`AtomicCounter`]).
//!
//! A record may be freed and reused while it is read. So what is read of a counter is handed out only if its state says "allocated"
//! before and after the read; ids outside the section simply have no counter.

mod handle;
pub mod keys;
mod manager;
mod reader;
pub mod system;
pub mod types;

use aeron_layout::counters::{CounterMetadataLayout, CounterValueLayout};
use aeron_layout::{I32, I64, offset};

pub use handle::AtomicCounter;
pub use manager::{AllocateError, CountersManager, FreeError, NewCounter};
pub use reader::{CounterRecord, CountersReader, InvalidCountersLength};

/// Bytes of a counter in the values section.
pub const VALUE_RECORD_LENGTH: usize = CounterValueLayout::LENGTH;
/// Bytes of a counter in the metadata section.
pub const METADATA_RECORD_LENGTH: usize = CounterMetadataLayout::LENGTH;
/// The longest key in bytes.
pub const MAX_KEY_LENGTH: usize = 112;
/// The longest label in bytes.
pub const MAX_LABEL_LENGTH: usize = 380;
/// No counter, no owner, no registration.
pub const NULL_VALUE: i64 = -1;
/// The deadline of a counter that is not free.
pub const NOT_FREE_TO_REUSE: i64 = i64::MAX;

/// The state of a record that was never used: no counter follows.
pub const STATE_UNUSED: i32 = 0;
/// The state of a counter in use.
pub const STATE_ALLOCATED: i32 = 1;
/// The state of a freed counter.
pub const STATE_RECLAIMED: i32 = -1;

// Offsets in a values record.
const VALUE_OFFSET: usize = offset!(CounterValueLayout, value: I64);
const REGISTRATION_ID_OFFSET: usize = offset!(CounterValueLayout, registration_id: I64);
const OWNER_ID_OFFSET: usize = offset!(CounterValueLayout, owner_id: I64);
const REFERENCE_ID_OFFSET: usize = offset!(CounterValueLayout, reference_id: I64);

// Offsets in a metadata record.
const STATE_OFFSET: usize = offset!(CounterMetadataLayout, state: I32);
const TYPE_ID_OFFSET: usize = offset!(CounterMetadataLayout, type_id: I32);
const FREE_FOR_REUSE_DEADLINE_OFFSET: usize =
    offset!(CounterMetadataLayout, free_for_reuse_deadline_ms: I64);
const KEY_OFFSET: usize = offset!(CounterMetadataLayout, key: [u8; MAX_KEY_LENGTH]);
const LABEL_LENGTH_OFFSET: usize = offset!(CounterMetadataLayout, label_length: I32);
const LABEL_OFFSET: usize = offset!(CounterMetadataLayout, label: [u8; MAX_LABEL_LENGTH]);

//! Counters: 64-bit values with an id, a type, a key and a label, shared by driver, clients and tools
//! (`docs/spec/01-memory-layouts.md`, section 5).
//!
//! A counter has two records: 128 bytes in the values section and 512 bytes in the metadata section. Only the driver's
//! conductor allocates and frees counters ([`CountersManager`]). Every process can read them ([`CountersReader`]) and
//! update the values of its own counters ([`AtomicCounter`]).
//!
//! A record may be freed and reused during a read. Therefore a read is valid only if the state is "allocated" before
//! and after the read. Ids outside the section have no counter.

mod handle;
pub mod keys;
mod manager;
pub mod meaning;
mod reader;
mod recording_position;
pub mod system;
pub mod types;

use aeron_layout::counters::{CounterMetadataLayout, CounterValueLayout};
use aeron_layout::{I32, I64, offset};

pub use handle::AtomicCounter;
pub use manager::{AllocateError, CountersManager, FreeError, NewCounter};
pub use reader::{CounterRecord, CountersReader, InvalidCountersLength};
pub use recording_position::RecordingPositionKey;

/// Length of the record of a counter in the values section, in bytes.
pub const VALUE_RECORD_LENGTH: usize = CounterValueLayout::LENGTH;
/// Length of the record of a counter in the metadata section, in bytes.
pub const METADATA_RECORD_LENGTH: usize = CounterMetadataLayout::LENGTH;
/// Maximum length of a key in bytes.
pub const MAX_KEY_LENGTH: usize = 112;
/// Maximum length of a label in bytes.
pub const MAX_LABEL_LENGTH: usize = 380;
/// Id that means no counter, no owner or no registration.
pub const NULL_VALUE: i64 = -1;
/// Reuse deadline of a counter that is in use.
pub const NOT_FREE_TO_REUSE: i64 = i64::MAX;

/// State of a record that was never used. No counters follow it.
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

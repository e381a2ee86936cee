//! [`CountersReader`]: finds and reads counters, for any process.

use super::{
    AtomicCounter, FREE_FOR_REUSE_DEADLINE_OFFSET, KEY_OFFSET, LABEL_LENGTH_OFFSET, LABEL_OFFSET,
    MAX_KEY_LENGTH, MAX_LABEL_LENGTH, METADATA_RECORD_LENGTH, STATE_ALLOCATED, STATE_OFFSET,
    STATE_UNUSED, TYPE_ID_OFFSET, VALUE_RECORD_LENGTH, system,
};
use crate::words::Words;

/// The lengths of the two sections are not valid: a length is not a multiple of 8, the values have 2^31 bytes or more,
/// or the metadata is shorter than four times the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "counters sections of {metadata_length} and {values_length} bytes: metadata must be at least four times the values, both \
     multiples of 8 and the values below 2^31"
)]
pub struct InvalidCountersLength {
    /// Length of the metadata section in bytes.
    pub metadata_length: usize,
    /// Length of the values section in bytes.
    pub values_length: usize,
}

/// Snapshot of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRecord {
    /// Counter id: the index of its records.
    pub id: i32,
    /// Type id, see [`types`](super::types).
    pub type_id: i32,
    /// Key, padded with zeros.
    pub key: [u8; MAX_KEY_LENGTH],
    /// Label.
    pub label: String,
    /// Value.
    pub value: i64,
    /// Registration id of the resource for which the counter was created.
    pub registration_id: i64,
    /// Client id of the owner; -1 if the counter has no owner.
    pub owner_id: i64,
    /// Reference id.
    pub reference_id: i64,
}

/// All counters of a driver. May be used by any number of threads and processes at once.
#[derive(Clone, Debug)]
pub struct CountersReader<W> {
    pub(super) metadata: W,
    pub(super) values: W,
}

impl<W: Words> CountersReader<W> {
    /// Creates a reader of the counters in the two sections.
    pub fn new(metadata: W, values: W) -> Result<Self, InvalidCountersLength> {
        let (metadata_length, values_length) = (metadata.len(), values.len());
        let valid = metadata_length / 4 >= values_length
            && values_length <= i32::MAX as usize
            && metadata_length.is_multiple_of(8)
            && values_length.is_multiple_of(8);
        match valid {
            true => Ok(Self { metadata, values }),
            false => Err(InvalidCountersLength {
                metadata_length,
                values_length,
            }),
        }
    }

    /// Returns the maximum counter id; -1 if the sections have no room for a counter.
    pub fn max_counter_id(&self) -> i32 {
        (self.values.len() / VALUE_RECORD_LENGTH) as i32 - 1
    }

    /// Returns the state of a record; `None` for an id out of range.
    pub fn state(&self, id: i32) -> Option<i32> {
        let record = self.metadata_offset(id)?;
        Some(self.metadata.load_i32_acquire(record + STATE_OFFSET))
    }

    /// Whether the counter with this id is allocated.
    pub fn is_allocated(&self, id: i32) -> bool {
        self.state(id) == Some(STATE_ALLOCATED)
    }

    /// Returns the value of a record in any state; `None` for an id out of range.
    pub fn value(&self, id: i32) -> Option<i64> {
        Some(self.counter(id)?.get())
    }

    /// Returns a handle on the counter with this id; `None` for an id out of range. Does not check that the counter is
    /// allocated.
    pub fn counter(&self, id: i32) -> Option<AtomicCounter<W>> {
        self.metadata_offset(id)?;
        let record = self
            .values
            .slice(id as usize * VALUE_RECORD_LENGTH, VALUE_RECORD_LENGTH);
        Some(AtomicCounter::new(record, id))
    }

    /// Returns the type of an existing counter.
    pub fn type_id(&self, id: i32) -> Option<i32> {
        self.read_allocated(id, |record| {
            self.metadata.load_i32_relaxed(record + TYPE_ID_OFFSET)
        })
    }

    /// Returns the key of an existing counter.
    pub fn key(&self, id: i32) -> Option<[u8; MAX_KEY_LENGTH]> {
        self.read_allocated(id, |record| self.load_key(record))
    }

    /// Returns the label of an existing counter.
    pub fn label(&self, id: i32) -> Option<String> {
        self.read_allocated(id, |record| self.load_label(record))
    }

    /// Returns a snapshot of an existing counter.
    pub fn record(&self, id: i32) -> Option<CounterRecord> {
        let counter = self.counter(id)?;
        self.read_allocated(id, |record| CounterRecord {
            id,
            type_id: self.metadata.load_i32_relaxed(record + TYPE_ID_OFFSET),
            key: self.load_key(record),
            label: self.load_label(record),
            value: counter.get(),
            registration_id: counter.registration_id(),
            owner_id: counter.owner_id(),
            reference_id: counter.reference_id(),
        })
    }

    /// Returns the time from which a freed counter may be reused, in epoch milliseconds. Returns
    /// [`NOT_FREE_TO_REUSE`](super::NOT_FREE_TO_REUSE) for a counter in use, and `None` for an id out of range.
    pub fn free_for_reuse_deadline_ms(&self, id: i32) -> Option<i64> {
        let record = self.metadata_offset(id)?;
        Some(
            self.metadata
                .load_i64_acquire(record + FREE_FOR_REUSE_DEADLINE_OFFSET),
        )
    }

    /// Returns the ids of all existing counters, in order.
    pub fn ids(&self) -> impl Iterator<Item = i32> + '_ {
        (0..=self.max_counter_id())
            .map(|id| (id, self.state(id)))
            .take_while(|(_, state)| *state != Some(STATE_UNUSED))
            .filter(|(_, state)| *state == Some(STATE_ALLOCATED))
            .map(|(id, _)| id)
    }

    /// Returns snapshots of all existing counters, in the order of their ids.
    pub fn records(&self) -> impl Iterator<Item = CounterRecord> + '_ {
        self.ids().filter_map(|id| self.record(id))
    }

    /// Returns the first counter of a type whose key satisfies `matches`.
    pub fn find_by_key(
        &self,
        type_id: i32,
        matches: impl Fn(&[u8; MAX_KEY_LENGTH]) -> bool,
    ) -> Option<i32> {
        self.ids().find(|&id| {
            let type_and_key = self.read_allocated(id, |record| {
                let found = self.metadata.load_i32_relaxed(record + TYPE_ID_OFFSET);
                (found == type_id).then(|| self.load_key(record))
            });
            type_and_key.flatten().is_some_and(|key| matches(&key))
        })
    }

    /// Returns the first counter of a type and registration id. A counter may become visible a moment after its
    /// announcement: search again if necessary.
    pub fn find_by_registration(&self, type_id: i32, registration_id: i64) -> Option<i32> {
        self.ids().find(|&id| {
            let registered = self
                .counter(id)
                .is_some_and(|c| c.registration_id() == registration_id);
            registered && self.type_id(id) == Some(type_id)
        })
    }

    /// Appends `text` to a label, truncated to the space in the label. Only the process that may write the label may
    /// call this method (`docs/spec/01-memory-layouts.md`, section 5.6).
    pub fn append_to_label(&self, id: i32, text: &str) {
        let Some(record) = self.metadata_offset(id) else {
            return;
        };
        let length = self.label_length(record);
        let text = &text.as_bytes()[..text.len().min(MAX_LABEL_LENGTH - length)];
        self.metadata.copy_in(record + LABEL_OFFSET + length, text);
        self.metadata
            .store_i32_release(record + LABEL_LENGTH_OFFSET, (length + text.len()) as i32);
    }

    /// Returns the version of the driver's control protocol; 0 if the driver has no such counter.
    pub fn control_protocol_version(&self) -> i32 {
        let id = system::SystemCounter::ControlProtocolVersion.id();
        let counter = self.counter(id).filter(|counter| {
            self.type_id(id) == Some(super::types::SYSTEM)
                && counter.registration_id() == i64::from(id)
        });
        counter.map_or(0, |counter| counter.get() as i32)
    }

    /// Returns the offset of the metadata record of `id`, if the id is in range.
    pub(super) fn metadata_offset(&self, id: i32) -> Option<usize> {
        (0..=self.max_counter_id())
            .contains(&id)
            .then(|| id as usize * METADATA_RECORD_LENGTH)
    }

    /// Returns the result of `read` for the metadata record, if the counter is allocated before and after the read.
    fn read_allocated<T>(&self, id: i32, read: impl FnOnce(usize) -> T) -> Option<T> {
        let record = self.metadata_offset(id)?;
        if !self.is_allocated(id) {
            return None;
        }
        let found = read(record);
        self.metadata.fence_acquire();
        (self.metadata.load_i32_relaxed(record + STATE_OFFSET) == STATE_ALLOCATED).then_some(found)
    }

    fn load_key(&self, record: usize) -> [u8; MAX_KEY_LENGTH] {
        let mut key = [0; MAX_KEY_LENGTH];
        self.metadata
            .copy_out_relaxed(record + KEY_OFFSET, &mut key);
        key
    }

    /// Returns the label. Removes the NUL bytes that some drivers write at its end.
    fn load_label(&self, record: usize) -> String {
        let mut label = [0; MAX_LABEL_LENGTH];
        let label = &mut label[..self.label_length(record)];
        self.metadata.copy_out_relaxed(record + LABEL_OFFSET, label);
        let text = String::from_utf8_lossy(label);
        text.trim_end_matches('\0').to_owned()
    }

    fn label_length(&self, record: usize) -> usize {
        let length = self.metadata.load_i32_acquire(record + LABEL_LENGTH_OFFSET);
        length.clamp(0, MAX_LABEL_LENGTH as i32) as usize
    }
}

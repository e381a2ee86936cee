//! [`CountersManager`]: allocates and frees counters, for the driver's conductor.

use std::collections::VecDeque;

use super::{
    AtomicCounter, CountersReader, FREE_FOR_REUSE_DEADLINE_OFFSET, InvalidCountersLength,
    KEY_OFFSET, LABEL_LENGTH_OFFSET, LABEL_OFFSET, MAX_KEY_LENGTH, MAX_LABEL_LENGTH,
    NOT_FREE_TO_REUSE, OWNER_ID_OFFSET, REFERENCE_ID_OFFSET, REGISTRATION_ID_OFFSET,
    STATE_ALLOCATED, STATE_OFFSET, STATE_RECLAIMED, TYPE_ID_OFFSET, VALUE_OFFSET,
    VALUE_RECORD_LENGTH,
};
use crate::words::Words;

/// No counter id is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Max counter id ({max_counter_id}) exceeded")]
pub struct AllocateError {
    /// Maximum counter id.
    pub max_counter_id: i32,
}

/// A counter was not freed, because it does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("counter {id} is not allocated")]
pub struct FreeError {
    /// Id of the counter that was to be freed.
    pub id: i32,
}

/// Properties of a counter to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCounter<'a> {
    /// Type id.
    pub type_id: i32,
    /// Key; truncated to 112 bytes.
    pub key: &'a [u8],
    /// Label, usually ASCII; truncated to 380 bytes.
    pub label: &'a [u8],
    /// Registration id of the resource for which the counter is created.
    pub registration_id: i64,
    /// Client id of the owner. The counter is freed when this client ends.
    pub owner_id: i64,
    /// Reference id.
    pub reference_id: i64,
    /// Initial value.
    pub value: i64,
}

/// Allocates and frees the counters of a driver. Owned by one thread; readers may read concurrently.
#[derive(Debug)]
pub struct CountersManager<W> {
    reader: CountersReader<W>,
    next_id: i32,
    free_to_reuse_timeout_ms: i64,
    /// Freed ids in the order of freeing, each with the time from which it may be reused, in epoch milliseconds.
    free: VecDeque<(i32, i64)>,
}

impl<W: Words> CountersManager<W> {
    /// Creates the manager of two zeroed sections. A freed id is reused after `free_to_reuse_timeout_ms`.
    pub fn new(
        metadata: W,
        values: W,
        free_to_reuse_timeout_ms: i64,
    ) -> Result<Self, InvalidCountersLength> {
        Ok(Self {
            reader: CountersReader::new(metadata, values)?,
            next_id: 0,
            free_to_reuse_timeout_ms,
            free: VecDeque::new(),
        })
    }

    /// Returns a reader of these counters.
    pub fn reader(&self) -> &CountersReader<W> {
        &self.reader
    }

    /// Creates a counter at `now_ms` (epoch). Uses the first freed id of which the reuse time is reached. If there is
    /// none, uses a new id.
    pub fn allocate(
        &mut self,
        new: &NewCounter<'_>,
        now_ms: i64,
    ) -> Result<AtomicCounter<W>, AllocateError> {
        let id = self.take_id(now_ms)?;
        self.store_values(id, new);
        self.store_metadata(id, new);
        Ok(self
            .reader
            .counter(id)
            .expect("ids that are handed out are in range"))
    }

    /// Frees a counter at `now_ms` (epoch). Its type, label and values do not change until the id is reused.
    pub fn free(&mut self, id: i32, now_ms: i64) -> Result<(), FreeError> {
        let Some(record) = self
            .reader
            .metadata_offset(id)
            .filter(|_| self.reader.is_allocated(id))
        else {
            return Err(FreeError { id });
        };
        debug_assert!(
            self.free.iter().all(|(freed, _)| *freed != id),
            "counter {id} is freed twice, and would be allocated twice"
        );
        let metadata = &self.reader.metadata;
        metadata.store_i32_release(record + STATE_OFFSET, STATE_RECLAIMED);
        // A reader that sees zeros in the key must also see the new state when it checks the state again.
        metadata.fence_release();
        metadata.copy_in_relaxed(record + KEY_OFFSET, &[0; MAX_KEY_LENGTH]);
        let deadline_ms = now_ms.saturating_add(self.free_to_reuse_timeout_ms);
        metadata.store_i64_relaxed(record + FREE_FOR_REUSE_DEADLINE_OFFSET, deadline_ms);
        self.free.push_back((id, deadline_ms));
        Ok(())
    }

    /// Returns the number of counters that can still be allocated, including freed ones whose reuse time has not come
    /// yet.
    pub fn available(&self) -> usize {
        let fresh = self.reader.max_counter_id() + 1 - self.next_id;
        debug_assert!(
            fresh >= 0,
            "more counters were allocated than the sections have room for: next id {}",
            self.next_id
        );
        debug_assert!(
            self.free.len() <= self.next_id as usize,
            "{} counters are free, but only {} were ever allocated",
            self.free.len(),
            self.next_id
        );
        fresh as usize + self.free.len()
    }

    /// Replaces the label of a counter.
    pub fn set_label(&self, id: i32, label: &[u8]) {
        let Some(record) = self.reader.metadata_offset(id) else {
            return;
        };
        self.store_label(record, label);
    }

    fn take_id(&mut self, now_ms: i64) -> Result<i32, AllocateError> {
        // If the wall clock was set back, a deadline may be later than any that is set now. Such an id would not be
        // reused until the clock reaches the deadline. The time since the id was freed is unknown, so the timeout
        // begins again.
        let latest_ms = now_ms.saturating_add(self.free_to_reuse_timeout_ms);
        for (_, deadline_ms) in &mut self.free {
            *deadline_ms = latest_ms.min(*deadline_ms);
        }
        let found = self
            .free
            .iter()
            .position(|&(_, deadline_ms)| deadline_ms <= now_ms);
        if let Some(first) = found {
            let (id, _) = self.free.remove(first).expect("found at this place");
            debug_assert!(
                id < self.next_id,
                "the free counter {id} was never allocated"
            );
            return Ok(id);
        }
        let max_counter_id = self.reader.max_counter_id();
        if self.next_id > max_counter_id {
            return Err(AllocateError { max_counter_id });
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }

    fn store_values(&self, id: i32, new: &NewCounter<'_>) {
        let record = id as usize * VALUE_RECORD_LENGTH;
        let values = &self.reader.values;
        values.store_i64_release(record + REGISTRATION_ID_OFFSET, new.registration_id);
        values.store_i64_relaxed(record + OWNER_ID_OFFSET, new.owner_id);
        values.store_i64_relaxed(record + REFERENCE_ID_OFFSET, new.reference_id);
        values.store_i64_release(record + VALUE_OFFSET, new.value);
    }

    /// Stores the metadata with the state last: a reader that sees the state sees all other fields.
    fn store_metadata(&self, id: i32, new: &NewCounter<'_>) {
        let record = self
            .reader
            .metadata_offset(id)
            .expect("ids that are handed out are in range");
        let metadata = &self.reader.metadata;
        metadata.store_i32_relaxed(record + TYPE_ID_OFFSET, new.type_id);
        metadata.store_i64_relaxed(record + FREE_FOR_REUSE_DEADLINE_OFFSET, NOT_FREE_TO_REUSE);
        let key = &new.key[..new.key.len().min(MAX_KEY_LENGTH)];
        metadata.copy_in_relaxed(record + KEY_OFFSET, key);
        self.store_label(record, new.label);
        metadata.store_i32_release(record + STATE_OFFSET, STATE_ALLOCATED);
    }

    fn store_label(&self, record: usize, label: &[u8]) {
        let label = &label[..label.len().min(MAX_LABEL_LENGTH)];
        let metadata = &self.reader.metadata;
        metadata.copy_in_relaxed(record + LABEL_OFFSET, label);
        metadata.store_i32_release(record + LABEL_LENGTH_OFFSET, label.len() as i32);
    }
}

//! Counters: a reader sees a new counter completely or not at all, and a store of a value publishes earlier stores.

use aeron_memory::Words;
use aeron_memory::counters::{AtomicCounter, CountersManager, CountersReader, NewCounter};
use aeron_memory::loom_words::{LoomWords, ModelLayout, Weakness};
use loom::thread;

use crate::{check, check_fails};

// Bytes of the only counter: STATE and LABEL_LENGTH in its metadata record, VALUE in its values record.
const STATE: std::ops::Range<usize> = 0..4;
const LABEL_LENGTH: std::ops::Range<usize> = 128..132;
const VALUE: std::ops::Range<usize> = 0..8;

const NEW: NewCounter<'_> = NewCounter {
    type_id: 1001,
    key: b"key!",
    label: b"text",
    registration_id: 7,
    owner_id: 0,
    reference_id: 0,
    value: 5,
};

/// Creates sections for one counter. Loom checks one word of the key and two words of the label.
fn sections() -> (LoomWords, LoomWords) {
    let metadata = ModelLayout::new(512)
        .narrow(0..8)
        .wide(8)
        .narrow(16..20)
        .unwatched(20..128)
        .narrow(128..140)
        .build();
    let values = ModelLayout::new(128)
        .wide(0)
        .wide(8)
        .wide(16)
        .wide(24)
        .build();
    (metadata, values)
}

fn weakened(words: &LoomWords, weakness: Option<Weakness>) -> LoomWords {
    match weakness {
        Some(weakness) => words.weakened(weakness),
        None => words.clone(),
    }
}

/// Allocates a counter while a reader searches for it.
fn allocate(manager: Option<Weakness>, reader: Option<Weakness>) {
    let (metadata, values) = sections();
    let reader = CountersReader::new(weakened(&metadata, reader), values.clone()).unwrap();
    let mut manager = CountersManager::new(weakened(&metadata, manager), values, 0).unwrap();
    let allocation = thread::spawn(move || manager.allocate(&NEW, 0).unwrap().id());
    if let Some(record) = reader.record(0) {
        let seen = (
            record.type_id,
            &record.key[..4],
            record.label.as_bytes(),
            record.registration_id,
            record.value,
        );
        let expected = (
            NEW.type_id,
            NEW.key,
            NEW.label,
            NEW.registration_id,
            NEW.value,
        );
        assert_eq!(seen, expected, "a counter is not whole");
    }
    allocation.join().unwrap();
}

/// 01-38
#[test]
fn a_new_counter_is_visible_completely_or_not_at_all() {
    check(|| allocate(None, None));
}

#[test]
fn without_releasing_the_state_a_new_counter_is_not_whole() {
    check_fails("not whole", || {
        allocate(Some(Weakness::Release(STATE)), None)
    });
}

#[test]
fn without_acquiring_the_state_a_new_counter_is_not_whole() {
    check_fails("not whole", || {
        allocate(None, Some(Weakness::Acquire(STATE)))
    });
}

/// Frees a counter while a reader reads its key.
fn free(manager: Option<Weakness>, reader: Option<Weakness>) {
    let (metadata, values) = sections();
    let reader = CountersReader::new(weakened(&metadata, reader), values.clone()).unwrap();
    let mut manager = CountersManager::new(weakened(&metadata, manager), values, 0).unwrap();
    manager.allocate(&NEW, 0).unwrap();
    let freeing = thread::spawn(move || manager.free(0, 0).unwrap());
    if let Some(key) = reader.key(0) {
        assert_eq!(key[..4], *NEW.key, "read the key of a freed counter");
    }
    freeing.join().unwrap();
}

/// 01-39
#[test]
fn a_reader_never_gets_the_key_of_a_freed_counter() {
    check(|| free(None, None));
}

#[test]
fn without_the_fence_after_the_state_a_reader_gets_the_key_of_a_freed_counter() {
    // The state is stored with release, which does not order later stores.
    check_fails("freed counter", || free(Some(Weakness::ReleaseFence), None));
}

#[test]
fn without_the_fence_before_the_second_check_a_reader_gets_a_freed_key() {
    check_fails("freed counter", || free(None, Some(Weakness::AcquireFence)));
}

/// A client appends to the label of its counter while a reader reads the label.
fn append(weakness: Option<Weakness>) {
    let (metadata, values) = sections();
    let mut manager = CountersManager::new(metadata.clone(), values.clone(), 0).unwrap();
    manager.allocate(&NEW, 0).unwrap();
    // The bytes after the label differ from those that will be appended.
    manager.set_label(0, b"textless");
    manager.set_label(0, b"text");
    let client = CountersReader::new(weakened(&metadata, weakness), values).unwrap();
    let reading = thread::spawn(move || {
        let label = manager.reader().label(0).unwrap();
        assert!(
            ["text", "textmore"].contains(&label.as_str()),
            "half a label: {label:?}"
        );
    });
    client.append_to_label(0, "more");
    reading.join().unwrap();
}

/// 01-44
#[test]
fn a_reader_sees_a_label_before_or_after_an_append() {
    check(|| append(None));
}

#[test]
fn without_releasing_its_length_a_label_is_seen_half_appended() {
    check_fails("half a label", || {
        append(Some(Weakness::Release(LABEL_LENGTH)))
    });
}

fn counter(metadata: &LoomWords, values: LoomWords) -> AtomicCounter<LoomWords> {
    let reader = CountersReader::new(metadata.clone(), values).unwrap();
    reader.counter(0).unwrap()
}

/// A writer stores data, here in the reference id, and then its position. The reader of the position must see the data.
fn publish(writing: Option<Weakness>, reading: Option<Weakness>) {
    let (metadata, values) = sections();
    let position = counter(&metadata, weakened(&values, writing));
    let seen = counter(&metadata, weakened(&values, reading));
    let data = values.clone();
    let writer = thread::spawn(move || {
        data.store_i64_relaxed(24, 1);
        position.set(64);
    });
    if seen.get() == 64 {
        assert_eq!(values.load_i64_relaxed(24), 1, "the position came first");
    }
    writer.join().unwrap();
}

#[test]
fn a_reader_of_a_position_sees_all_earlier_writes() {
    check(|| publish(None, None));
}

#[test]
fn without_releasing_a_value_earlier_writes_are_not_published() {
    check_fails("came first", || {
        publish(Some(Weakness::Release(VALUE)), None)
    });
}

#[test]
fn without_acquiring_a_value_earlier_writes_are_not_seen() {
    check_fails("came first", || {
        publish(None, Some(Weakness::Acquire(VALUE)))
    });
}

/// Two threads each add 1 to the same counter.
fn count(add: fn(&AtomicCounter<LoomWords>)) {
    let (metadata, values) = sections();
    let counter = counter(&metadata, values);
    let other = counter.clone();
    let thread = thread::spawn(move || add(&other));
    add(&counter);
    thread.join().unwrap();
    assert_eq!(counter.get(), 2, "a count is lost");
}

#[test]
fn counts_of_several_writers_add_up() {
    check(|| {
        count(|counter| {
            counter.fetch_add(1);
        })
    });
}

#[test]
fn the_addition_for_single_writers_loses_counts_of_several_writers() {
    check_fails("a count is lost", || {
        count(|counter| counter.add_release(1))
    });
}

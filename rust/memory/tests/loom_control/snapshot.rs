//! Snapshots: a reader gets a consistent row of values, or none.

use aeron_memory::Snapshot;
use aeron_memory::loom_words::{LoomWords, ModelLayout, Weakness};
use loom::thread;

use crate::{check, check_fails};

const END: std::ops::Range<usize> = 8..16;

fn snapshot(words: &LoomWords, weakness: Option<Weakness>) -> Snapshot<LoomWords, 2> {
    Snapshot::attach(match weakness {
        Some(weakness) => words.weakened(weakness),
        None => words.clone(),
    })
}

/// Publishes rows 1 and 2 while a reader reads. Row n has the values (n, n).
fn publish_and_read(writing: Option<Weakness>, reading: Option<Weakness>) {
    let words = ModelLayout::new(32)
        .wide(0)
        .wide(8)
        .wide(16)
        .wide(24)
        .build();
    let reader = snapshot(&words, reading);
    let reads = thread::spawn(move || {
        if let Some(row) = reader.read() {
            assert_eq!(row.values, [row.change_number; 2], "a row is not whole");
        }
    });
    let writer = snapshot(&words, writing);
    writer.publish([1, 1]);
    writer.publish([2, 2]);
    reads.join().unwrap();
    assert_eq!(writer.read().unwrap().values, [2, 2]);
}

/// A reader never gets values of two different rows.
#[test]
fn a_row_is_read_whole_or_not_at_all() {
    check(|| publish_and_read(None, None));
}

#[test]
fn without_the_release_fence_a_row_is_not_whole() {
    check_fails("not whole", || {
        publish_and_read(Some(Weakness::ReleaseFence), None);
    });
}

#[test]
fn without_the_acquire_fence_a_row_is_not_whole() {
    check_fails("not whole", || {
        publish_and_read(None, Some(Weakness::AcquireFence));
    });
}

#[test]
fn without_releasing_the_second_number_a_row_is_not_whole() {
    check_fails("not whole", || {
        publish_and_read(Some(Weakness::Release(END)), None);
    });
}

#[test]
fn without_acquiring_the_second_number_a_row_is_not_whole() {
    check_fails("not whole", || {
        publish_and_read(None, Some(Weakness::Acquire(END)));
    });
}

//! Connected state: two threads each store one fact, for example "there is a subscriber", and update the state. The
//! final state must match both facts.

use aeron_memory::Words;
use aeron_memory::log::metadata::METADATA_LENGTH;
use aeron_memory::log::{Framing, LogBuffers, Positions};
use aeron_memory::loom_words::{LoomWords, ModelLayout, Weakness};
use loom::thread;

use crate::{check, check_fails};

const TERM_LENGTH: usize = 256;
const METADATA: usize = 3 * TERM_LENGTH;
const IS_CONNECTED: usize = METADATA + 136;
/// Location of the facts in the model: an unused part of the metadata.
const FACTS: [usize; 2] = [METADATA + 1024, METADATA + 1028];

fn words() -> LoomWords {
    ModelLayout::new(METADATA + METADATA_LENGTH)
        .narrow(IS_CONNECTED..IS_CONNECTED + 4)
        .narrow(FACTS[0]..FACTS[1] + 4)
        .build()
}

fn log(words: &LoomWords) -> LogBuffers<LoomWords> {
    let framing = Framing::new(128, 8 * TERM_LENGTH).unwrap();
    LogBuffers::model(words, Positions::model(8), framing)
}

fn both(words: &LoomWords) -> bool {
    FACTS.iter().all(|fact| words.load_i32_acquire(*fact) == 1)
}

/// Stores a fact, then updates the connected state from both facts.
fn tell(words: &LoomWords, fact: usize, value: i32) {
    words.store_i32_release(FACTS[fact], value);
    log(words).metadata().show_connected(|| both(words));
}

/// One thread stores values of the first fact, one after the other. Another thread stores values of the second fact.
fn tell_both(first: &'static [i32], second: &'static [i32], weakness: Option<Weakness>) {
    let words = words();
    let weak = |words: &LoomWords| match &weakness {
        Some(weakness) => words.weakened(weakness.clone()),
        None => words.clone(),
    };
    let other = weak(&words);
    let telling = thread::spawn(move || {
        for value in second {
            tell(&other, 1, *value);
        }
    });
    let mine = weak(&words);
    for value in first {
        tell(&mine, 0, *value);
    }
    telling.join().unwrap();
    let shown = log(&words).metadata().is_connected();
    assert_eq!(shown, both(&words), "an old state is shown");
}

#[test]
fn changes_of_both_threads_at_the_same_time_are_shown() {
    check(|| tell_both(&[1], &[1], None));
}

#[test]
fn a_change_that_one_thread_reverts_is_not_shown() {
    check(|| tell_both(&[1, 0], &[1], None));
}

#[test]
fn a_state_that_is_reverted_and_restored_is_shown() {
    check(|| tell_both(&[1, 0, 1], &[1], None));
}

#[test]
fn without_the_full_fence_neither_thread_sees_the_fact_of_the_other() {
    check_fails("an old state", || {
        tell_both(&[1], &[1], Some(Weakness::FullFence));
    });
}

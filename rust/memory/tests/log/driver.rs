//! What the driver does to logs: unblocking, cleaning, scanning, rebuilding.

use aeron_memory::log::LogBuffers;
use aeron_memory::log::clean::clean;
use aeron_memory::log::unblock::unblock;
use aeron_memory::{SharedBuffer, Words};

use crate::common::*;

#[test]
fn unblocking_turns_the_captured_term_into_the_captured_one_01_74() {
    let memory = SharedBuffer::heap(3 * TERM + 4096);
    memory.copy_in(0, &vector("unblock-term0-before.bin"));
    memory.copy_in(3 * TERM, &vector("unblock-meta.bin"));
    let log = LogBuffers::attach(&memory).unwrap();
    assert!(!unblock(&log, 0));
    assert!(unblock(&log, 64));
    assert!(!unblock(&log, 128));
    assert!(unblock(&log, 192));
    assert_eq!(bytes_of(&memory, 0, 512), vector("unblock-term0-after.bin"));
}

#[test]
fn cleaning_zeroes_up_to_the_target_and_at_most_one_term_01_75() {
    let log = log();
    for partition in 0..3 {
        log.term(partition).copy_in(0, &[0xFF; TERM]);
    }
    assert_eq!(clean(&log, 0, 0), 0);
    assert_eq!(clean(&log, 0, 96), 96);
    assert_eq!(bytes_of(log.term(0), 0, 96), [0; 96]);
    assert_eq!(bytes_of(log.term(0), 96, TERM - 96), [0xFF; TERM - 96]);
    assert_eq!(clean(&log, 96, 2 * TERM as i64), TERM as i64);
    assert_eq!(bytes_of(log.term(0), 0, TERM), [0; TERM]);
    assert_eq!(bytes_of(log.term(1), 0, TERM), [0xFF; TERM]);
    assert_eq!(clean(&log, 96, 64), 96);
}

/// A peer may store any position.
#[test]
fn cleaning_stops_at_a_frame_boundary_whatever_the_target() {
    let log = log();
    assert_eq!(clean(&log, 0, 1), 0);
    assert_eq!(clean(&log, 0, 33), 32);
    assert_eq!(clean(&log, 32, i64::MAX), TERM as i64);
    assert_eq!(clean(&log, 32, i64::MIN), 32);
}

//! Measures the limit of the machine's memory. One thread copies messages into a ring buffer of the size of a log, and
//! another thread clears the bytes that were copied.
//!
//! A publisher of any library must copy the same bytes, and do more work. So no library can be faster with a log of
//! this length and with the same window.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::words::{Words, align};

use crate::arguments::Arguments;

const HEADER_LENGTH: usize = 32;
const TERMS: u64 = 3;

/// Positions of the two threads, each in its own cache line.
#[derive(Default)]
struct Positions {
    written: Line,
    cleared: Line,
    done: AtomicBool,
}

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Copies for the given time and prints the rate of messages.
pub fn copy(arguments: &Arguments) {
    let term_length = arguments.term_length as u64;
    let ring = SharedBuffer::heap((TERMS * term_length) as usize);
    ring.fill_zero(0, ring.len());
    // The same values as in a driver: the window is half a term, and the limit moves in steps of an eighth of the
    // window.
    let window = term_length / 2;
    let positions = Positions::default();
    std::thread::scope(|scope| {
        scope.spawn(|| clear(&ring, &positions, window / 8));
        let rate = write(&ring, &positions, window, arguments);
        positions.done.store(true, Ordering::Relaxed);
        println!("{{\"rate\": {rate}}}");
    });
}

/// Writes messages, and returns the rate after the warm-up.
fn write(ring: &SharedBuffer, positions: &Positions, window: u64, arguments: &Arguments) -> f64 {
    let message = vec![1; arguments.length];
    let framed = align(HEADER_LENGTH + arguments.length, HEADER_LENGTH) as u64;
    let begin = Instant::now();
    let mut start = None;
    let (mut position, mut limit, mut count) = (0, window, 0);
    while count % 1024 != 0 || begin.elapsed().as_secs_f64() < arguments.seconds {
        if count % 1024 == 0 && start.is_none() && begin.elapsed().as_secs_f64() >= arguments.warmup
        {
            start = Some((Instant::now(), count));
        }
        while position >= limit {
            std::hint::spin_loop();
            limit = positions.cleared.0.load(Ordering::Acquire) + window;
        }
        let at = (position % ring.len() as u64) as usize;
        if at + framed as usize <= ring.len() {
            ring.copy_in(at + HEADER_LENGTH, &message);
            count += 1;
        }
        position += framed;
        positions.written.0.store(position, Ordering::Release);
    }
    let (start, before) = start.expect("the run is longer than the warm-up");
    f64::from(count - before) / start.elapsed().as_secs_f64()
}

fn clear(ring: &SharedBuffer, positions: &Positions, step: u64) {
    let mut position = 0;
    while !positions.done.load(Ordering::Relaxed) {
        if positions.written.0.load(Ordering::Acquire) < position + step {
            std::hint::spin_loop();
            continue;
        }
        ring.fill_zero((position % ring.len() as u64) as usize, step as usize);
        position += step;
        positions.cleared.0.store(position, Ordering::Release);
    }
}

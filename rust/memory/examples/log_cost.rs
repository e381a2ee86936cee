//! Measures the cost of a message in the log buffers without a driver: the nanoseconds to append and to read a message.
//!
//! `cargo run --release -p aeron-memory --example log_cost [message length]...`
//!
//! For the first table, one thread appends a chunk of messages, reads the chunk and cleans it. Each phase is timed
//! separately, and the minimum of many rounds is shown. The second table has a publisher thread and a subscriber
//! thread. The publisher is at most half a term ahead of the subscriber, and cleans the bytes that the subscriber has
//! read, as the driver would. An idle thread yields.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use aeron_memory::log::append::FixedLengthMessages;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::clean::clean;
use aeron_memory::log::{
    AppendError, ConcurrentAppender, ExclusiveAppender, LogBuffers, LogDescription, LogType,
};
use aeron_memory::{SharedBuffer, Words};

const TERM_LENGTH: i32 = 1 << 20;
const CHUNK: usize = 512;
const ROUNDS: usize = 4000;

type Log = LogBuffers<SharedBuffer>;

fn main() {
    let lengths: Vec<usize> = std::env::args()
        .skip(1)
        .map(|argument| argument.parse().expect("a message length"))
        .collect();
    let lengths = if lengths.is_empty() {
        vec![32, 1024]
    } else {
        lengths
    };
    for length in lengths {
        println!("{length} B, one thread, ns a message (append / read / clean):");
        for kind in KINDS {
            let [append, read, clean] = one_thread(kind, length);
            println!("  {kind:20} {append:6.2} / {read:6.2} / {clean:6.2}");
        }
        println!("{length} B, two threads, million messages a second:");
        for kind in KINDS {
            let mut rates: Vec<f64> = (0..5).map(|_| two_threads(kind, length)).collect();
            rates.sort_by(f64::total_cmp);
            println!(
                "  {kind:20} {:6.1} [{:.1}-{:.1}]",
                rates[2], rates[0], rates[4]
            );
        }
    }
}

const KINDS: [&str; 5] = [
    "exclusive offer",
    "concurrent offer",
    "exclusive claim",
    "exclusive records",
    "concurrent slices",
];

fn new_log() -> Log {
    let mut description = LogDescription::new(LogType::ExclusivePublication, 1, 1001, 0);
    description.term_length = TERM_LENGTH;
    let length = log_length(TERM_LENGTH.into(), 4096).unwrap();
    let log = LogBuffers::create(&SharedBuffer::heap(length), &description, 0).unwrap();
    log.metadata().set_is_connected(true);
    // Touch the pages, so that no round includes page faults.
    for partition in 0..3 {
        log.term(partition).fill_zero(0, TERM_LENGTH as usize);
    }
    log
}

/// Appends up to `count` messages below a limit. Returns the number of appended messages, and the result of the last
/// append: the new stream position or an error.
type Append = Box<dyn FnMut(i64, usize) -> (usize, Result<i64, AppendError>) + Send>;

fn appender(kind: &str, log: &Log, length: usize) -> Append {
    let log = log.clone();
    let message = vec![7u8; length];
    match kind {
        "exclusive offer" => {
            let mut appender = ExclusiveAppender::new(log).unwrap();
            Box::new(move |limit, count| each(count, || appender.offer(limit, &message)))
        }
        "concurrent offer" => {
            let appender = ConcurrentAppender::new(log);
            Box::new(move |limit, count| each(count, || appender.offer(limit, &message)))
        }
        "exclusive claim" => {
            let mut appender = ExclusiveAppender::new(log).unwrap();
            Box::new(move |limit, count| {
                each(count, || {
                    let claim = appender.try_claim(limit, message.len())?;
                    claim.put(0, &message);
                    Ok(claim.commit())
                })
            })
        }
        "exclusive records" => {
            let mut appender = ExclusiveAppender::new(log).unwrap();
            let bytes = message.repeat(CHUNK);
            Box::new(move |limit, count| {
                let records = FixedLengthMessages::new(&bytes, length, length, count).unwrap();
                let appended = appender.offer_batch(limit, &records, 0);
                (
                    appended.map_or(0, |a| a.messages),
                    appended.map(|a| a.position),
                )
            })
        }
        "concurrent slices" => {
            let appender = ConcurrentAppender::new(log);
            let messages = vec![message; CHUNK];
            Box::new(move |limit, count| {
                let appended = appender.offer_batch(limit, &messages[..count], 0);
                (
                    appended.map_or(0, |a| a.messages),
                    appended.map(|a| a.position),
                )
            })
        }
        other => panic!("no appender {other}"),
    }
}

#[inline(always)]
fn each(
    count: usize,
    mut append: impl FnMut() -> Result<i64, AppendError>,
) -> (usize, Result<i64, AppendError>) {
    let mut last = Ok(0);
    for done in 0..count {
        last = append();
        if last.is_err() {
            return (done, last);
        }
    }
    (count, last)
}

/// Reads the term from `position` on. Returns the number of fragments, a checksum of the fragments, and the new
/// position.
#[inline(never)]
fn read(log: &Log, position: i64, limit: usize) -> (usize, i64, i64) {
    let mut cursor = log.cursor(position).unwrap();
    let (mut count, mut sum) = (0, 0i64);
    while count < limit {
        let Some(fragment) = cursor.next_fragment().unwrap() else {
            break;
        };
        sum = sum.wrapping_add(fragment.term().load_i64_relaxed(fragment.payload_offset()));
        count += 1;
    }
    (count, sum, cursor.position())
}

fn one_thread(kind: &str, length: usize) -> [f64; 3] {
    let log = new_log();
    let mut append = appender(kind, &log, length);
    let mut position = 0;
    let mut best = [f64::MAX; 3];
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let (count, result) = append(i64::MAX, CHUNK);
        let appended = started.elapsed();
        black_box(result.ok());
        let begin = position;
        let started = Instant::now();
        let (read_count, sum, end) = read(&log, position, usize::MAX);
        let was_read = started.elapsed();
        black_box(sum);
        position = end;
        let started = Instant::now();
        let mut clean_position = begin;
        while clean_position < position {
            clean_position = clean(&log, clean_position, position);
        }
        let cleaned = started.elapsed();
        if count == CHUNK && read_count == CHUNK {
            for (best, time) in best.iter_mut().zip([appended, was_read, cleaned]) {
                *best = best.min(time.as_nanos() as f64 / CHUNK as f64);
            }
        }
    }
    best
}

fn two_threads(kind: &str, length: usize) -> f64 {
    let log = new_log();
    let mut append = appender(kind, &log, length);
    let (consumed, stop) = (AtomicI64::new(0), AtomicBool::new(false));
    let started = Instant::now();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut clean_position, mut limit) = (0, i64::from(TERM_LENGTH / 2));
            while !stop.load(Ordering::Relaxed) {
                if append(limit, CHUNK).1.is_err() {
                    let subscriber = consumed.load(Ordering::Acquire);
                    while clean_position < subscriber {
                        clean_position = clean(&log, clean_position, subscriber);
                    }
                    let raised = subscriber + i64::from(TERM_LENGTH / 2);
                    if raised == std::mem::replace(&mut limit, raised) {
                        std::thread::yield_now();
                    }
                }
            }
        });
        let (mut position, mut total) = (0, 0);
        while started.elapsed() < Duration::from_millis(400) {
            for _ in 0..100 {
                let (count, sum, end) = read(&log, position, 64);
                black_box(sum);
                total += count;
                if end == position {
                    std::thread::yield_now();
                } else {
                    consumed.store(end, Ordering::Release);
                }
                position = end;
            }
        }
        stop.store(true, Ordering::Relaxed);
        total
    });
    received as f64 / started.elapsed().as_secs_f64() / 1e6
}

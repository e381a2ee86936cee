//! Measures the time of a cache line from one CPU to another and back. It shows whether two virtual CPUs are threads of
//! one core or two cores, which the host of a virtual machine may change at any time.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use aeron_agent::thread::set_cpu_affinity;

use crate::arguments::Arguments;

/// Round trips between two reads of the clock.
const BLOCK: u64 = 50;
const END: u64 = u64::MAX;

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Exchanges a cache line for the given time. Prints the median time of a round trip in nanoseconds, by blocks.
pub fn measure(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let (first, second) = arguments.cpus;
    // This thread tries both CPUs, so that the other thread cannot fail.
    set_cpu_affinity(second)?;
    set_cpu_affinity(first)?;
    let line = Line::default();
    let mut times = std::thread::scope(|scope| {
        scope.spawn(|| {
            set_cpu_affinity(second).expect("this process may use the CPU");
            send_back(&line.0);
        });
        let times = exchange(&line.0, arguments.seconds);
        line.0.store(END, Ordering::Release);
        times
    });
    times.sort_unstable_by(f64::total_cmp);
    println!(
        "{{\"count\": {}, \"p50\": {}}}",
        times.len(),
        times[times.len() / 2]
    );
    Ok(())
}

/// Stores odd numbers and waits for the next even numbers. Returns the nanoseconds of a round trip for each block.
fn exchange(line: &AtomicU64, seconds: f64) -> Vec<f64> {
    let (mut times, mut number) = (Vec::new(), 1);
    let begin = Instant::now();
    while times.is_empty() || begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        for _ in 0..BLOCK {
            line.store(number, Ordering::Release);
            number += 1;
            while line.load(Ordering::Acquire) != number {
                std::hint::spin_loop();
            }
            number += 1;
        }
        times.push(start.elapsed().as_nanos() as f64 / BLOCK as f64);
    }
    times
}

fn send_back(line: &AtomicU64) {
    loop {
        match line.load(Ordering::Acquire) {
            END => return,
            number if number % 2 == 1 => line.store(number + 1, Ordering::Release),
            _ => std::hint::spin_loop(),
        }
    }
}

//! Runs schedules: `aeron-simulator [--all-rows] <first seed>..<end>`, which with `--all-rows` fails when they do not reach every row
//! of the drivers' tables, or `aeron-simulator [--trace] <seed>`, which tells all about one.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use aeron_simulator::{Failure, Outcome, Schedule, World, run};

fn main() -> ExitCode {
    let (options, texts): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|text| text.starts_with("--"));
    let seeds: Vec<u64> = texts.iter().flat_map(|text| seeds(text)).collect();
    match seeds[..] {
        [seed] => show(seed, options.iter().any(|option| option == "--trace")),
        _ => run_all(&seeds, options.iter().any(|option| option == "--all-rows")),
    }
}

/// One schedule, with all that is known about it.
fn show(seed: u64, is_traced: bool) -> ExitCode {
    let schedule = Schedule::draw(seed);
    println!("{schedule:#?}");
    let mut world = World::new(schedule);
    if is_traced {
        world = world.traced(|line| println!("{line}"));
    }
    match world.run() {
        Ok(outcome) => {
            print_outcome(&outcome);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{}", failure.counters);
            report(seed, &failure);
            ExitCode::FAILURE
        }
    }
}

/// Many schedules, on all processors.
fn run_all(seeds: &[u64], must_reach_all: bool) -> ExitCode {
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let total = Mutex::new((Outcome::default(), 0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run(*seed);
                    let mut total = total
                        .lock()
                        .expect("no schedule panics while it is counted");
                    match result {
                        Ok(outcome) => total.0.add(&outcome),
                        Err(failure) => {
                            total.1 += 1;
                            report(*seed, &failure);
                        }
                    }
                }
            });
        }
    });
    let (outcome, failures) = total.into_inner().expect("all threads have ended");
    let rate = seeds.len() as f64 / start.elapsed().as_secs_f64();
    print_outcome(&outcome);
    let count = seeds.len();
    println!("{count} schedules, {failures} failed, {rate:.1} per second");
    let is_complete =
        !must_reach_all || outcome.reached.rows().all(|(_, _, is_reached)| is_reached);
    if !is_complete {
        println!("some rows of the tables are not reached");
    }
    ExitCode::from(u8::from(failures > 0 || !is_complete))
}

fn print_outcome(outcome: &Outcome) {
    for (section, text, is_reached) in outcome.reached.rows() {
        let verb = if is_reached { "reached" } else { "not reached" };
        println!("{verb} {section}: {text}");
    }
    println!(
        "published {}, received {}, steps {}, fingerprint {:016x}, network {:?}",
        outcome.published, outcome.received, outcome.steps, outcome.fingerprint, outcome.wire
    );
}

fn report(seed: u64, failure: &Failure) {
    let after = failure.after_ns as f64 / 1e9;
    println!("seed {seed}: after {after:.6} s: {}", failure.finding);
}

/// `7` or `0..100`.
fn seeds(text: &str) -> std::ops::Range<u64> {
    let number = |text: &str| text.parse().expect("a seed is a number");
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(text)..number(text) + 1,
    }
}

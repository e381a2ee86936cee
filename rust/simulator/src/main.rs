//! Runs schedules: `aeron-simulator [--all-rows] <first seed>..<end>`, or `aeron-simulator [--trace] <seed>` for one
//! schedule in detail.
//!
//! `--all-rows` also runs the seeds that have found defects, and fails if a row of the drivers' state tables is not
//! reached. With `--first-edition` or `--second-edition`, schedules have only the features of this edition, as for
//! the kept seeds. `--archive` runs schedules with archives, `--publishers` schedules with recorded publishers, and
//! `--followers` schedules with followers of recorded streams.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use aeron_simulator::{
    ArchiveOutcome, ArchiveSchedule, ArchiveWorld, Edition, Failure, FollowingOutcome,
    FollowingSchedule, FollowingWorld, KEPT_SEEDS, Outcome, PublishingOutcome, PublishingSchedule,
    PublishingWorld, Schedule, World, run, run_archives, run_followers, run_publishers,
};

/// Option for schedules with archives.
const ARCHIVES: &str = "--archive";
/// Option for schedules with recorded publishers.
const PUBLISHERS: &str = "--publishers";
/// Option for schedules with followers.
const FOLLOWERS: &str = "--followers";

fn main() -> ExitCode {
    let (options, texts): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|text| text.starts_with("--"));
    let seeds: Vec<u64> = texts.iter().flat_map(|text| seeds(text)).collect();
    let has = |name: &str| options.iter().any(|option| option == name);
    let edition = match (has("--first-edition"), has("--second-edition")) {
        (true, _) => Edition::First,
        (false, true) => Edition::Second,
        (false, false) => Edition::Third,
    };
    if has(ARCHIVES) {
        return match seeds[..] {
            [seed] => show_archives(seed, has("--trace")),
            _ => run_kind(ARCHIVES, &seeds, run_archives, ArchiveOutcome::add),
        };
    }
    if has(PUBLISHERS) {
        return match seeds[..] {
            [seed] => show_publishers(seed, has("--trace")),
            _ => run_kind(PUBLISHERS, &seeds, run_publishers, PublishingOutcome::add),
        };
    }
    if has(FOLLOWERS) {
        return match seeds[..] {
            [seed] => show_followers(seed, has("--trace")),
            _ => run_kind(FOLLOWERS, &seeds, run_followers, FollowingOutcome::add),
        };
    }
    if let [seed] = seeds[..] {
        return show(Schedule::draw(seed, edition), has("--trace"));
    }
    let mut schedules: Vec<_> = seeds.into_iter().map(|seed| (seed, edition)).collect();
    if has("--all-rows") {
        schedules.extend(KEPT_SEEDS);
    }
    run_all(&schedules, has("--all-rows"))
}

/// Runs one schedule and prints its details.
fn show(schedule: Schedule, is_traced: bool) -> ExitCode {
    let (seed, edition) = (schedule.seed, schedule.edition);
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
            report(seed, edition, &failure);
            ExitCode::FAILURE
        }
    }
}

/// Runs many schedules on all processors.
fn run_all(schedules: &[(u64, Edition)], must_reach_all: bool) -> ExitCode {
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let total = Mutex::new((Outcome::default(), 0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((seed, edition)) =
                    schedules.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let result = run(*seed, *edition);
                    let mut total = total
                        .lock()
                        .expect("no schedule panics while it is counted");
                    match result {
                        Ok(outcome) => total.0.add(&outcome),
                        Err(failure) => {
                            total.1 += 1;
                            report(*seed, *edition, &failure);
                        }
                    }
                }
            });
        }
    });
    let (outcome, failures) = total.into_inner().expect("all threads have ended");
    let rate = schedules.len() as f64 / start.elapsed().as_secs_f64();
    print_outcome(&outcome);
    let count = schedules.len();
    println!("{count} schedules, {failures} failed, {rate:.1} per second");
    let is_complete =
        !must_reach_all || outcome.reached.rows().all(|(_, _, is_reached)| is_reached);
    if !is_complete {
        println!("some rows of the tables are not reached");
    }
    ExitCode::from(u8::from(failures > 0 || !is_complete))
}

/// Runs one schedule with archives and prints its details.
fn show_archives(seed: u64, is_traced: bool) -> ExitCode {
    let schedule = ArchiveSchedule::draw(seed);
    println!("{schedule:#?}");
    let mut world = ArchiveWorld::new(schedule);
    if is_traced {
        world = world.traced(|line| println!("{line}"));
    }
    show_result(ARCHIVES, seed, world.run())
}

/// Runs one schedule with recorded publishers and prints its details.
fn show_publishers(seed: u64, is_traced: bool) -> ExitCode {
    let schedule = PublishingSchedule::draw(seed);
    println!("{schedule:#?}");
    let mut world = PublishingWorld::new(schedule);
    if is_traced {
        world = world.traced(|line| println!("{line}"));
    }
    show_result(PUBLISHERS, seed, world.run())
}

/// Runs one schedule with followers and prints its details.
fn show_followers(seed: u64, is_traced: bool) -> ExitCode {
    let schedule = FollowingSchedule::draw(seed);
    println!("{schedule:#?}");
    let mut world = FollowingWorld::new(schedule);
    if is_traced {
        world = world.traced(|line| println!("{line}"));
    }
    show_result(FOLLOWERS, seed, world.run())
}

/// Shows the result of one schedule with archives.
fn show_result(kind: &str, seed: u64, result: Result<impl std::fmt::Debug, Failure>) -> ExitCode {
    match result {
        Ok(outcome) => {
            println!("{outcome:?}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{}", failure.counters);
            report_kind(kind, seed, &failure);
            ExitCode::FAILURE
        }
    }
}

/// Runs many schedules of one kind with archives. Uses all processors.
fn run_kind<O: Default + std::fmt::Debug + Send>(
    kind: &str,
    seeds: &[u64],
    run: impl Fn(u64) -> Result<O, Failure> + Sync,
    add: impl Fn(&mut O, &O) + Sync,
) -> ExitCode {
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let total = Mutex::new((O::default(), 0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run(*seed);
                    let mut total = total
                        .lock()
                        .expect("no schedule panics while it is counted");
                    match result {
                        Ok(outcome) => add(&mut total.0, &outcome),
                        Err(failure) => {
                            total.1 += 1;
                            report_kind(kind, *seed, &failure);
                        }
                    }
                }
            });
        }
    });
    let (outcome, failures) = total.into_inner().expect("all threads have ended");
    let rate = seeds.len() as f64 / start.elapsed().as_secs_f64();
    println!("{outcome:?}");
    let count = seeds.len();
    println!("{count} schedules ({kind}), {failures} failed, {rate:.1} per second");
    ExitCode::from(u8::from(failures > 0))
}

fn report_kind(kind: &str, seed: u64, failure: &Failure) {
    let after = failure.after_ns as f64 / 1e9;
    println!(
        "seed {seed} ({kind}): after {after:.6} s: {}",
        failure.finding
    );
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
    let [recovery, parting, leaving] = outcome.slowest_ns.map(|time_ns| time_ns as f64 / 1e9);
    println!("slowest: recovery {recovery:.1} s, parting {parting:.1} s, leaving {leaving:.1} s");
}

fn report(seed: u64, edition: Edition, failure: &Failure) {
    let option = match edition {
        Edition::First => " (--first-edition)",
        Edition::Second => " (--second-edition)",
        Edition::Third => "",
    };
    let after = failure.after_ns as f64 / 1e9;
    println!(
        "seed {seed}{option}: after {after:.6} s: {}",
        failure.finding
    );
}

/// Parses `7` or `0..100`.
fn seeds(text: &str) -> std::ops::Range<u64> {
    let number = |text: &str| text.parse().expect("a seed is a number");
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(text)..number(text) + 1,
    }
}

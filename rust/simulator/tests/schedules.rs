//! Runs the schedules of a few seeds as part of the ordinary tests. `make sim` runs thousands.

use aeron_simulator::{Edition, KEPT_SEEDS, run, run_archives, run_publishers};

fn assert_nothing_is_found(seed: u64, edition: Edition) {
    if let Err(failure) = run(seed, edition) {
        panic!(
            "seed {seed}, {edition:?} edition: {}\n{}",
            failure.finding, failure.counters
        );
    }
}

#[test]
fn nothing_is_found_in_the_schedules_of_the_first_seeds() {
    for seed in 0..20 {
        assert_nothing_is_found(seed, Edition::Second);
    }
}

#[test]
fn seeds_that_once_found_something_find_nothing() {
    for (seed, edition) in KEPT_SEEDS {
        assert_nothing_is_found(seed, edition);
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 5, 11] {
        let [first, second] = [run(seed, Edition::Second), run(seed, Edition::Second)]
            .map(|result| result.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn nothing_is_found_in_the_schedules_with_archives_of_the_first_seeds() {
    for seed in 0..12 {
        if let Err(failure) = run_archives(seed) {
            panic!(
                "seed {seed} (--archive): {}\n{}",
                failure.finding, failure.counters
            );
        }
    }
}

#[test]
fn a_seed_with_archives_replays_exactly() {
    for seed in [1, 4] {
        let [first, second] =
            [run_archives(seed), run_archives(seed)].map(|it| it.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn each_recording_of_the_first_seeds_has_what_its_publisher_has_accepted() {
    for seed in 0..24 {
        if let Err(failure) = run_publishers(seed) {
            panic!(
                "seed {seed} (--publishers): {}\n{}",
                failure.finding, failure.counters
            );
        }
    }
}

#[test]
fn a_seed_with_recorded_publishers_replays_exactly() {
    for seed in [1, 4] {
        let [first, second] =
            [run_publishers(seed), run_publishers(seed)].map(|it| it.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

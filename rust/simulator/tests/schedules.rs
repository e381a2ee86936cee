//! Runs the schedules of a few seeds as part of the ordinary tests. `make sim` runs thousands of schedules.

use aeron_simulator::{Edition, KEPT_SEEDS, run, run_archives, run_followers, run_publishers};

fn assert_nothing_is_found(seed: u64, edition: Edition) {
    if let Err(failure) = run(seed, edition) {
        panic!(
            "seed {seed}, {edition:?} edition: {}\n{}",
            failure.finding, failure.counters
        );
    }
}

#[test]
fn the_schedules_of_the_first_seeds_have_no_finding() {
    for seed in 0..20 {
        assert_nothing_is_found(seed, Edition::Third);
    }
}

#[test]
fn the_schedules_of_the_kept_seeds_have_no_finding() {
    for (seed, edition) in KEPT_SEEDS {
        assert_nothing_is_found(seed, edition);
    }
}

#[test]
fn two_runs_of_a_seed_are_identical() {
    for seed in [3, 5, 11] {
        let [first, second] = [run(seed, Edition::Third), run(seed, Edition::Third)]
            .map(|result| result.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn the_schedules_with_archives_of_the_first_seeds_have_no_finding() {
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
fn two_runs_of_a_seed_with_archives_are_identical() {
    // The schedule of seed 3 has object storage.
    for seed in [1, 3, 4] {
        let [first, second] =
            [run_archives(seed), run_archives(seed)].map(|it| it.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn the_schedules_with_publishers_of_the_first_seeds_have_no_finding() {
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
fn two_runs_of_a_seed_with_recorded_publishers_are_identical() {
    for seed in [1, 4] {
        let [first, second] =
            [run_publishers(seed), run_publishers(seed)].map(|it| it.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn followers_of_the_first_seeds_read_each_message_of_each_recording_once() {
    for seed in 0..24 {
        if let Err(failure) = run_followers(seed) {
            panic!(
                "seed {seed} (--followers): {}\n{}",
                failure.finding, failure.counters
            );
        }
    }
}

#[test]
fn two_runs_of_a_seed_with_followers_are_identical() {
    for seed in [1, 4] {
        let [first, second] =
            [run_followers(seed), run_followers(seed)].map(|it| it.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

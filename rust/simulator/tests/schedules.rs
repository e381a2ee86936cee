//! Schedules of a few seeds, as part of the ordinary tests; `make sim` runs thousands.

use aeron_simulator::run;

/// Seeds that have found something before.
const REGRESSIONS: [u64; 1] = [
    // An image that joins near the end of its log's memory had no window.
    282,
];

#[test]
fn nothing_is_found_in_the_schedules_of_the_first_seeds() {
    for seed in (0..20).chain(REGRESSIONS) {
        if let Err(failure) = run(seed) {
            panic!("seed {seed}: {}\n{}", failure.finding, failure.counters);
        }
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 5, 282] {
        let [first, second] =
            [run(seed), run(seed)].map(|result| result.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

//! Schedules of a few seeds, as part of the ordinary tests; `make sim` runs thousands.

use aeron_simulator::run;

#[test]
fn nothing_is_found_in_the_schedules_of_the_first_seeds() {
    for seed in 0..20 {
        if let Err(failure) = run(seed) {
            panic!("seed {seed}: {}\n{}", failure.finding, failure.counters);
        }
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 5, 11] {
        let [first, second] =
            [run(seed), run(seed)].map(|result| result.expect("nothing is found"));
        assert_eq!(first, second, "seed {seed}");
    }
}

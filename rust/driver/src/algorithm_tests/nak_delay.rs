//! Tests of the NAK delays.

use crate::Context;
use crate::nak_delay::{MulticastBackoff, NakDelay};
use proptest::prelude::*;

use super::support::{MS, US};

fn delays(mut delay: NakDelay) -> (i64, i64) {
    (delay.delay_ns(), delay.retry_ns())
}

fn drawn(backoff: MulticastBackoff, count: usize) -> Vec<i64> {
    let mut delay = NakDelay::Multicast(backoff);
    (0..count)
        .map(|index| match index % 2 {
            0 => delay.delay_ns(),
            _ => delay.retry_ns(),
        })
        .collect()
}

#[test]
fn a_single_receiver_waits_for_the_configured_delay_and_then_for_a_multiple_of_it() {
    let context = Context::default();
    let of = |nak_delay_ns| delays(NakDelay::of_image(&context, true, false, nak_delay_ns, 0));
    assert_eq!(of(None), (US, 100 * US));
    assert_eq!(of(Some(2 * MS)), (2 * MS, 200 * MS));
    assert_eq!(of(Some(0)), (0, 0));
    assert_eq!(of(Some(i64::MAX)), (i64::MAX, i64::MAX));
}

#[test]
fn an_unreliable_stream_has_no_nak_delay() {
    let context = Context::default();
    for is_multicast in [false, true] {
        let delay = NakDelay::of_image(&context, false, is_multicast, Some(MS), 0);
        assert_eq!(delays(delay), (0, 0));
    }
}

#[test]
fn a_receiver_of_a_group_draws_each_delay_from_its_seed() {
    let context = Context::default();
    let of = |seed| match NakDelay::of_image(&context, true, true, Some(MS), seed) {
        NakDelay::Multicast(backoff) => drawn(backoff, 100),
        fixed => panic!("{fixed:?}"),
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    let mut different = of(1);
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 90);
}

/// Returns the largest difference between the cumulative distribution of `delays` and the expected one.
///
/// The expected distribution is P(delay < d) = (e^(lambda d / T) - 1) / (e^lambda - 1). It follows from the formula for
/// the delay.
fn distance(mut delays: Vec<i64>, group_size: f64, max_backoff_ns: f64) -> f64 {
    delays.sort_unstable();
    let lambda = group_size.ln() + 1.0;
    let count = delays.len() as f64;
    let differences = delays.iter().enumerate().map(|(index, delay)| {
        let expected =
            ((lambda * *delay as f64 / max_backoff_ns).exp() - 1.0) / (lambda.exp() - 1.0);
        let (below, up_to) = (index as f64 / count, (index + 1) as f64 / count);
        (expected - below).abs().max((expected - up_to).abs())
    });
    differences.fold(0.0, f64::max)
}

/// 04-148, 02-80
#[test]
fn the_delays_of_a_group_are_distributed_by_the_formula() {
    const COUNT: usize = 100_000;
    // The critical value of the Kolmogorov-Smirnov test: only one in a thousand random samples has a larger distance.
    let critical = 1.95 / (COUNT as f64).sqrt();
    for (group_size, max_backoff_ns) in
        [(1, 10 * MS), (10, 10 * MS), (10, 100 * MS), (1000, 60 * MS)]
    {
        let delays = drawn(MulticastBackoff::new(group_size, max_backoff_ns, 42), COUNT);
        let distance = distance(delays, group_size.into(), max_backoff_ns as f64);
        assert!(
            distance < critical,
            "{group_size} {max_backoff_ns}: {distance}"
        );
    }
}

#[test]
fn few_receivers_of_a_group_send_a_nak_before_the_repair_arrives_02_80() {
    let first_askers = |group_size| {
        let mut earliest: Vec<i64> = drawn(
            MulticastBackoff::new(group_size, 10 * MS, 7),
            group_size as usize,
        );
        earliest.sort_unstable();
        // Number of receivers that send a NAK within a round trip of 1 ms after the first NAK.
        earliest
            .iter()
            .filter(|delay| **delay < earliest[0] + MS)
            .count()
    };
    for group_size in [10, 100, 1000] {
        assert!((1..10).contains(&first_askers(group_size)), "{group_size}");
    }
}

proptest! {
    #[test]
    fn a_random_delay_is_at_most_the_maximum_04_148(group_size in 1..=i32::MAX, max_backoff_ns in 1..i64::MAX, seed: u64) {
        for delay_ns in drawn(MulticastBackoff::new(group_size, max_backoff_ns, seed), 20) {
            prop_assert!((0..=max_backoff_ns).contains(&delay_ns));
        }
    }
}

//! Tests of the retransmit handler, which decides about the retransmits after NAKs.

use crate::retransmit::{
    FREE_RETRANSMIT_LENGTH, NakOutcome, RETRANSMIT_MULTIPLE, RetransmitBudgetExceeded,
    RetransmitConfig, RetransmitHandler,
};
use aeron_memory::log::Positions;
use proptest::prelude::*;

use super::support::{MS, SECOND};

const TERM: usize = 64 * 1024;
const LINGER: i64 = 10 * MS;
const MTU: usize = 1408;

fn config(term_length: usize) -> RetransmitConfig {
    RetransmitConfig {
        positions: Positions::new(term_length, 0).unwrap(),
        start_position: 0,
        max_resend: None,
        window_multiple: 16,
        delay_ns: 0,
        linger_ns: LINGER,
    }
}

fn group_config(max_resend: usize) -> RetransmitConfig {
    RetransmitConfig {
        max_resend: Some(max_resend),
        window_multiple: 4,
        ..config(TERM)
    }
}

/// Position and length of a range that a receiver requests.
type Range = (i64, usize);

/// A handler and the state of its sender.
struct Sender {
    handler: RetransmitHandler,
    position: i64,
    now_ns: i64,
    resent: Vec<Range>,
}

impl Sender {
    fn new(config: RetransmitConfig) -> Self {
        Sender {
            handler: RetransmitHandler::new(config),
            position: 40_000,
            now_ns: 1000 * SECOND,
            resent: Vec::new(),
        }
    }

    fn hears(&mut self, position: i64, length: usize) -> NakOutcome {
        let resent = &mut self.resent;
        self.handler.on_nak(
            position,
            length,
            self.position,
            self.now_ns,
            |position, length| {
                resent.push((position, length));
                length
            },
        )
    }

    fn tick(&mut self) -> bool {
        let resent = &mut self.resent;
        self.handler
            .on_tick(self.position, self.now_ns, |position, length| {
                resent.push((position, length));
                length
            })
    }

    fn resent(&mut self) -> Vec<Range> {
        std::mem::take(&mut self.resent)
    }

    fn waits(&mut self, duration_ns: i64) {
        self.now_ns += duration_ns;
        assert!(self.tick());
    }
}

/// 04-115, 02-40
#[test]
fn a_nak_causes_a_retransmit_at_once_and_again_only_after_the_linger_time() {
    let mut sender = Sender::new(config(TERM));
    assert_eq!(sender.hears(1024, MTU), NakOutcome::Accepted);
    assert_eq!(sender.resent(), [(1024, 1408)]);
    for (position, length) in [(1024, MTU), (1024, 32), (2400, 64)] {
        assert_eq!(sender.hears(position, length), NakOutcome::Ignored);
    }
    sender.waits(LINGER);
    assert_eq!(sender.hears(1024, MTU), NakOutcome::Ignored);
    sender.waits(1);
    assert_eq!(sender.hears(1024, MTU), NakOutcome::Accepted);
    assert_eq!(sender.resent(), [(1024, 1408)]);
}

/// 04-116, 02-47
#[test]
fn a_nak_for_zero_bytes_is_ignored_04_117() {
    let mut sender = Sender::new(config(TERM));
    assert_eq!(sender.hears(1024, 0), NakOutcome::Ignored);
    assert_eq!(sender.hears(1024, 32), NakOutcome::Accepted);
}

/// 04-118, 02-44
#[test]
fn only_sent_data_that_is_still_in_the_log_is_retransmitted() {
    let max_message = (TERM / 8) as i64;
    let mut sender = Sender::new(config(TERM));
    sender.position = 2 * TERM as i64 + 640;
    let oldest = sender.position - TERM as i64 / 2 - max_message;
    let mut is_sent = |position: i64| {
        assert_eq!(sender.hears(position, 32), NakOutcome::Accepted);
        sender.resent() == [(position, 32)]
    };
    assert!(is_sent(oldest));
    assert!(!is_sent(oldest - 32));
    assert!(is_sent(2 * TERM as i64 + 608));
    assert!(!is_sent(2 * TERM as i64 + 640));
    assert!(!is_sent(5 * TERM as i64));
    assert!(!is_sent(0));
}

#[test]
fn a_nak_for_bytes_before_the_start_of_the_stream_causes_no_retransmit() {
    for start_position in [0, TERM as i64 + 4096] {
        let mut sender = Sender::new(RetransmitConfig {
            start_position,
            ..config(TERM)
        });
        sender.position = start_position + 64;
        let outcome = sender.hears(start_position - 32, 32);
        assert_eq!(outcome, NakOutcome::Accepted);
        assert_eq!(sender.resent(), []);
    }
}

/// 04-119, 02-41
#[test]
fn with_one_receiver_a_new_range_replaces_the_range_in_flight() {
    let mut sender = Sender::new(config(TERM));
    for offset in [0, 4096, 8192] {
        assert_eq!(sender.hears(offset, MTU), NakOutcome::Accepted);
    }
    assert_eq!(sender.resent(), [(0, 1408), (4096, 1408), (8192, 1408)]);
    assert_eq!(
        sender.hears(0, MTU),
        NakOutcome::Accepted,
        "the replaced range is not in flight any more"
    );
    assert_eq!(sender.hears(0, MTU), NakOutcome::Ignored);
}

/// 04-119, 02-42
#[test]
fn with_several_receivers_the_number_of_ranges_in_flight_is_limited() {
    let mut sender = Sender::new(group_config(16));
    for index in 0..20 {
        let expected = match index {
            0..16 => NakOutcome::Accepted,
            _ => NakOutcome::PoolOverflow,
        };
        assert_eq!(sender.hears(index * 1408, MTU), expected);
    }
    assert_eq!(sender.resent().len(), 16);
    assert_eq!(sender.hears(1408, MTU), NakOutcome::Ignored);
    sender.waits(LINGER + 1);
    assert_eq!(sender.hears(16 * 1408, MTU), NakOutcome::Accepted);
}

/// 04-120, 02-43
#[test]
fn a_retransmit_is_limited_by_the_window_times_its_multiple_and_by_the_term() {
    const LARGE: usize = 16 * 1024 * 1024;
    for (term_length, window_multiple, longest) in [
        (TERM, 1, 32 * 1024),
        (TERM, 4, TERM),
        (LARGE, 1, 128 * 1024),
        (LARGE, 4, 512 * 1024),
        (LARGE, 16, 2 * 1024 * 1024),
    ] {
        let mut sender = Sender::new(RetransmitConfig {
            window_multiple,
            ..config(term_length)
        });
        sender.position = term_length as i64;
        sender.tick();
        // The range from the middle of the term to its end.
        let half = term_length / 2;
        assert_eq!(sender.hears(half as i64, half), NakOutcome::Accepted);
        assert_eq!(sender.resent(), [(half as i64, longest.min(half))]);
    }
}

#[test]
fn with_a_delay_the_retransmit_waits_and_then_lingers_02_45() {
    let mut sender = Sender::new(RetransmitConfig {
        delay_ns: 2 * MS,
        ..group_config(2)
    });
    assert_eq!(sender.hears(0, MTU), NakOutcome::Accepted);
    sender.waits(MS);
    assert_eq!(sender.hears(4096, MTU), NakOutcome::Accepted);
    assert_eq!(sender.hears(0, MTU), NakOutcome::Ignored);
    sender.waits(MS);
    assert_eq!(sender.resent(), []);
    sender.waits(1);
    assert_eq!(sender.resent(), [(0, 1408)]);
    sender.waits(MS);
    assert_eq!(sender.resent(), [(4096, 1408)]);
    sender.waits(LINGER - MS);
    assert_eq!(sender.hears(0, MTU), NakOutcome::Ignored);
    sender.waits(1);
    assert_eq!(sender.hears(0, MTU), NakOutcome::Accepted);
    assert_eq!(sender.hears(4096, MTU), NakOutcome::Ignored);
}

#[test]
fn data_that_is_first_sent_during_the_delay_can_be_retransmitted() {
    let mut sender = Sender::new(RetransmitConfig {
        delay_ns: 2 * MS,
        ..config(TERM)
    });
    sender.position = 1024;
    assert_eq!(sender.hears(1024, 32), NakOutcome::Accepted);
    sender.position = 2048;
    sender.waits(2 * MS + 1);
    assert_eq!(sender.resent(), [(1024, 32)]);
}

/// Runs a publication that sends `new_per_ms` bytes in each millisecond, while a flood of NAKs requests the latest
/// bytes.
///
/// Returns the new and the retransmitted bytes of each millisecond.
fn flood(new_per_ms: i64, duration_ms: usize) -> Vec<(usize, usize)> {
    const TERM: usize = 16 * 1024 * 1024;
    let mut sender = Sender::new(RetransmitConfig {
        max_resend: Some(256),
        ..config(TERM)
    });
    sender.position = TERM as i64;
    sender.tick();
    sender.waits(10 * SECOND);
    let mut offset = 0;
    (0..duration_ms)
        .map(|_| {
            sender.now_ns += MS;
            sender.position += new_per_ms;
            sender.tick();
            for _ in 0..100 {
                offset = (offset + 4096) % (4 * 1024 * 1024);
                let position = (sender.position - 64 - offset) & !31;
                let left = TERM - position as usize % TERM;
                sender.hears(position, left.min(4096));
            }
            let resent = sender.resent().iter().map(|(_, length)| length).sum();
            (new_per_ms as usize, resent)
        })
        .collect()
}

#[test]
fn a_flood_of_naks_causes_no_more_retransmits_than_the_budget_in_any_second() {
    for new_per_ms in [0, 64, 320, 3200] {
        let traffic = flood(new_per_ms, 4000);
        for second in traffic.windows(1000) {
            let new: usize = second.iter().map(|it| it.0).sum();
            let resent: usize = second.iter().map(|it| it.1).sum();
            // The handler counts new bytes in slots of 134 ms, so it does not know the exact number for this second.
            let bound = (new + new / 4) * RETRANSMIT_MULTIPLE;
            assert!(resent <= bound.max(FREE_RETRANSMIT_LENGTH));
        }
        let total: usize = traffic.iter().map(|it| it.1).sum();
        assert!(
            total >= 3 * FREE_RETRANSMIT_LENGTH,
            "the retransmits use the budget: {total}"
        );
    }
}

#[test]
fn a_retransmit_beyond_the_budget_is_shortened_and_its_rest_can_be_requested() {
    const TERM: usize = 16 * 1024 * 1024;
    let mut sender = Sender::new(config(TERM));
    sender.position = TERM as i64;
    sender.tick();
    sender.waits(10 * SECOND);
    let begin = TERM as i64 / 2;
    let long = 2 * FREE_RETRANSMIT_LENGTH;
    assert_eq!(sender.hears(begin, long), NakOutcome::OverBudget);
    assert_eq!(sender.resent(), [(begin, FREE_RETRANSMIT_LENGTH)]);
    let rest = begin + FREE_RETRANSMIT_LENGTH as i64;
    assert_eq!(sender.hears(rest, MTU), NakOutcome::OverBudget);
    assert_eq!(sender.resent(), []);
    sender.waits(2 * SECOND);
    assert_eq!(sender.hears(rest, MTU), NakOutcome::Accepted);
    assert!(RetransmitBudgetExceeded.to_string().contains("1048576"));
}

#[test]
fn a_delayed_retransmit_uses_the_budget_when_it_is_sent() {
    const TERM: usize = 16 * 1024 * 1024;
    let mut sender = Sender::new(RetransmitConfig {
        delay_ns: MS,
        ..config(TERM)
    });
    sender.position = TERM as i64;
    sender.tick();
    sender.waits(10 * SECOND);
    let begin = TERM as i64 / 2;
    let outcome = sender.hears(begin, 2 * FREE_RETRANSMIT_LENGTH);
    assert_eq!(outcome, NakOutcome::Accepted);
    sender.now_ns += 2 * MS;
    assert!(!sender.tick());
    assert_eq!(sender.resent(), [(begin, FREE_RETRANSMIT_LENGTH)]);
}

#[derive(Clone, Debug)]
enum Step {
    Nak(i64, usize),
    Send(i64),
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let ranges = (-10..100i64, 0..8usize);
    prop_oneof![
        6 => ranges.prop_map(|(frame, count)| Step::Nak(frame * 1408, count * MTU)),
        2 => (0..4i64).prop_map(|n| Step::Send(n * 1408)),
        3 => (0..8i64).prop_map(|n| Step::Wait(n * MS)),
    ]
}

/// A model of the rules in `docs/spec/04-media-driver.md`, section 9, for immediate retransmits.
///
/// The model has no budget, because the test requests too few bytes to exceed the budget.
struct Model {
    max_resend: Option<usize>,
    /// Ranges as start position, end position, and the time at which their linger time ends.
    lingering: Vec<(i64, i64, i64)>,
}

impl Model {
    fn on_nak(
        &mut self,
        (position, length): Range,
        sender_position: i64,
        now_ns: i64,
    ) -> (NakOutcome, Option<Range>) {
        let covers = |(begin, end, _): &(i64, i64, i64)| (*begin..*end).contains(&position);
        if length == 0 || self.lingering.iter().any(covers) {
            return (NakOutcome::Ignored, None);
        }
        match self.max_resend {
            None => self.lingering.clear(),
            Some(limit) if self.lingering.len() == limit => {
                return (NakOutcome::PoolOverflow, None);
            }
            Some(_) => {}
        }
        let end = position + length as i64;
        self.lingering.push((position, end, now_ns + LINGER));
        let oldest = sender_position - (TERM / 2 + TERM / 8) as i64;
        let is_there = position >= oldest.max(0) && position < sender_position;
        let answer = is_there.then_some((position, length));
        (NakOutcome::Accepted, answer)
    }
}

proptest! {
    #[test]
    fn the_handler_follows_the_rules_after_any_script(
        max_resend in prop_oneof![Just(None), (1..5usize).prop_map(Some)],
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut sender = Sender::new(RetransmitConfig { max_resend, ..config(TERM) });
        let mut model = Model { max_resend, lingering: Vec::new() };
        for step in steps {
            match step {
                Step::Nak(position, length) => {
                    let (outcome, answer) =
                        model.on_nak((position, length), sender.position, sender.now_ns);
                    prop_assert_eq!(sender.hears(position, length), outcome);
                    prop_assert_eq!(sender.resent(), Vec::from_iter(answer));
                }
                Step::Send(length) => sender.position += length,
                Step::Wait(duration_ns) => {
                    sender.waits(duration_ns);
                    model.lingering.retain(|it| it.2 >= sender.now_ns);
                }
            }
        }
    }

    #[test]
    fn no_script_of_naks_makes_the_handler_panic_or_retransmit_from_an_unsent_position(
        term_shift in 16..=30u32,
        start_term in 0..1i64 << 31,
        naks in prop::collection::vec(any::<(i64, usize, i64)>(), 0..40),
    ) {
        let term_length = 1 << term_shift;
        let start_position = start_term << term_shift;
        let mut sender = Sender::new(RetransmitConfig { start_position, ..config(term_length) });
        sender.position = start_position;
        for (position, length, step) in naks {
            sender.position += step & (term_length as i64 - 32);
            sender.now_ns += step & (SECOND - 1);
            sender.hears(position, length);
            sender.hears(sender.position - (position & (term_length as i64 - 1)), length);
            for (position, length) in sender.resent() {
                prop_assert!((start_position..sender.position).contains(&position));
                prop_assert!(length <= 2 * 1024 * 1024);
            }
        }
    }
}

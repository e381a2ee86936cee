//! Tests of congestion control: the window that a receiver offers.

use std::convert::Infallible;

use crate::Context;
use crate::congestion::{
    Congestion, CongestionControl, CongestionStrategy, Cubic, CubicConfig, CubicIndicators,
    ImageLengths, RttMeter, RttShared, StaticWindow, TrackRebuild, WindowUpdate, max_window_length,
};
use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_protocol::ErrorCode;
use aeron_protocol::uri::ChannelUri;
use proptest::prelude::*;

use super::support::{MS, SECOND, US, counter};

const MTU: i32 = 1408;
const WINDOW: i32 = 128 * 1024;
const INITIAL_RTT: i64 = 100 * US;

fn indicators() -> CubicIndicators {
    CubicIndicators {
        rtt: counter(),
        window: counter(),
    }
}

/// Cubic congestion control and the state of its image.
struct Image {
    cubic: Cubic,
    window: AtomicCounter<SharedBuffer>,
    rtt: RttShared,
    now_ns: i64,
}

impl Image {
    fn new(max_window_length: i32, is_tcp_mode: bool) -> Self {
        let now_ns = 1000 * SECOND;
        let config = CubicConfig {
            max_window_length,
            mtu_length: MTU,
            initial_rtt_ns: INITIAL_RTT,
            is_tcp_mode,
        };
        let (window, rtt) = (counter(), RttShared::new(INITIAL_RTT));
        Image {
            cubic: Cubic::new(config, rtt.clone(), window.clone(), now_ns),
            window,
            rtt,
            now_ns,
        }
    }

    fn rebuilds(&mut self, is_loss_found: bool, consumed: i64) -> WindowUpdate {
        let update = self.cubic.on_track_rebuild(&TrackRebuild {
            now_ns: self.now_ns,
            consumption_position: consumed,
            next_sm_position: 0,
            is_loss_found,
        });
        assert_eq!(self.window.get(), i64::from(update.window_length));
        update
    }

    /// Lets `duration_ns` pass without loss. Returns the window in datagrams.
    fn grows(&mut self, duration_ns: i64) -> i32 {
        self.now_ns += duration_ns;
        let update = self.rebuilds(false, 0);
        assert!(!update.is_forced);
        update.window_length / MTU
    }

    fn follows(&mut self, growth: Growth) {
        const TOLERANCE: i64 = 2 * MS;
        let begin_ns = self.now_ns;
        for (cwnd, seen_us) in growth {
            let before_ns = begin_ns + seen_us * US - TOLERANCE;
            assert_eq!(self.grows(before_ns - self.now_ns), cwnd - 1);
            assert_eq!(self.grows(2 * TOLERANCE), *cwnd);
        }
    }

    /// Reports a loss. Returns the window in datagrams.
    fn loses(&mut self) -> i32 {
        let update = self.rebuilds(true, 0);
        assert!(update.is_forced);
        update.window_length / MTU
    }
}

#[test]
fn a_static_window_never_changes_04_143() {
    assert_eq!(max_window_length(128 * 1024, 64 * 1024), 32 * 1024);
    assert_eq!(max_window_length(128 * 1024, 16 << 20), 128 * 1024);
    assert_eq!(max_window_length(i64::MAX, 1 << 30), 1 << 29);
    let mut window = StaticWindow::new(32 * 1024);
    assert_eq!(window.initial_window_length(), 32 * 1024);
    assert_eq!(window.max_window_length(), 32 * 1024);
    for is_loss_found in [false, true] {
        let update = window.on_track_rebuild(&TrackRebuild {
            now_ns: i64::MAX,
            consumption_position: 1 << 40,
            next_sm_position: 0,
            is_loss_found,
        });
        let expected = WindowUpdate {
            window_length: 32 * 1024,
            is_forced: false,
        };
        assert_eq!(update, expected);
    }
}

/// 04-165
#[test]
fn cubic_starts_with_ten_datagrams_or_fewer_if_the_window_is_smaller() {
    let image = Image::new(WINDOW, false);
    assert_eq!(image.cubic.initial_window_length(), 10 * MTU);
    assert_eq!(image.cubic.max_window_length(), WINDOW);
    assert_eq!(image.window.get(), i64::from(10 * MTU));
    assert_eq!(
        Image::new(4 * MTU + 1, false).cubic.initial_window_length(),
        4 * MTU
    );
    let narrow = Image::new(MTU - 32, false).cubic.initial_window_length();
    assert_eq!(narrow, MTU - 32, "never more than the largest window");
}

/// 04-165
#[test]
fn the_cubic_window_follows_the_curve_and_reaches_w_max_after_k() {
    let mut image = Image::new(WINDOW, false);
    // w_max = 93, K = cbrt(46.5) = 3.596 s. The curve begins at 93 - 18, and its values are truncated.
    assert_eq!(
        image.grows(INITIAL_RTT),
        10,
        "not before the update interval is over"
    );
    assert_eq!(image.grows(1), 75);
    assert_eq!(image.grows(SECOND), 93 - 6);
    assert_eq!(image.grows(SECOND), 93 - 1);
    assert_eq!(image.grows(SECOND), 93);
    assert_eq!(image.grows(100 * SECOND), 93);
}

/// Window sizes in datagrams, each with the time at which the image reached it. The time is in microseconds since the
/// image's creation or last loss.
type Growth = &'static [(i32, i64)];

/// 04-165: captured from a C driver 1.53 with this window and MTU. The window was read every half millisecond.
#[test]
fn cubic_grows_at_the_times_captured_from_the_real_driver() {
    const FROM_CREATION: Growth = &[
        (76, 39_300),
        (86, 881_800),
        (88, 1_129_600),
        (90, 1_442_700),
        (92, 1_885_900),
        (93, 2_238_800),
    ];
    const FROM_LOSS: Growth = &[(76, 40_000), (78, 176_300), (80, 325_300), (82, 489_900)];
    const FROM_LOSS_AT_82: Growth = &[
        (67, 29_300),
        (70, 256_900),
        (75, 734_400),
        (80, 1_491_300),
        (82, 2_091_400),
        (83, 4_805_600),
        (84, 5_158_100),
        (88, 5_915_500),
    ];
    let mut image = Image::new(WINDOW, false);
    image.follows(FROM_CREATION);
    assert_eq!(image.loses(), 74);
    image.follows(FROM_LOSS);
    assert_eq!(image.loses(), 65);
    image.follows(FROM_LOSS_AT_82);
}

/// 04-165
#[test]
fn cubic_shrinks_by_a_fifth_on_each_loss_down_to_one_datagram() {
    let mut image = Image::new(WINDOW, false);
    image.grows(100 * SECOND);
    let windows: Vec<i32> = (0..20).map(|_| image.loses()).collect();
    assert_eq!(
        windows,
        [
            74, 59, 47, 37, 29, 23, 18, 14, 11, 8, 6, 4, 3, 2, 1, 1, 1, 1, 1, 1
        ]
    );
}

#[test]
fn after_a_loss_the_cubic_window_returns_to_its_size_and_then_exceeds_it() {
    let mut image = Image::new(100 * MTU, false);
    image.grows(100 * SECOND);
    for expected in [80, 64] {
        assert_eq!(image.loses(), expected);
    }
    // w_max = 80, K = cbrt(40) = 3.42 s.
    assert_eq!(image.grows(MS), 80 - 15);
    assert_eq!(image.grows(3420 * MS), 80);
    assert_eq!(image.grows(3 * SECOND), 80 + 10);
    assert_eq!(image.grows(SECOND), 100);
}

#[test]
fn a_window_of_one_datagram_is_offered_again_whenever_data_was_consumed() {
    let mut image = Image::new(WINDOW, false);
    while image.loses() > 1 {}
    for (consumed, is_forced) in [(1408, true), (0, false), (2816, true)] {
        assert_eq!(image.rebuilds(false, consumed).is_forced, is_forced);
    }
    image.now_ns += INITIAL_RTT + 1;
    assert!(
        !image.rebuilds(false, 1408).is_forced,
        "an update that grows the window is not forced"
    );
}

#[test]
fn in_tcp_mode_the_window_is_at_least_the_window_of_tcp_and_at_most_the_largest_window() {
    let mut image = Image::new(WINDOW, true);
    // 93 * 0.8 + t / RTT / 3 with the initial RTT: 74.4 + 3.4 after ten round trips.
    assert_eq!(image.grows(10 * INITIAL_RTT + 1), 77);
    assert_eq!(image.grows(50 * INITIAL_RTT), 93);
    let mut meter = RttMeter::new(image.rtt.clone(), counter(), image.now_ns);
    meter.on_answer(image.now_ns - 20 * MS, 0, image.now_ns);
    assert_eq!(image.loses(), 74);
    assert_eq!(
        image.grows(600 * MS),
        84,
        "the window of TCP is 74.4 + 10, and the curve has only 83"
    );
    meter.on_answer(image.now_ns, 0, image.now_ns);
    assert_eq!(image.rtt.get_ns(), 0);
    assert_eq!(
        image.grows(MS),
        93,
        "with an RTT of zero, the window is the largest window"
    );
}

proptest! {
    #[test]
    fn the_window_is_always_between_one_datagram_and_the_largest_window(
        max_window_length in MTU..1 << 29,
        is_tcp_mode: bool,
        steps in prop::collection::vec((any::<bool>(), 0..SECOND * 20, any::<i64>()), 0..200),
    ) {
        let mut image = Image::new(max_window_length, is_tcp_mode);
        for (is_loss_found, duration_ns, consumed) in steps {
            image.now_ns += duration_ns;
            let update = image.rebuilds(is_loss_found, consumed);
            prop_assert!((MTU..=max_window_length).contains(&update.window_length));
            prop_assert_eq!(update.window_length % MTU, 0);
        }
    }
}

/// 04-166
#[test]
fn the_rtt_is_measured_every_four_round_trips_and_written_to_the_counter() {
    let (shared, indicator) = (RttShared::new(INITIAL_RTT), counter());
    let mut meter = RttMeter::new(shared.clone(), indicator.clone(), 0);
    assert_eq!(shared.get_ns(), INITIAL_RTT);
    assert!(!meter.should_measure(4 * INITIAL_RTT));
    let asked_ns = 4 * INITIAL_RTT + 1;
    assert!(meter.should_measure(asked_ns));
    assert!(!meter.should_measure(asked_ns), "one measurement at a time");
    assert!(!meter.should_measure(asked_ns + 4 * INITIAL_RTT));

    let answered_ns = asked_ns + 5 * MS;
    meter.on_answer(asked_ns, MS, answered_ns);
    assert_eq!((shared.get_ns(), indicator.get()), (4 * MS, 4 * MS));
    assert!(!meter.should_measure(answered_ns + 16 * MS));
    assert!(meter.should_measure(answered_ns + 16 * MS + 1));

    meter.on_answer(SECOND, 0, SECOND + 1);
    assert_eq!(indicator.get(), 1);
    assert!(
        !meter.should_measure(SECOND + 1 + 4 * INITIAL_RTT),
        "never more often than at first"
    );
    assert!(meter.should_measure(SECOND + 2 + 4 * INITIAL_RTT));
}

#[test]
fn an_rtt_reply_with_impossible_times_is_ignored() {
    let (shared, indicator) = (RttShared::new(INITIAL_RTT), counter());
    let mut meter = RttMeter::new(shared.clone(), indicator.clone(), 0);
    for (echo, delta) in [
        (SECOND + 1, 0),
        (i64::MIN, 0),
        (i64::MAX, 0),
        (0, i64::MAX),
        (0, i64::MIN),
    ] {
        meter.on_answer(echo, delta, SECOND);
    }
    assert_eq!((shared.get_ns(), indicator.get()), (INITIAL_RTT, 0));
}

fn strategy(channel: &str, supplier: &str) -> CongestionStrategy {
    let uri = ChannelUri::parse(channel).unwrap();
    let context = Context {
        congestion_control_supplier: supplier.into(),
        ..Context::default()
    };
    context.validate().unwrap();
    CongestionStrategy::of_channel(&uri, &context).unwrap()
}

#[test]
fn the_channel_chooses_congestion_control_unless_the_setting_names_one() {
    use CongestionStrategy::{Cubic, Static};
    let udp = "aeron:udp?endpoint=localhost:24325";
    for (cc, supplier, expected) in [
        ("", "default", Static),
        ("|cc=static", "default", Static),
        (
            "|cc=io.aeron.driver.StaticWindowCongestionControl",
            "default",
            Static,
        ),
        (
            "|cc=io.aeron.driver.ext.CubicCongestionControl",
            "default",
            Cubic,
        ),
        (
            "|cc=io.aeron.driver.ext.CubicCongestionControlSupplier",
            "default",
            Cubic,
        ),
        ("|cc=cubic", "default", Cubic),
        ("|cc=cubic", "static", Static),
        ("", "cubic", Cubic),
        ("|cc=static", "cubic", Cubic),
        (
            "|cc=cubic",
            "aeron_congestion_control_default_strategy_supplier",
            Cubic,
        ),
        (
            "|cc=cubic",
            "aeron_static_window_congestion_control_strategy_supplier",
            Static,
        ),
        (
            "",
            "aeron_cubic_congestion_control_strategy_supplier",
            Cubic,
        ),
    ] {
        assert_eq!(
            strategy(&format!("{udp}{cc}"), supplier),
            expected,
            "{cc} {supplier}"
        );
    }
}

#[test]
fn an_unknown_congestion_control_is_an_error_that_contains_its_name() {
    let uri = ChannelUri::parse("aeron:udp?endpoint=localhost:24325|cc=reno").unwrap();
    let error = CongestionStrategy::of_channel(&uri, &Context::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::GenericError);
    assert!(error.text().contains("reno"));
}

/// 04-166
#[test]
fn only_cubic_has_indicators_and_only_measuring_cubic_has_a_meter() {
    let lengths = ImageLengths {
        max_window_length: WINDOW,
        mtu_length: MTU,
    };
    let mut context = Context::default();
    let created = Congestion::new(
        CongestionStrategy::Static,
        lengths,
        &context,
        || Err("asked"),
        0,
    )
    .unwrap();
    assert_eq!(created.control.initial_window_length(), WINDOW);
    assert!(created.rtt_meter.is_none());
    assert!(
        Congestion::new(
            CongestionStrategy::Cubic,
            lengths,
            &context,
            || Err("asked"),
            0
        )
        .is_err()
    );
    for measure_rtt in [false, true] {
        context.cubic_measure_rtt = measure_rtt;
        let indicators = indicators();
        let given = indicators.clone();
        let created = Congestion::new(
            CongestionStrategy::Cubic,
            lengths,
            &context,
            || Ok::<_, Infallible>(given),
            0,
        );
        let created = created.unwrap();
        assert_eq!(
            indicators.window.get(),
            i64::from(created.control.initial_window_length())
        );
        assert_eq!(created.rtt_meter.is_some(), measure_rtt);
        if let Some(mut meter) = created.rtt_meter {
            meter.on_answer(0, 0, MS);
            assert_eq!(indicators.rtt.get(), MS);
        }
    }
}

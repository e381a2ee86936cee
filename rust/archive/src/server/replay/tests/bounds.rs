//! Tests of the bounds of a replay: the counters that move its stop position, and its limit.

use super::kit::{Counters, descriptor};
use crate::server::replay::bounds::ReplayBounds;
use crate::server::replay::plan::{ReplayPlan, ReplayRange};

fn bounds(counters: &Counters, ids: &[i32], length: i64) -> ReplayBounds {
    let counters: Vec<_> = ids.iter().map(|&id| counters.find(id).unwrap()).collect();
    let range = ReplayRange {
        position: 0,
        length,
        file_io_max_length: -1,
    };
    let bound = counters.iter().map(|counter| counter.get()).min();
    let plan = ReplayPlan::new(&range, &descriptor(0, -1), bound, 1 << 20).unwrap();
    ReplayBounds::new(&plan, None, counters)
}

/// 07-90, 07-91
#[test]
fn a_counter_is_the_stop_position_and_its_last_value_is_the_limit() {
    let mut counters = Counters::new();
    let id = counters.add(96, 0);
    let mut bounds = bounds(&counters, &[id], -1);
    assert_eq!(bounds.stop_position(), 96);
    counters.set(id, 160);
    bounds.update();
    assert_eq!(
        (bounds.stop_position(), bounds.limit_position()),
        (160, i64::MAX)
    );
    assert!(bounds.is_moving());
    counters.set(id, 224);
    counters.free(id, 0);
    bounds.update();
    assert_eq!(
        (bounds.stop_position(), bounds.limit_position()),
        (224, 224)
    );
    assert!(!bounds.is_moving());
}

#[test]
fn a_decreasing_counter_does_not_decrease_the_stop_position() {
    let mut counters = Counters::new();
    let id = counters.add(96, 0);
    let mut bounds = bounds(&counters, &[id], -1);
    counters.set(id, 32);
    bounds.update();
    assert_eq!(bounds.stop_position(), 96);
}

#[test]
fn a_replay_ends_at_the_last_known_value_if_another_counter_has_the_counter_id() {
    let mut counters = Counters::new();
    let id = counters.add(96, 0);
    let mut bounds = bounds(&counters, &[id], -1);
    counters.set(id, 160);
    bounds.update();
    counters.free(id, 0);
    assert_eq!(counters.add(1 << 40, 2000), id);
    bounds.update();
    assert_eq!(
        (bounds.stop_position(), bounds.limit_position()),
        (160, 160)
    );
}

#[test]
fn the_lower_of_two_counters_is_the_stop_position() {
    let mut counters = Counters::new();
    let (recorded, chosen) = (counters.add(320, 0), counters.add(96, 0));
    let mut bounds = bounds(&counters, &[recorded, chosen], -1);
    assert_eq!(bounds.stop_position(), 96);
    counters.set(chosen, 1 << 40);
    bounds.update();
    assert_eq!(bounds.stop_position(), 320);
    counters.free(recorded, 0);
    bounds.update();
    assert_eq!(
        (bounds.stop_position(), bounds.limit_position()),
        (320, 320)
    );
    assert!(!bounds.is_moving());
}

#[test]
fn the_end_of_the_requested_length_stays_the_limit_if_the_counter_ends_later() {
    let mut counters = Counters::new();
    let id = counters.add(96, 0);
    let mut bounds = bounds(&counters, &[id], 64);
    counters.set(id, 320);
    counters.free(id, 0);
    bounds.update();
    assert_eq!(bounds.limit_position(), 64);
}

/// 07-92
#[test]
fn a_counter_id_that_is_free_or_out_of_range_is_not_found() {
    let mut counters = Counters::new();
    let id = counters.add(96, 0);
    assert!(counters.find(id).is_some());
    counters.free(id, 0);
    for id in [id, id + 1, -1, i32::MIN, i32::MAX] {
        assert!(counters.find(id).is_none());
    }
}

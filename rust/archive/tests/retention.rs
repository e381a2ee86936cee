//! The decisions of retention: the choice of a policy, the evaluation of policies (compared with a
//! simple model), the effect of holders (such as readers and replays that need data), and the expiry
//! of readers.

use aeron_archive::extensions::{NamedReader, RetentionPolicy, RetentionScope};
use aeron_archive::retention::{
    DoubtedAges, EarlierTime, Holders, MAX_SEGMENTS, Moment, ReaderExpiry, RecordingExtent,
    Removal, RetentionClock, RetentionHolder, RetentionOutcome, doubted_removals, excess_bytes,
    expiry_of, needs_segment_time, outcome, policy_of, removals,
};
use proptest::prelude::*;

const SEGMENT: i64 = 1_024;
const NOW_MS: i64 = 10_000;

fn policy(max_bytes: Option<i64>, max_age_ms: Option<i64>) -> RetentionPolicy {
    RetentionPolicy {
        scope: matching(None, ""),
        max_bytes,
        max_age_ms,
    }
}

fn matching(stream_id: Option<i32>, channel_fragment: &str) -> RetentionScope {
    RetentionScope::Matching {
        stream_id,
        channel_fragment: channel_fragment.to_owned(),
    }
}

/// Returns the extent of an active recording. It has one full segment for each time, and a last
/// segment with 32 bytes.
fn active(recording_id: i64, times_ms: &[i64]) -> RecordingExtent {
    RecordingExtent {
        recording_id,
        start_position: 0,
        first_base: 0,
        end_position: times_ms.len() as i64 * SEGMENT + 32,
        segment_length: SEGMENT,
        start_timestamp_ms: 0,
        stop_timestamp_ms: None,
        segment_times_ms: times_ms.to_vec(),
    }
}

fn stopped(recording_id: i64, times_ms: &[i64], stop_ms: i64) -> RecordingExtent {
    RecordingExtent {
        stop_timestamp_ms: Some(stop_ms),
        ..active(recording_id, times_ms)
    }
}

fn from(recording_id: i64, segments: i64) -> Removal {
    Removal {
        recording_id,
        new_start_position: segments * SEGMENT,
        is_purge: false,
    }
}

fn whole(extent: &RecordingExtent) -> Removal {
    Removal {
        recording_id: extent.recording_id,
        new_start_position: extent.end_position,
        is_purge: true,
    }
}

#[test]
fn max_age_deletes_the_segments_before_the_first_segment_that_is_not_old() {
    let policy = policy(None, Some(1_000));
    let extents = [
        active(1, &[8_998, 8_999, 9_000, 100]),
        active(2, &[9_000]),
        stopped(3, &[1, 2], 9_000),
        stopped(4, &[1, 9_500], 8_999),
    ];
    assert_eq!(
        removals(&policy, &extents, NOW_MS),
        [from(1, 2), from(3, 2), whole(&extents[3])]
    );
}

#[test]
fn while_the_clock_is_doubted_only_bytes_delete_and_the_rest_is_held_by_the_clock() {
    let extents = [
        active(1, &[8_000, 8_001, 9_900]),
        active(2, &[7_000, 9_900]),
        stopped(3, &[9_900], 8_002),
        active(4, &[9_900]),
    ];
    let of = |max_bytes| {
        let planned = doubted_removals(&policy(max_bytes, Some(1_000)), &extents, NOW_MS);
        let outcomes = planned.iter().map(|(removal, doubted)| {
            let holders = Holders {
                doubted: *doubted,
                ..Holders::default()
            };
            let extent = &extents[removal.recording_id as usize - 1];
            let outcome = outcome(extent, removal, &holders);
            let bytes = outcome.allowed_position - outcome.new_start_position;
            (
                removal.recording_id,
                outcome.new_start_position,
                outcome.is_purge,
                outcome.held_by,
                bytes,
            )
        });
        outcomes.collect::<Vec<_>>()
    };
    let (clock, nothing) = (RetentionHolder::Clock, RetentionHolder::Nothing);
    let by_age_alone = [
        (1, 0, false, clock, 2 * SEGMENT),
        (2, 0, false, clock, SEGMENT),
        (3, 0, false, clock, SEGMENT + 32),
    ];
    assert_eq!(of(None), by_age_alone);
    // The bytes of all recordings delete the two oldest segments.
    let total: i64 = extents.iter().map(RecordingExtent::bytes).sum();
    let with_bytes = [
        (1, SEGMENT, false, clock, SEGMENT),
        (2, SEGMENT, false, nothing, 0),
        (3, 0, false, clock, SEGMENT + 32),
    ];
    assert_eq!(of(Some(total - 2 * SEGMENT)), with_bytes);
    let all = of(Some(0));
    assert_eq!(all[2], (3, SEGMENT + 32, true, nothing, 0));
    assert_eq!(all[3], (4, SEGMENT, false, nothing, 0));
    // The hold itself.
    let doubted = Some(DoubtedAges {
        new_start_position: SEGMENT,
        is_purge: false,
    });
    let holders = Holders {
        doubted,
        readers: vec![("slow", 0)],
        ..Holders::default()
    };
    let held = outcome(&extents[0], &from(1, 2), &holders);
    assert_eq!(
        (held.new_start_position, held.held_by),
        (0, RetentionHolder::Reader)
    );
}

#[test]
fn max_bytes_applies_to_all_recordings_together_and_the_oldest_segments_are_deleted_first() {
    let extents = [active(1, &[5, 6, 9]), active(2, &[4, 7, 8])];
    let total = 6 * SEGMENT + 64;
    let of = |max_bytes| removals(&policy(Some(max_bytes), None), &extents, NOW_MS);
    assert_eq!(of(total), []);
    assert_eq!(of(total - 1), [from(2, 1)]);
    assert_eq!(of(total - SEGMENT), [from(2, 1)]);
    assert_eq!(of(total - 2 * SEGMENT), [from(1, 1), from(2, 1)]);
    assert_eq!(of(total - 3 * SEGMENT), [from(1, 2), from(2, 1)]);
    assert_eq!(of(0), [from(1, 3), from(2, 3)]);
}

#[test]
fn max_bytes_deletes_whole_stopped_recordings_but_keeps_the_last_segment_of_the_policy() {
    let extents = [stopped(1, &[1], 3), stopped(2, &[2], 4)];
    let of = |max_bytes| removals(&policy(Some(max_bytes), None), &extents, NOW_MS);
    assert_eq!(of(SEGMENT), [from(1, 1), from(2, 1)]);
    assert_eq!(of(32), [whole(&extents[0]), from(2, 1)]);
    assert_eq!(of(0), [whole(&extents[0]), from(2, 1)]);
}

#[test]
fn a_segment_without_a_time_is_not_deleted() {
    let mut extent = active(1, &[1, 2, 3]);
    extent.segment_times_ms.truncate(1);
    for policy in [policy(Some(0), None), policy(None, Some(1))] {
        assert_eq!(removals(&policy, &[extent.clone()], NOW_MS), [from(1, 1)]);
    }
}

#[test]
fn no_segment_time_is_needed_if_the_recording_itself_is_younger_than_the_maximum_age() {
    let policy = policy(None, Some(1_000));
    let mut extent = active(1, &[9_500]);
    extent.segment_times_ms.clear();
    extent.start_timestamp_ms = 9_400;
    assert!(!needs_segment_time(&policy, &extent, 0, NOW_MS));
    extent.start_timestamp_ms = 1;
    assert!(needs_segment_time(&policy, &extent, 0, NOW_MS));
}

/// A damaged catalog may contain any positions.
#[test]
fn at_most_max_segments_of_a_very_long_recording_are_deleted_at_once() {
    let policy = policy(Some(0), Some(1));
    let mut endless = active(1, &[]);
    endless.end_position = i64::MAX - 31;
    let extents = [endless.clone(), endless.clone()];
    assert_eq!(excess_bytes(&policy, &extents), i64::MAX);
    endless.segment_times_ms = vec![1; MAX_SEGMENTS];
    assert!(!needs_segment_time(&policy, &endless, i64::MAX, NOW_MS));
    let removed = removals(&policy, &[endless.clone(), endless], NOW_MS);
    assert_eq!(removed, [from(1, MAX_SEGMENTS as i64); 2]);
}

#[test]
fn the_policy_with_the_most_specific_scope_applies_to_a_recording() {
    let policies: Vec<RetentionPolicy> = [
        RetentionScope::Recording(7),
        matching(None, ""),
        matching(None, "aeron:udp?endpoint=a"),
        matching(None, "aeron:udp?endpoint=b"),
        matching(Some(10), ""),
        matching(Some(10), "udp"),
        matching(Some(10), "ipc"),
    ]
    .into_iter()
    .map(|scope| RetentionPolicy {
        scope,
        ..policy(Some(1), None)
    })
    .collect();
    let of = |recording_id, stream_id, channel: &str| {
        let chosen = policy_of(&policies, recording_id, stream_id, channel)?;
        policies.iter().position(|policy| policy == chosen)
    };
    assert_eq!(of(7, 10, "aeron:udp?endpoint=a:1"), Some(0));
    assert_eq!(of(8, 11, "aeron:ipc"), Some(1));
    assert_eq!(of(8, 11, "aeron:udp?endpoint=a:1"), Some(2));
    assert_eq!(of(8, 10, "aeron:udp?endpoint=a:1"), Some(5));
    assert_eq!(of(8, 10, "aeron:ipc"), Some(6));
    assert_eq!(of(8, 10, "aeron-spy:x"), Some(4));
    assert_eq!(policy_of(&policies[..1], 8, 10, ""), None);
    let equal = [matching(None, "aeron"), matching(None, "ipc:a")].map(|scope| RetentionPolicy {
        scope,
        ..policy(Some(1), None)
    });
    assert_eq!(policy_of(&equal, 1, 1, "aeron:ipc:a"), Some(&equal[0]));
}
#[test]
fn segments_from_the_lowest_position_of_readers_and_replays_on_are_kept() {
    let extent = active(1, &[1, 2, 3]);
    let of = |holders: &Holders<'_>| outcome(&extent, &from(1, 3), holders);
    let free = RetentionOutcome {
        recording_id: 1,
        start_position: 0,
        new_start_position: 3 * SEGMENT,
        allowed_position: 3 * SEGMENT,
        is_purge: false,
        held_by: RetentionHolder::Nothing,
        reader: String::new(),
    };
    assert_eq!(of(&Holders::default()), free);
    let at_end = Holders {
        readers: vec![("bars", extent.end_position)],
        lowest_replay_position: Some(3 * SEGMENT),
        is_to_be_extended: true,
        ..Holders::default()
    };
    assert_eq!(of(&at_end), free);
    let reading = Holders {
        readers: vec![("bars", 2 * SEGMENT - 32), ("other", 2 * SEGMENT)],
        ..at_end.clone()
    };
    let held = RetentionOutcome {
        new_start_position: SEGMENT,
        held_by: RetentionHolder::Reader,
        reader: "bars".into(),
        ..free.clone()
    };
    assert_eq!(of(&reading), held);
    let replaying = Holders {
        lowest_replay_position: Some(0),
        ..reading.clone()
    };
    let held = RetentionOutcome {
        new_start_position: 0,
        held_by: RetentionHolder::Replay,
        ..free.clone()
    };
    assert_eq!(of(&replaying), held);
    assert!(held.is_nothing());
    let changing = Holders {
        is_changing: true,
        ..reading
    };
    assert_eq!(of(&changing).held_by, RetentionHolder::Change);
    assert!(of(&changing).is_nothing());
}

#[test]
fn a_recording_is_not_purged_while_it_is_read_replayed_copied_or_about_to_be_extended() {
    let extent = stopped(1, &[1, 2], 3);
    let of = |holders: &Holders<'_>| {
        let outcome = outcome(&extent, &whole(&extent), holders);
        (
            outcome.is_purge,
            outcome.new_start_position,
            outcome.held_by,
        )
    };
    let committed = Holders {
        readers: vec![("bars", extent.end_position)],
        ..Holders::default()
    };
    assert_eq!(
        of(&committed),
        (true, extent.end_position, RetentionHolder::Nothing)
    );
    let leaving = Holders {
        leaving_reader: Some("bars"),
        ..committed
    };
    assert_eq!(of(&leaving), (false, 2 * SEGMENT, RetentionHolder::Reader));
    let replayed = Holders {
        lowest_replay_position: Some(extent.end_position),
        ..Holders::default()
    };
    assert_eq!(of(&replayed), (false, 2 * SEGMENT, RetentionHolder::Replay));
    let reading = Holders {
        readers: vec![("bars", extent.end_position - 32)],
        ..Holders::default()
    };
    assert_eq!(of(&reading), (false, 2 * SEGMENT, RetentionHolder::Reader));
    let extended = Holders {
        is_to_be_extended: true,
        ..Holders::default()
    };
    assert_eq!(of(&extended), (false, 2 * SEGMENT, RetentionHolder::Change));
    // After a purge, the copies in object storage could not be read. The last segment has no copy.
    let copied = Holders {
        copied_base: Some(2 * SEGMENT),
        ..Holders::default()
    };
    assert_eq!(of(&copied), (false, 2 * SEGMENT, RetentionHolder::Copy));
}

#[test]
fn the_start_position_of_a_recording_that_begins_within_a_segment_does_not_decrease() {
    let mut extent = active(1, &[1, 2]);
    extent.start_position = 512;
    let holders = Holders {
        leaving_reader: None,
        readers: vec![("bars", 600)],
        ..Holders::default()
    };
    let outcome = outcome(&extent, &from(1, 1), &holders);
    assert_eq!(outcome.new_start_position, 512);
    assert!(outcome.is_nothing());
}

#[test]
fn a_reader_expires_by_its_limits_and_the_time_before_the_start_does_not_count() {
    let reader = |max_age_ms, max_lag| NamedReader {
        recording_id: 1,
        name: "bars".into(),
        owner: Vec::new(),
        position: 100,
        committed_ms: 1_000,
        max_age_ms,
        max_lag,
    };
    let of = |reader: NamedReader, end, since_ms| {
        let start = Moment {
            wall_ms: since_ms,
            now_ns: 0,
        };
        let mut clock = RetentionClock::new(start, EarlierTime::default(), 1);
        clock.update(Moment {
            wall_ms: NOW_MS,
            now_ns: (NOW_MS - since_ms) * 1_000_000,
        });
        expiry_of(&reader, end, &clock)
    };
    assert_eq!(of(reader(None, None), i64::MAX, 0), None);
    assert_eq!(of(reader(Some(9_000), Some(100)), 200, 0), None);
    let (age_ms, max_age_ms) = (9_000, 8_999);
    let expiry = Some(ReaderExpiry::Age { age_ms, max_age_ms });
    assert_eq!(of(reader(Some(8_999), None), 100, 0), expiry);
    assert_eq!(of(reader(Some(8_999), None), 100, 1_001), None);
    // While the clock is not trusted, only the lag counts.
    let mut clock = RetentionClock::new(
        Moment {
            wall_ms: 0,
            now_ns: 0,
        },
        EarlierTime::default(),
        i64::MAX,
    );
    clock.update(Moment {
        wall_ms: 1_000_000,
        now_ns: 0,
    });
    assert_eq!(expiry_of(&reader(Some(0), None), 100, &clock), None);
    let expiry = expiry_of(&reader(Some(0), Some(5)), i64::MAX, &clock);
    assert!(
        matches!(expiry, Some(ReaderExpiry::Lag { .. })),
        "{expiry:?}"
    );
    let (lag, max_lag) = (101, 100);
    let expiry = Some(ReaderExpiry::Lag { lag, max_lag });
    assert_eq!(of(reader(None, Some(100)), 201, 0), expiry);
}

/// The smallest part of a recording that can be deleted.
#[derive(Clone, Copy)]
struct Unit {
    bytes: i64,
    time_ms: i64,
    is_last: bool,
}

/// Computes the removals in the simplest way. First deletes the units that are too old. Then deletes the oldest unit of
/// all recordings, one at a time, until at most `max_bytes` are left.
fn model(policy: &RetentionPolicy, extents: &[RecordingExtent]) -> Vec<Removal> {
    let old = |time_ms: i64| {
        policy
            .max_age_ms
            .is_some_and(|age_ms| NOW_MS - time_ms > age_ms)
    };
    let units = |extent: &RecordingExtent| {
        let mut left = extent.end_position - extent.first_base;
        let mut units = Vec::new();
        for time_ms in &extent.segment_times_ms {
            units.push(Unit {
                bytes: SEGMENT,
                time_ms: *time_ms,
                is_last: false,
            });
            left -= SEGMENT;
        }
        units.push(Unit {
            bytes: left,
            time_ms: extent.stop_timestamp_ms.unwrap_or(i64::MAX),
            is_last: true,
        });
        units
    };
    let mut left: Vec<Vec<Unit>> = extents.iter().map(units).collect();
    for (extent, units) in extents.iter().zip(&mut left) {
        if extent.stop_timestamp_ms.is_some_and(old) {
            units.clear();
        }
        while units
            .first()
            .is_some_and(|unit| !unit.is_last && old(unit.time_ms))
        {
            units.remove(0);
        }
    }
    while let Some(max_bytes) = policy.max_bytes {
        let total: i64 = left.iter().flatten().map(|unit| unit.bytes).sum();
        let may_go = |unit: &Unit| unit.time_ms != i64::MAX && unit.bytes > 0 && unit.bytes < total;
        let oldest = (0..left.len())
            .filter_map(|at| Some((left[at].first().copied().filter(may_go)?.time_ms, at)))
            .min();
        match oldest {
            Some((_, at)) if total > max_bytes => drop(left[at].remove(0)),
            _ => break,
        }
    }
    let removal = |(extent, left): (&RecordingExtent, &Vec<Unit>)| {
        let removed = units(extent).len() - left.len();
        match left.is_empty() {
            true => Some(whole(extent)),
            false => (removed > 0).then(|| Removal {
                recording_id: extent.recording_id,
                new_start_position: extent.first_base + removed as i64 * SEGMENT,
                is_purge: false,
            }),
        }
    };
    extents.iter().zip(&left).filter_map(removal).collect()
}

prop_compose! {
    fn extents()(
        recordings in prop::collection::vec(
            (0..4_i64, 0..SEGMENT, prop::collection::vec(1..NOW_MS, 0..5), 0..=32_i64, prop::option::of(1..NOW_MS)),
            0..6,
        ),
    ) -> Vec<RecordingExtent> {
        recordings.into_iter().enumerate().map(|(id, (first, start, times_ms, frames, stop_ms))| {
            let first_base = first * SEGMENT;
            let sealed = times_ms.len() as i64;
            // A recording without a sealed segment may be empty.
            let tail = match sealed { 0 => frames * 32, _ => frames.max(1) * 32 };
            RecordingExtent {
                recording_id: id as i64,
                start_position: first_base + start.min(sealed * SEGMENT + tail) / 32 * 32,
                first_base,
                end_position: first_base + sealed * SEGMENT + tail,
                segment_length: SEGMENT,
                start_timestamp_ms: 0,
                stop_timestamp_ms: stop_ms,
                segment_times_ms: times_ms,
            }
        }).collect()
    }
}

prop_compose! {
    fn policies()(
        max_bytes in prop::option::of(0..20 * SEGMENT),
        max_age_ms in prop::option::of(0..NOW_MS),
    ) -> RetentionPolicy {
        policy(max_bytes, max_age_ms)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn removals_are_the_same_as_in_the_model(policy in policies(), extents in extents()) {
        prop_assert_eq!(removals(&policy, &extents, NOW_MS), model(&policy, &extents));
    }

    #[test]
    fn the_times_that_needs_segment_time_requests_are_sufficient(policy in policies(), extents in extents()) {
        let mut read = extents.clone();
        let excess = excess_bytes(&policy, &extents);
        for (extent, all) in read.iter_mut().zip(&extents) {
            extent.segment_times_ms.clear();
            while needs_segment_time(&policy, extent, excess, NOW_MS) {
                let number = extent.segment_times_ms.len();
                extent.segment_times_ms.push(all.segment_times_ms[number]);
            }
        }
        prop_assert_eq!(removals(&policy, &read, NOW_MS), removals(&policy, &extents, NOW_MS));
    }

    #[test]
    fn data_that_a_holder_needs_and_the_last_segment_are_not_deleted(
        policy in policies(),
        extents in extents(),
        positions in prop::collection::vec(0..10 * SEGMENT, 0..3),
        replay in prop::option::of(0..10 * SEGMENT),
        is_changing in prop::bool::weighted(0.1),
        is_to_be_extended in any::<bool>(),
        copied_base in prop::option::of(0..10 * SEGMENT),
    ) {
        let holders = Holders {
            doubted: None,
            copied_base,
            leaving_reader: None,
            readers: positions.iter().map(|position| ("reader", *position)).collect(),
            lowest_replay_position: replay,
            is_changing,
            is_to_be_extended,
        };
        for removal in removals(&policy, &extents, NOW_MS) {
            let extent = extents.iter().find(|it| it.recording_id == removal.recording_id).unwrap();
            let outcome = outcome(extent, &removal, &holders);
            let (start, new_start) = (extent.start_position, outcome.new_start_position);
            prop_assert!(new_start <= outcome.allowed_position.max(start));
            prop_assert!(!is_changing || outcome.is_nothing());
            let is_all = new_start >= outcome.allowed_position && outcome.is_purge == removal.is_purge;
            prop_assert_eq!(outcome.held_by == RetentionHolder::Nothing, is_all);
            if outcome.is_purge {
                prop_assert!(extent.stop_timestamp_ms.is_some() && replay.is_none() && !is_to_be_extended);
                prop_assert!(positions.iter().all(|position| *position >= extent.end_position));
                prop_assert!(copied_base.is_none());
                continue;
            }
            if !outcome.is_nothing() {
                prop_assert_eq!((new_start - extent.first_base) % SEGMENT, 0);
                prop_assert!(new_start < extent.end_position);
                let in_recording = |position: &i64| (start..=extent.end_position).contains(position);
                let readers = positions.iter().filter(|_| copied_base.is_none());
                for position in readers.chain(&replay).chain(&copied_base).filter(|it| in_recording(it)) {
                    prop_assert!(new_start <= *position, "{new_start} > {position}");
                }
            }
        }
    }
}

#[test]
fn a_segment_without_a_copy_is_not_deleted_but_the_last_segment_needs_no_copy() {
    let (extent, removal) = (active(1, &[1, 2, 3]), from(1, 3));
    let of = |copied_base| {
        let holders = Holders {
            copied_base,
            ..Holders::default()
        };
        let outcome = outcome(&extent, &removal, &holders);
        (outcome.new_start_position, outcome.held_by)
    };
    assert_eq!(of(Some(SEGMENT)), (SEGMENT, RetentionHolder::Copy));
    assert_eq!(
        of(Some(3 * SEGMENT)),
        (3 * SEGMENT, RetentionHolder::Nothing)
    );
    assert_eq!(of(None), (3 * SEGMENT, RetentionHolder::Nothing));
}

#[test]
fn a_reader_holds_no_segment_that_has_a_copy() {
    let (extent, removal) = (active(1, &[1, 2, 3]), from(1, 3));
    let held = |copied_base| {
        let holders = Holders {
            copied_base,
            readers: vec![("bars", 0)],
            ..Holders::default()
        };
        let outcome = outcome(&extent, &removal, &holders);
        (outcome.new_start_position, outcome.held_by)
    };
    assert_eq!(held(None), (0, RetentionHolder::Reader));
    assert_eq!(
        held(Some(2 * SEGMENT)),
        (2 * SEGMENT, RetentionHolder::Copy)
    );
    assert_eq!(
        held(Some(3 * SEGMENT)),
        (3 * SEGMENT, RetentionHolder::Nothing)
    );
}

//! Tests of the plan of a replay: its start position, its limit and the length of its reads.

use aeron_protocol::archive::{
    ArchiveErrorCode, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP,
};
use proptest::prelude::*;

use super::kit::{FILE_IO_MAX_LENGTH, MTU_LENGTH, descriptor};
use crate::server::replay::plan::{ReplayPlan, ReplayRange};

const START: i64 = 1024;
const STOP: i64 = 200_000 / 32 * 32;

fn range(position: i64, length: i64) -> ReplayRange {
    ReplayRange {
        position,
        length,
        file_io_max_length: -1,
    }
}

fn stopped(position: i64, length: i64) -> Result<ReplayPlan, (ArchiveErrorCode, String)> {
    plan(range(position, length), STOP, None)
}

fn active(
    position: i64,
    length: i64,
    recorded: i64,
) -> Result<ReplayPlan, (ArchiveErrorCode, String)> {
    plan(range(position, length), NULL_VALUE, Some(recorded))
}

fn plan(
    range: ReplayRange,
    stop_position: i64,
    bound: Option<i64>,
) -> Result<ReplayPlan, (ArchiveErrorCode, String)> {
    let descriptor = descriptor(START, stop_position);
    ReplayPlan::new(&range, &descriptor, bound, FILE_IO_MAX_LENGTH)
        .map_err(|error| (error.code, error.message))
}

fn refused(code: ArchiveErrorCode, text: &str) -> Result<ReplayPlan, (ArchiveErrorCode, String)> {
    Err((code, text.to_owned()))
}

/// 07-83
#[test]
fn a_replay_without_a_position_begins_at_the_start_of_the_recording() {
    let plan = stopped(NULL_VALUE, REPLAY_ALL_AND_FOLLOW).unwrap();
    assert_eq!(plan.position, START);
    assert_eq!(plan.stop_position, STOP);
    assert_eq!(plan.limit_position, STOP);
    assert_eq!(plan.read_length, FILE_IO_MAX_LENGTH as usize);
}

/// 07-84
#[test]
fn a_position_that_is_outside_the_recording_or_unaligned_is_refused() {
    assert_eq!(
        stopped(START + 1, 32),
        refused(
            ArchiveErrorCode::Generic,
            "requested replay start position=1025 is not a multiple of FRAME_ALIGNMENT (32) for recording 3"
        )
    );
    assert_eq!(
        stopped(START - 32, 32),
        refused(
            ArchiveErrorCode::InvalidPosition,
            "requested replay start position=992 is less than recording start position=1024 for recording 3"
        )
    );
    assert_eq!(
        stopped(STOP, 32),
        refused(
            ArchiveErrorCode::InvalidPosition,
            "requested replay start position=200000 must be less than the limit position=200000 for recording 3"
        )
    );
    assert!(stopped(STOP - 32, 32).is_ok());
    assert_eq!(
        active(STOP + 32, 32, STOP),
        refused(
            ArchiveErrorCode::InvalidPosition,
            "requested replay start position=200032 must be less than the limit position=200000 for recording 3"
        )
    );
    assert_eq!(active(STOP, 32, STOP).unwrap().position, STOP);
}

/// 07-89, 07-90
#[test]
fn the_length_decides_where_a_replay_ends() {
    let limit = |plan: Result<ReplayPlan, _>| plan.unwrap().limit_position;
    assert_eq!(limit(stopped(2048, 100)), 2148);
    assert_eq!(limit(stopped(2048, 0)), 2048);
    assert_eq!(limit(stopped(2048, i64::MAX)), STOP);
    assert_eq!(limit(stopped(2048, REPLAY_ALL_AND_STOP)), STOP);
    assert_eq!(limit(active(2048, 1 << 40, STOP)), 2048 + (1 << 40));
    assert_eq!(limit(active(2048, REPLAY_ALL_AND_STOP, STOP)), STOP);
    assert_eq!(limit(active(2048, REPLAY_ALL_AND_FOLLOW, STOP)), i64::MAX);
    assert_eq!(
        stopped(2048, -3),
        refused(
            ArchiveErrorCode::Generic,
            "replay length must be positive: -3"
        )
    );
}

/// 07-91
#[test]
fn a_counter_above_the_stop_position_does_not_extend_the_replay_of_a_stopped_recording() {
    let bounded = |bound| plan(range(NULL_VALUE, REPLAY_ALL_AND_FOLLOW), STOP, Some(bound));
    assert_eq!(bounded(i64::MAX).unwrap().stop_position, STOP);
    assert_eq!(bounded(START).unwrap().stop_position, START);
    assert_eq!(bounded(START).unwrap().limit_position, STOP);
    assert!(bounded(START - 1).is_err());
}

/// 07-96
#[test]
fn a_read_length_below_the_longest_frame_is_refused() {
    let with_length = |file_io_max_length| {
        let range = ReplayRange {
            file_io_max_length,
            ..range(NULL_VALUE, REPLAY_ALL_AND_FOLLOW)
        };
        plan(range, STOP, None).map(|plan| plan.read_length)
    };
    assert_eq!(
        with_length(MTU_LENGTH - 1),
        Err((
            ArchiveErrorCode::Generic,
            "fileIoMaxLength=1407 < mtuLength=1408".to_owned()
        ))
    );
    assert_eq!(with_length(MTU_LENGTH), Ok(MTU_LENGTH as usize));
    assert_eq!(with_length(0), Ok(FILE_IO_MAX_LENGTH as usize));
    assert_eq!(with_length(i32::MAX), Ok(FILE_IO_MAX_LENGTH as usize));
}

/// 07-98
#[test]
fn replay_all_and_stop_of_an_empty_recording_is_refused() {
    let text = "when replaying and stopping the replay length must be non-zero, recordingId=3";
    let empty = |start, bound| {
        let descriptor = descriptor(start, if bound { NULL_VALUE } else { start });
        let range = range(NULL_VALUE, REPLAY_ALL_AND_STOP);
        let bound = bound.then_some(start);
        ReplayPlan::new(&range, &descriptor, bound, FILE_IO_MAX_LENGTH).unwrap_err()
    };
    for is_active in [false, true] {
        let error = empty(START, is_active);
        assert_eq!(error.code, ArchiveErrorCode::EmptyRecording);
        assert_eq!(error.message, text);
    }
}

fn any_position() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -64..400_000_i64,
        (0..10_000_i64).prop_map(|count| count * 32),
    ]
}

proptest! {
    #[test]
    fn a_plan_is_within_the_range_of_its_recording(
        position in any_position(),
        length in any_position(),
        file_io_max_length: i32,
        bound in prop::option::of(any_position()),
        is_active: bool,
    ) {
        let range = ReplayRange { position, length, file_io_max_length };
        let stop_position = if is_active { NULL_VALUE } else { STOP };
        let Ok(plan) = plan(range, stop_position, bound) else {
            return Ok(());
        };
        let end = match (is_active, bound) {
            (true, Some(bound)) => bound,
            (true, None) => return Err(TestCaseError::fail("the plan of an active recording has no bound")),
            (false, bound) => bound.unwrap_or(STOP).min(STOP),
        };
        prop_assert!((START..=end).contains(&plan.position));
        prop_assert_eq!(plan.position % 32, 0);
        prop_assert_eq!(plan.stop_position, end);
        prop_assert!(plan.limit_position >= plan.position);
        prop_assert!(is_active || plan.limit_position <= STOP);
        prop_assert!((MTU_LENGTH..=FILE_IO_MAX_LENGTH).contains(&(plan.read_length as i32)));
    }

    #[test]
    fn planning_with_any_request_and_any_catalog_entry_does_not_panic(
        position in any_position(),
        length in any_position(),
        file_io_max_length: i32,
        bound in prop::option::of(any_position()),
        start_position in any_position(),
        stop_position in any_position(),
        mtu_length: i32,
        own_length: i32,
    ) {
        let mut descriptor = descriptor(start_position, stop_position);
        descriptor.mtu_length = mtu_length;
        let range = ReplayRange { position, length, file_io_max_length };
        let _ = ReplayPlan::new(&range, &descriptor, bound, own_length);
    }
}

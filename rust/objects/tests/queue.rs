//! The queue of copies: it bounds the number of running copies, loses none, and waits longer after each failure.

use std::collections::BTreeSet;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::objects::{RecordingIdentity, SealedSegment};
use aeron_objects::queue::{CopyQueue, CopyTask};
use proptest::prelude::*;

fn segment(recording_id: i64, base: i64) -> SealedSegment {
    SealedSegment {
        recording: RecordingDescriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id,
            start_timestamp_ms: 0,
            stop_timestamp_ms: -1,
            start_position: 0,
            stop_position: -1,
            initial_term_id: 0,
            segment_length: 64,
            term_length: 64,
            mtu_length: 64,
            session_id: 0,
            stream_id: 0,
            stripped_channel: "".into(),
            original_channel: "".into(),
            source_identity: "".into(),
        },
        base,
    }
}

/// One event in the life of a queue.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add,
    Begin,
    Succeed,
    Fail,
    Wait(u64),
    Forget(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Add),
        4 => Just(Step::Begin),
        2 => Just(Step::Succeed),
        2 => Just(Step::Fail),
        2 => (0_u64..100_000).prop_map(Step::Wait),
        1 => (0_i64..3).prop_map(Step::Forget),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #[test]
    fn copies_are_bounded_and_none_is_lost_or_doubled(concurrency in 1_usize..4, steps in steps()) {
        let mut queue = CopyQueue::new(concurrency);
        let (mut now_ms, mut added) = (0, 0);
        let mut due: BTreeSet<(i64, i64)> = BTreeSet::new();
        let mut running: Vec<CopyTask> = Vec::new();
        let key = |task: &CopyTask| (task.segment.recording.recording_id, task.segment.base);
        for step in steps {
            match step {
                Step::Add => {
                    let segment = segment(added % 3, added * 64);
                    due.insert((added % 3, added * 64));
                    added += 1;
                    queue.add(segment);
                }
                Step::Begin => {
                    if let Some(task) = queue.begin(now_ms) {
                        prop_assert!(due.remove(&key(&task)), "a copy begins twice");
                        running.push(task);
                    }
                }
                Step::Succeed if !running.is_empty() => {
                    running.remove(0);
                    queue.end();
                }
                Step::Fail if !running.is_empty() => {
                    let task = running.remove(0);
                    due.insert(key(&task));
                    let failures = task.failures;
                    queue.end();
                    let delay_ms = queue.retry(task, now_ms);
                    prop_assert_eq!(delay_ms, 1_000 * 2_u64.pow(failures.min(16)).min(60));
                }
                Step::Wait(ms) => now_ms += ms,
                Step::Forget(id) => {
                    queue.forget(RecordingIdentity::of(&segment(id, 0).recording));
                    due.retain(|(recording_id, _)| *recording_id != id);
                }
                Step::Succeed | Step::Fail => {}
            }
            prop_assert!(running.len() <= concurrency);
        }
        // After a long time every segment that is due begins.
        running.iter().for_each(|_| queue.end());
        while let Some(task) = queue.begin(u64::MAX) {
            prop_assert!(due.remove(&key(&task)));
            queue.end();
        }
        prop_assert!(due.is_empty());
        prop_assert_eq!(queue.next_due_ms(), None);
    }
}

#[test]
fn a_failed_copy_waits_and_others_go_on() {
    let mut queue = CopyQueue::new(1);
    queue.add(segment(0, 0));
    queue.add(segment(0, 64));
    let first = queue.begin(0).unwrap();
    queue.end();
    assert_eq!(queue.retry(first, 0), 1_000);
    assert_eq!(queue.next_due_ms(), Some(1_000));
    assert_eq!(queue.begin(0).unwrap().segment.base, 64);
    assert_eq!(queue.begin(2_000), None, "one copy runs");
    queue.end();
    let again = queue.begin(1_000).unwrap();
    assert_eq!((again.segment.base, again.failures), (0, 1));
}

//! Kills at named points: each state of a follower's switch to the live stream and back, each step of retention, each
//! step of a reader's commit, and each step of a resumed recording. After each kill, the schedule continues. At the
//! end, no message may be missing or occur twice. The checks are the same as in other schedules with followers.

use aeron_archive::client::PersistentSubscriptionState as State;
use aeron_simulator::DiskStep::{Create, Remove, Write};
use aeron_simulator::{
    DiskPoint, DiskStep, FileKind, FollowingSchedule, FollowingWorld, NamedKill, RecordKind,
    StreamForm, Victim,
};

/// Maximum number of seeds that are tried until a schedule reaches a point.
const SEEDS: u64 = 24;

/// Runs the schedules of the first seeds until one of them reaches the point of the kill. Prints the outcome of this
/// schedule.
fn kill(name: &str, form: StreamForm, kill: NamedKill) {
    kill_in(name, |seed| FollowingSchedule::with_kill(seed, form, kill));
}

fn kill_in(name: &str, draw: impl Fn(u64) -> FollowingSchedule) {
    for seed in 0..SEEDS {
        let schedule = draw(seed);
        match FollowingWorld::new(schedule).run() {
            Ok(outcome) if outcome.named_kills == 1 => {
                println!("killed: {name} (seed {seed}), {outcome:?}");
                return;
            }
            Ok(_) => {}
            Err(failure) => panic!(
                "{name}, seed {seed}: {}\n{}",
                failure.finding, failure.counters
            ),
        }
    }
    panic!("no schedule reaches the point: {name}");
}

/// Kills the follower while it is in a state. In another schedule, kills the archive while the follower is in this
/// state.
fn kill_in_state(form: StreamForm, state: State, has_left_live: bool) -> usize {
    let direction = match has_left_live {
        true => "after the live stream was left",
        false => "on the way to the live stream",
    };
    for victim in [Victim::Follower(0), Victim::Archive] {
        let name = format!("{victim:?} in {}, {direction}, over {form:?}", state.name());
        kill(
            &name,
            form,
            NamedKill::InState(state, has_left_live, victim),
        );
    }
    2
}

/// Kills the archive before a step on its disk, and in another schedule after the step.
fn kill_at_step(name: &str, point: DiskPoint) -> usize {
    for is_done in [false, true] {
        let when = if is_done { "after" } else { "before" };
        let point = DiskPoint { is_done, ..point };
        kill(
            &format!("archive {when}: {name}"),
            StreamForm::Ipc,
            NamedKill::OnDisk(point),
        );
    }
    2
}

/// The first step of a kind on a file.
const fn first(step: DiskStep, file: FileKind) -> DiskPoint {
    DiskPoint {
        step,
        file,
        after: None,
        skipped: 0,
        is_done: false,
    }
}

/// A later occurrence of the same step: the first `skipped` occurrences do not count.
const fn later(skipped: u32, point: DiskPoint) -> DiskPoint {
    DiskPoint { skipped, ..point }
}

/// The same step, but only after a record of this kind was written to the file of extensions.
const fn after(record: RecordKind, point: DiskPoint) -> DiskPoint {
    DiskPoint {
        after: Some(record),
        ..point
    }
}

/// The first write of a record.
const fn record(kind: RecordKind) -> DiskPoint {
    first(Write, FileKind::Record(kind))
}

#[test]
fn kills_in_each_state_on_the_way_to_the_live_stream_lose_and_double_nothing() {
    let states = [
        State::AwaitArchiveConnection,
        State::SendListRecordingRequest,
        State::AwaitListRecordingResponse,
        State::SendReplayRequest,
        State::AwaitReplayResponse,
        State::AddReplaySubscription,
        State::AwaitReplaySubscription,
        State::Replay,
        State::AttemptSwitch,
        State::Live,
    ];
    let count: usize = states
        .into_iter()
        .map(|state| kill_in_state(StreamForm::Ipc, state, false))
        .sum();
    let over_udp = [State::AwaitReplayChannelEndpoint, State::AttemptSwitch];
    let count_over_udp: usize = over_udp
        .into_iter()
        .map(|state| kill_in_state(StreamForm::Multicast, state, false))
        .sum();
    println!("{} kills", count + count_over_udp);
}

#[test]
fn kills_in_each_state_of_a_replay_over_a_response_channel_lose_and_double_nothing() {
    let states = [
        State::SendReplayTokenRequest,
        State::AwaitReplayToken,
        State::AddRequestPublication,
        State::AwaitRequestPublication,
        State::AwaitReplayResponse,
        State::AttemptSwitch,
    ];
    for state in states {
        for victim in [Victim::Follower(0), Victim::Archive] {
            let name = format!("{victim:?} in {}, over a response channel", state.name());
            let kill = NamedKill::InState(state, false, victim);
            kill_in(&name, |seed| {
                FollowingSchedule::with_kill(seed, StreamForm::Multicast, kill)
                    .with_response_channel()
            });
        }
    }
    println!("{} kills", 2 * states.len());
}

#[test]
fn kills_in_each_state_after_the_live_stream_was_left_lose_and_double_nothing() {
    let states = [
        State::SendListRecordingRequest,
        State::AwaitListRecordingResponse,
        State::SendReplayRequest,
        State::AwaitReplayResponse,
        State::Replay,
        State::AttemptSwitch,
        State::Live,
    ];
    let count: usize = states
        .into_iter()
        .map(|state| kill_in_state(StreamForm::Ipc, state, true))
        .sum();
    println!("{count} kills");
}

#[test]
fn kills_at_each_step_of_retention_lose_nothing_that_is_not_committed() {
    let segment = first(Remove, FileKind::Segment);
    let catalog = after(RecordKind::Deletion, first(Write, FileKind::Catalog));
    let steps = [
        ("a policy is stored", record(RecordKind::Policy)),
        (
            "the state of the clock is stored",
            record(RecordKind::Clock),
        ),
        ("a deletion is noted", record(RecordKind::Deletion)),
        ("the catalog has the new start", catalog),
        ("the first segment is deleted", segment),
        ("the second segment is deleted", later(1, segment)),
        (
            "the index of a segment is deleted",
            first(Remove, FileKind::Index),
        ),
        ("the deletion is done", record(RecordKind::DeletionEnd)),
        (
            "the log has the deletion",
            first(Write, FileKind::RetentionLog),
        ),
    ];
    let count: usize = steps.iter().map(|(name, at)| kill_at_step(name, *at)).sum();
    println!("{count} kills");
}

#[test]
fn kills_at_each_step_of_a_commit_lose_no_committed_position() {
    let commit = record(RecordKind::Reader);
    let steps = [
        ("a reader is created", commit),
        ("a reader commits", later(1, commit)),
        ("a reader commits for the tenth time", later(9, commit)),
        (
            "a reader leaves a recording",
            record(RecordKind::ReaderRemoved),
        ),
    ];
    let count: usize = steps.iter().map(|(name, at)| kill_at_step(name, *at)).sum();
    println!("{count} kills");
}

#[test]
fn kills_at_each_step_of_resumption_keep_all_that_was_recorded() {
    let link = record(RecordKind::Link);
    let catalog = first(Write, FileKind::Catalog);
    let segment = first(Create, FileKind::Segment);
    let steps = [
        (
            "the file of extensions is created",
            first(Create, FileKind::Extensions),
        ),
        ("a subscription is noted", record(RecordKind::Subscription)),
        ("a recording begins", segment),
        ("a recording is linked", link),
        (
            "a linked recording is in the catalog",
            after(RecordKind::Link, catalog),
        ),
        (
            "a linked recording has a segment",
            after(RecordKind::Link, segment),
        ),
        ("another recording is linked", later(1, link)),
    ];
    let count: usize = steps.iter().map(|(name, at)| kill_at_step(name, *at)).sum();
    println!("{count} kills");
}

//! Retention under wall clocks that are wrong at a start, at a stop and at the next start.

use std::sync::Arc;
use std::time::Duration;

use aeron_agent::CachedEpochClock;
use aeron_archive::extensions::{
    ClockState, ExtensionChange, NamedReader, RetentionPolicy, RetentionScope,
};
use aeron_archive::index::{ArrivalClock, IndexForm};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::retention::{
    Holders, Moment, RecordingExtent, Removal, RetentionClock, doubted_removals, expiry_of,
    needs_segment_time, outcome, removals,
};
use aeron_archive::store::{ArchiveStore, StoreOptions};

use crate::recordings::stream::SEGMENT_LENGTH;
use crate::store::common::*;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const OFFSETS_MS: [i64; 5] = [-30 * DAY_MS, -HOUR_MS, 0, HOUR_MS, 30 * DAY_MS];
const MAX_AGE_MS: i64 = 7 * DAY_MS;
const MAX_READER_AGE_MS: i64 = HOUR_MS / 2;
/// The true time at the begin of each test, in milliseconds since the epoch.
const BEGIN_MS: i64 = 20_000 * DAY_MS;

/// A machine with an archive and a wall clock that may be wrong.
struct Machine {
    storage: MemoryStorage,
    options: StoreOptions,
    true_ms: i64,
    offset_ms: i64,
    arrivals: Arc<CachedEpochClock>,
}

/// One run of the archive.
struct Run {
    store: Store,
    clock: RetentionClock,
}

impl Machine {
    fn new(index: Option<IndexForm>) -> Self {
        Self {
            storage: MemoryStorage::new(),
            options: StoreOptions { index, ..options() },
            true_ms: BEGIN_MS,
            offset_ms: 0,
            arrivals: Arc::new(CachedEpochClock::new(0)),
        }
    }

    fn now(&self) -> Moment {
        Moment {
            wall_ms: self.true_ms + self.offset_ms,
            now_ns: (self.true_ms - BEGIN_MS) * 1_000_000,
        }
    }

    fn pass(&mut self, ms: i64) {
        self.true_ms += ms;
        self.set_clock(self.offset_ms);
    }

    fn set_clock(&mut self, offset_ms: i64) {
        self.offset_ms = offset_ms;
        let wall_ms = self.now().wall_ms;
        self.arrivals.update(wall_ms);
        self.storage.set_time(Duration::from_millis(wall_ms as u64));
    }

    fn start(&mut self, offset_ms: i64) -> Run {
        self.set_clock(offset_ms);
        let wall_ms = self.now().wall_ms;
        let (mut store, _) =
            ArchiveStore::open(self.storage.clone(), self.options, wall_ms).unwrap();
        store.set_arrival_clock(ArrivalClock::new(Arc::clone(&self.arrivals) as _));
        let clock = RetentionClock::new(self.now(), store.earlier_time(), DAY_MS * 1_000_000);
        let mut run = Run { store, clock };
        run.note_clock(self.now());
        run
    }

    /// Applies the policies as the archive does. Returns the number of recordings from which data is deleted, and the
    /// number of expired readers.
    fn retain(&mut self, run: &mut Run) -> (usize, usize) {
        if run.clock.update(self.now()).is_some() {
            run.note_clock(self.now());
        }
        let store = &run.store;
        let [policy] = store.extensions().policies().collect::<Vec<_>>()[..] else {
            return (0, 0);
        };
        let now_ms = run.clock.now_ms();
        let ids = store.recordings().map(|it| it.recording_id);
        let mut extents: Vec<RecordingExtent> =
            ids.map(|id| store.extent(id, None).unwrap()).collect();
        for extent in &mut extents {
            while needs_segment_time(policy, extent, 0, now_ms) {
                let base = extent.segment_base(extent.segment_times_ms.len());
                let time_ms = store.segment_time_ms(extent, base).unwrap();
                extent.segment_times_ms.push(time_ms);
            }
        }
        let planned = match run.clock.doubted() {
            Some(_) => doubted_removals(policy, &extents, now_ms),
            None => {
                let all = removals(policy, &extents, now_ms).into_iter();
                all.map(|removal| (removal, None)).collect()
            }
        };
        let is_deleted = |(removal, doubted): &(Removal, _)| {
            let extent = extents
                .iter()
                .find(|extent| extent.recording_id == removal.recording_id);
            let holders = Holders {
                doubted: *doubted,
                ..Holders::default()
            };
            !outcome(extent.unwrap(), removal, &holders).is_nothing()
        };
        let deleted = planned.iter().filter(|it| is_deleted(it)).count();
        let expired = extents.iter().flat_map(|extent| {
            let readers = store.extensions().readers_of(extent.recording_id);
            readers.filter_map(|reader| expiry_of(reader, extent.end_position, &run.clock))
        });
        (deleted, expired.count())
    }
}

impl Run {
    fn note_clock(&mut self, now: Moment) {
        let state = ClockState {
            last_ms: now.wall_ms,
            remaining_ms: self.clock.remaining_ns() / 1_000_000,
        };
        let change = ExtensionChange::Clock(state);
        self.store.extensions_mut().apply(vec![change]).unwrap();
    }

    fn set_policy(&mut self) {
        let policy = RetentionPolicy {
            scope: RetentionScope::Matching {
                stream_id: None,
                channel_fragment: String::new(),
            },
            max_bytes: None,
            max_age_ms: Some(MAX_AGE_MS),
        };
        let change = ExtensionChange::Policy(policy);
        self.store.extensions_mut().apply(vec![change]).unwrap();
    }

    fn commit(&mut self, recording_id: i64) {
        let reader = NamedReader {
            recording_id,
            name: "bars".into(),
            owner: Vec::new(),
            position: 0,
            committed_ms: self.clock.now_ms(),
            max_age_ms: Some(MAX_READER_AGE_MS),
            max_lag: None,
        };
        let change = ExtensionChange::Reader(reader);
        self.store.extensions_mut().apply(vec![change]).unwrap();
    }
}

/// 12, sections 9.1 to 9.5
#[test]
fn with_a_wrong_clock_at_a_start_a_stop_or_the_next_start_nothing_fresh_is_deleted() {
    for index in [Some(IndexForm::Sparse), None] {
        for [start, stop, restart] in offsets() {
            for is_killed in [false, true] {
                let told = format!("{index:?}, {start}, {stop}, {restart}, kill {is_killed}");
                let mut machine = Machine::new(index);
                let mut run = machine.start(start);
                run.set_policy();
                let image = aeron_archive::store::NewRecording {
                    start_timestamp_ms: machine.now().wall_ms,
                    ..image(0)
                };
                let mut session = run.store.start_recording(image).unwrap();
                record(&mut session, 2 * SEGMENT_LENGTH as usize / 1_000);
                run.commit(0);
                machine.pass(2_000);
                machine.set_clock(stop);
                assert_eq!(machine.retain(&mut run), (0, 0), "before the stop: {told}");
                record(&mut session, 10);
                if !is_killed {
                    session.finish_index().unwrap();
                    let end = session.recorded_position();
                    let now_ms = machine.now().wall_ms;
                    run.store.stop_recording(0, end, now_ms).unwrap();
                    run.note_clock(machine.now());
                }
                drop((run, session));
                machine.pass(1_000);
                let mut run = machine.start(restart);
                assert_eq!(machine.retain(&mut run), (0, 0), "restart: {told}");
                machine.pass(1_000);
                assert_eq!(machine.retain(&mut run), (0, 0), "later: {told}");
                drop(run);
                // The clock is right again.
                let mut run = machine.start(0);
                assert_eq!(machine.retain(&mut run), (0, 0), "right clock: {told}");
            }
        }
    }
}

/// An extension keeps the time of the last arrival. Otherwise a wrong clock at the extension would make all data old.
#[test]
fn an_extension_with_a_clock_that_was_set_back_keeps_the_last_arrival_time() {
    for messages in [20, SEGMENT_LENGTH as usize / 1_056, 200] {
        let mut machine = Machine::new(Some(IndexForm::Sparse));
        let mut run = machine.start(-20 * DAY_MS);
        let image = aeron_archive::store::NewRecording {
            start_timestamp_ms: machine.now().wall_ms,
            ..image(0)
        };
        let mut session = run.store.start_recording(image).unwrap();
        record(&mut session, messages);
        machine.set_clock(0);
        record(&mut session, 1);
        session.finish_index().unwrap();
        let end = session.recorded_position();
        let stopped_ms = machine.now().wall_ms;
        run.store.stop_recording(0, end, stopped_ms).unwrap();
        drop((run, session));
        machine.pass(1_000);
        let mut run = machine.start(-30 * DAY_MS);
        let mut session = run.store.extend_recording(0, &continuation(end)).unwrap();
        record(&mut session, messages);
        drop((run, session));
        let run = machine.start(-30 * DAY_MS);
        let ended_ms = run.store.recording(0).unwrap().ended_ms();
        assert_eq!(ended_ms, stopped_ms, "{messages} messages");
    }
}

fn offsets() -> impl Iterator<Item = [i64; 3]> {
    OFFSETS_MS.into_iter().flat_map(|start| {
        OFFSETS_MS
            .into_iter()
            .flat_map(move |stop| OFFSETS_MS.map(|restart| [start, stop, restart]))
    })
}

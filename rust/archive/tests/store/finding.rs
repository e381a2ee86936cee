//! Tests of `find_position`, the search for the position of a time. They compare the search with a scan of all index
//! entries, and search recordings without an index.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aeron_agent::EpochClock;
use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::index::{
    ArrivalClock, ENTRY_LENGTH, FoundPosition, IndexEntry, IndexFile, IndexForm, find_position,
};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::reader::RecordingReader;
use aeron_archive::storage::{Access, Storage, StorageFile};
use aeron_archive::store::{ArchiveStore, StoreOptions};
use aeron_archive::stream::RecordedStream;
use aeron_protocol::archive::TimeEdge;
use proptest::prelude::*;

use crate::recordings::stream::{Publisher, SEGMENT_LENGTH, TERM_LENGTH, payload};
use crate::store::common::*;

const FIRST_US: i64 = 1_000_000_000;
const BEGIN: u8 = 0x80;
const END: u8 = 0x40;

#[derive(Debug, Default, Clone)]
struct Clock(Arc<AtomicI64>);

impl EpochClock for Clock {
    fn time_ms(&self) -> i64 {
        self.time_us() / 1_000
    }

    fn time_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A step of a recording.
#[derive(Debug, Clone)]
enum Step {
    /// Records a message. Each fragment is a block of its own, and this pause precedes each
    /// fragment.
    Message {
        fragments: Vec<usize>,
        pause_us: i64,
    },
    /// Changes the clock by this number of microseconds, forward or back.
    Clock(i64),
    /// Stops and extends the recording.
    Restart,
}

/// Damage to the index of a segment. Random numbers choose its place.
#[derive(Debug, Clone)]
enum Harm {
    LoseTime(prop::sample::Index),
    LoseTimesFrom(prop::sample::Index),
    Damage(prop::sample::Index),
}

/// A recording in an archive, and the clock with which it was recorded.
struct Recorded {
    storage: MemoryStorage,
    store: Store,
    clock: Clock,
    id: i64,
}

fn steps() -> impl Strategy<Value = Step> {
    let pause = || prop_oneof![0..300_i64, 900..40_000_i64];
    prop_oneof![
        20 => (prop::collection::vec(1..1_300_usize, 1..5), pause())
            .prop_map(|(fragments, pause_us)| Step::Message { fragments, pause_us }),
        // Messages of several long fragments, which fill a segment faster.
        4 => (prop::collection::vec(1_300..1_370_usize, 6), pause())
            .prop_map(|(fragments, pause_us)| Step::Message { fragments, pause_us }),
        1 => (-200_000..200_000_i64).prop_map(Step::Clock),
        1 => Just(Step::Restart),
    ]
}

fn harms() -> impl Strategy<Value = (prop::sample::Index, Harm)> {
    let any = any::<prop::sample::Index>;
    let harm = prop_oneof![
        4 => any().prop_map(Harm::LoseTime),
        2 => any().prop_map(Harm::LoseTimesFrom),
        1 => any().prop_map(Harm::Damage),
    ];
    (any(), harm)
}

impl Recorded {
    fn new(is_indexed: bool, start: i64) -> (Self, Session) {
        let storage = MemoryStorage::new();
        let options = StoreOptions {
            index: is_indexed.then_some(IndexForm::Sparse),
            ..options()
        };
        let (mut store, _) = ArchiveStore::open(storage.clone(), options, OPENED_MS).unwrap();
        let clock = Clock::default();
        clock.0.store(FIRST_US, Ordering::Relaxed);
        store.set_arrival_clock(ArrivalClock::new(Arc::new(clock.clone())));
        let image = aeron_archive::store::NewRecording {
            start_timestamp_ms: FIRST_US / 1_000,
            ..image(start)
        };
        let session = store.start_recording(image).unwrap();
        let id = session.stream().recording_id();
        let recorded = Self {
            storage,
            store,
            clock,
            id,
        };
        (recorded, session)
    }

    /// Does the steps. If `is_stopped`, then stops the recording. Returns the end position and the
    /// arrival time of the end of each message.
    fn run(&mut self, mut session: Session, steps: &[Step], is_stopped: bool) -> Vec<(i64, i64)> {
        let mut ends = Vec::new();
        for step in steps {
            match step {
                Step::Message {
                    fragments,
                    pause_us,
                } => {
                    let end = self.record(&mut session, fragments, *pause_us);
                    ends.push((end, self.clock.time_us()));
                }
                Step::Clock(by_us) => self.advance(*by_us),
                Step::Restart => {
                    self.stop(&mut session);
                    let end = session.recorded_position();
                    drop(session);
                    session = self
                        .store
                        .extend_recording(self.id, &continuation(end))
                        .unwrap();
                }
            }
        }
        if is_stopped {
            self.stop(&mut session);
        }
        ends
    }

    fn stop(&mut self, session: &mut Session) {
        session.finish_index().unwrap();
        let now_ms = self.clock.time_ms();
        let end = session.recorded_position();
        self.store.stop_recording(self.id, end, now_ms).unwrap();
    }

    fn record(&self, session: &mut Session, fragments: &[usize], pause_us: i64) -> i64 {
        let mut publisher = Publisher::new(session.recorded_position());
        let room = TERM_LENGTH - publisher.position() % TERM_LENGTH;
        let needed: usize = fragments.iter().map(|length| (length + 63) / 32 * 32).sum();
        let mut blocks = Vec::new();
        if needed as i64 > room {
            blocks.push(publisher.pad(room));
        }
        let last = fragments.len() - 1;
        for (at, length) in fragments.iter().enumerate() {
            let begin = if at == 0 { BEGIN } else { 0 };
            let end = if at == last { END } else { 0 };
            blocks.push(publisher.data(begin | end, &payload(*length)));
        }
        for block in blocks {
            self.advance(pause_us);
            session.append(&block, |_| {}).unwrap();
            session.publish().unwrap();
        }
        session.recorded_position()
    }

    fn advance(&self, by_us: i64) {
        self.clock.0.fetch_add(by_us, Ordering::Relaxed);
        // Some file systems store only whole seconds.
        let now_s = self.clock.time_ms() as u64 / 1_000;
        self.storage.set_time(Duration::from_secs(now_s));
    }

    fn descriptor(&self) -> RecordingDescriptor {
        self.store.recording(self.id).unwrap().clone()
    }

    fn find(&self, end: i64, edge: TimeEdge, time_us: i64) -> FoundPosition {
        find_position(&self.storage, &self.descriptor(), end, edge, time_us).unwrap()
    }

    /// Purges the segments before a segment that `share` selects.
    fn purge(&mut self, share: prop::sample::Index) {
        let bases = bases(&self.storage, self.id);
        let new_start = bases[share.index(bases.len())];
        let (start, stop) = positions(&self.store, self.id);
        if new_start > start && new_start < stop {
            let operation = self.store.purge_segments(self.id, new_start, &IDLE);
            delete_all(&mut self.store, operation).unwrap();
        }
    }

    fn harm(&self, segment: prop::sample::Index, harm: &Harm) {
        let bases = bases(&self.storage, self.id);
        let base = bases[segment.index(bases.len())];
        let file = IndexFile::open(&self.storage, self.id, base, Access::Read).unwrap();
        let count = file.map_or(0, |file| file.entry_count());
        // The last entry is never damaged: without it, the search would use the time of the file.
        if count < 2 {
            return;
        }
        let name = format!("index-{}-{base}.idx", self.id);
        let mut bytes = self.storage.bytes(&name).unwrap();
        let slot = |number: usize| (number + 2) * ENTRY_LENGTH..(number + 3) * ENTRY_LENGTH;
        let mut lose = |number: usize| {
            let bytes: &mut [u8; ENTRY_LENGTH] = (&mut bytes[slot(number)]).try_into().unwrap();
            if let Some(entry) = IndexEntry::decode(bytes) {
                *bytes = IndexEntry {
                    arrival_us: None,
                    ..entry
                }
                .encode();
            }
        };
        match harm {
            Harm::LoseTime(at) => lose(at.index(count as usize)),
            Harm::LoseTimesFrom(at) => (at.index(count as usize)..count as usize).for_each(lose),
            Harm::Damage(at) => bytes[slot(at.index(count as usize - 1))][0] ^= 1,
        }
        self.storage.put(&name, &bytes);
    }

    /// Returns all entries, with the end of the last message before each entry. A damaged entry has no
    /// time.
    fn entries(&self, end: i64) -> Vec<NaiveEntry> {
        let start = self.descriptor().start_position;
        let mut entries = Vec::new();
        for base in bases(&self.storage, self.id) {
            let file = IndexFile::open(&self.storage, self.id, base, Access::Read).unwrap();
            let file = file.expect("an index");
            assert_eq!(file.header().form, IndexForm::Sparse);
            let mut before = file.header().progress.head;
            for number in 0..file.entry_count() {
                let entry = file.entry(number).unwrap();
                assert!(entry.is_none_or(|entry| entry.end_position <= end));
                entries.push(NaiveEntry {
                    begins_at: before.unwrap_or(base).max(start),
                    time_us: entry.and_then(|entry| entry.arrival_us),
                    is_damaged: entry.is_none(),
                });
                before = entry.map_or(before, |entry| entry.progress.head);
            }
        }
        entries
    }
}

#[derive(Debug)]
struct NaiveEntry {
    /// End of the last message before the entry.
    begins_at: i64,
    time_us: Option<i64>,
    is_damaged: bool,
}

/// Finds a position by a scan of all entries, from the first to the last.
fn naive(entries: &[NaiveEntry], end_head: i64, end: i64, edge: TimeEdge, time_us: i64) -> i64 {
    let mut unknown = None;
    for entry in entries {
        match entry.time_us {
            Some(time) if time >= time_us => {
                let unknown = unknown.filter(|_| edge == TimeEdge::Since);
                return unknown.unwrap_or(entry.begins_at);
            }
            Some(_) => unknown = None,
            None => {
                unknown.get_or_insert(entry.begins_at);
            }
        }
    }
    match edge {
        TimeEdge::Since => unknown.unwrap_or(end_head),
        TimeEdge::Until => end,
    }
}

/// Returns the positions at which a reader may begin: the start of the recording, and the end of
/// each message.
fn cuts(storage: &MemoryStorage, recording: &RecordingDescriptor, end: i64) -> Vec<i64> {
    let stream = RecordedStream::of_recording(recording).unwrap();
    let start = recording.start_position;
    let mut cuts = vec![start, end];
    let mut reader = RecordingReader::new(storage, stream, start, end).unwrap();
    while let Some(frame) = reader.next_frame().unwrap() {
        if frame.is_end() && !frame.is_padding() {
            cuts.push(frame.end_position());
        }
    }
    cuts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_search_finds_the_same_position_as_a_scan_of_all_entries(
        steps in prop::collection::vec(steps(), 1..400),
        harms in prop::collection::vec(harms(), 0..6),
        purge in prop::option::of(any::<prop::sample::Index>()),
        is_stopped: bool,
        start_term in 0..3_i64,
        offsets in prop::collection::vec((any::<prop::sample::Index>(), -2_000..2_000_i64), 1..24),
    ) {
        let (mut recorded, session) = Recorded::new(true, start_term * TERM_LENGTH + 96);
        let ends = recorded.run(session, &steps, true);
        let end = recorded.descriptor().stop_position;
        if let Some(share) = purge {
            recorded.purge(share);
        }
        for (segment, harm) in &harms {
            recorded.harm(*segment, harm);
        }
        if !is_stopped {
            recorded.store.extend_recording(recorded.id, &continuation(end)).unwrap();
        }
        let entries = recorded.entries(end);
        let cuts = cuts(&recorded.storage, &recorded.descriptor(), end);
        let end_head = cuts.iter().skip(2).last().copied().unwrap_or(recorded.descriptor().start_position);
        let times = offsets.iter().map(|(at, offset)| {
            ends.get(at.index(ends.len().max(1))).map_or(FIRST_US, |(_, time)| *time) + offset
        });
        let has_damage = entries.iter().any(|entry| entry.is_damaged);
        for time_us in times.chain([i64::MIN, FIRST_US - 1, i64::MAX]) {
            let since = recorded.find(end, TimeEdge::Since, time_us);
            let until = recorded.find(end, TimeEdge::Until, time_us);
            prop_assert!(!since.is_approximate && !until.is_approximate);
            prop_assert!(cuts.contains(&since.position), "{since:?}");
            prop_assert!(cuts.contains(&until.position), "{until:?}");
            prop_assert!(since.position <= until.position);
            let naive = |edge| naive(&entries, end_head, end, edge, time_us);
            prop_assert_eq!(since.position, naive(TimeEdge::Since));
            match has_damage {
                true => prop_assert!(until.position >= naive(TimeEdge::Until)),
                false => prop_assert_eq!(until.position, naive(TimeEdge::Until)),
            }
            // If a time is lost and the clock was set back, nothing is known about the lost time.
            if harms.is_empty() || !steps.iter().any(|step| matches!(step, Step::Clock(..0))) {
                let start = recorded.descriptor().start_position;
                for (message_end, arrived_us) in ends.iter().filter(|(end, _)| *end > start) {
                    prop_assert!(*message_end > since.position || *arrived_us < time_us);
                }
            }
        }
    }

    #[test]
    fn without_an_index_a_range_begins_at_a_segment_base_and_no_message_of_the_range_is_missing(
        steps in prop::collection::vec(steps(), 1..300),
        offsets in prop::collection::vec((any::<prop::sample::Index>(), -3_000_000..3_000_000_i64), 1..16),
        is_stopped: bool,
        is_copied: bool,
    ) {
        // If the clock was set back, the times of the files are not sufficient to find all
        // messages. So the clock is never set back here.
        let is_forward = |step: &&Step| !matches!(step, Step::Clock(by_us) if *by_us < 0);
        let steps: Vec<Step> = steps.iter().filter(is_forward).cloned().collect();
        let (mut recorded, session) = Recorded::new(false, 96);
        let ends = recorded.run(session, &steps, is_stopped);
        let end = ends.last().map_or(96, |(end, _)| *end);
        if is_copied {
            recorded.advance(10_000_000);
            for base in bases(&recorded.storage, recorded.id) {
                let name = format!("{}-{base}.rec", recorded.id);
                let bytes = recorded.storage.bytes(&name).unwrap();
                recorded.storage.put(&name, &bytes);
            }
        }
        for (at, offset) in &offsets {
            let time_us = ends.get(at.index(ends.len().max(1))).map_or(FIRST_US, |(_, time)| *time) + offset;
            let since = recorded.find(end, TimeEdge::Since, time_us);
            let until = recorded.find(end, TimeEdge::Until, time_us);
            prop_assert_eq!(since.arrival_us, None);
            let is_begin = since.position == 96 || since.position == end
                || since.position % SEGMENT_LENGTH == 0;
            prop_assert!(is_begin, "{since:?}");
            prop_assert!(since.position <= until.position);
            for (message_end, arrived_us) in &ends {
                prop_assert!(*message_end > since.position || *arrived_us < time_us);
                // The copied files of an active recording have times that are too late, which the search cannot know.
                if is_stopped || !is_copied {
                    prop_assert!(*message_end <= until.position || *arrived_us >= time_us);
                }
            }
        }
    }
}

/// Records one message per second, with or without an index. Also returns the ends of the messages.
fn second_by_second(is_indexed: bool, count: usize) -> (Recorded, Vec<i64>) {
    let (mut recorded, session) = Recorded::new(is_indexed, 0);
    let steps = vec![
        Step::Message {
            fragments: vec![1_200; 10],
            pause_us: 100_000,
        };
        count
    ];
    let ends = recorded.run(session, &steps, true);
    (recorded, ends.iter().map(|(end, _)| *end).collect())
}

#[test]
fn without_an_index_the_result_is_the_segment_of_the_time_and_is_approximate() {
    let (recorded, ends) = second_by_second(false, 60);
    let end = *ends.last().unwrap();
    // A segment has about ten messages.
    let since = recorded.find(end, TimeEdge::Since, FIRST_US + 25_000_000);
    let expected = FoundPosition {
        position: 2 * SEGMENT_LENGTH,
        arrival_us: None,
        is_approximate: true,
    };
    assert_eq!(since, expected);
    let until = recorded.find(end, TimeEdge::Until, FIRST_US + 25_000_000);
    assert_eq!(until.position, 3 * SEGMENT_LENGTH);
    assert!(until.is_approximate);
}

#[test]
fn without_an_index_the_start_and_stop_times_of_the_catalog_are_used() {
    let (recorded, ends) = second_by_second(false, 30);
    let end = *ends.last().unwrap();
    let after = recorded.find(end, TimeEdge::Since, FIRST_US + 3_600_000_000);
    assert_eq!((after.position, after.is_approximate), (end, false));
    let before = recorded.find(end, TimeEdge::Until, FIRST_US);
    assert_eq!((before.position, before.is_approximate), (0, false));
}

#[test]
fn an_index_that_another_archive_did_not_continue_has_times_up_to_its_end() {
    let (mut recorded, ends) = second_by_second(true, 15);
    let (middle, id) = (*ends.last().unwrap(), recorded.id);
    let Recorded { storage, .. } = &recorded;
    let foreign = StoreOptions {
        index: None,
        ..options()
    };
    let (mut store, _) = ArchiveStore::open(storage.clone(), foreign, OPENED_MS).unwrap();
    let session = store.extend_recording(id, &continuation(middle)).unwrap();
    recorded.store = store;
    let more = vec![
        Step::Message {
            fragments: vec![1_200; 10],
            pause_us: 100_000,
        };
        30
    ];
    let end = recorded.run(session, &more, true).last().unwrap().0;
    let in_first = recorded.find(end, TimeEdge::Since, FIRST_US + 5_000_000);
    assert!(!in_first.is_approximate && in_first.position == ends[4 - 1]);
    let in_second = recorded.find(end, TimeEdge::Since, FIRST_US + 40_000_000);
    assert!(in_second.is_approximate, "{in_second:?}");
    assert_eq!(in_second.position % SEGMENT_LENGTH, 0);
}

/// After a loss of power, the modification time of a segment file may be too early. Then messages in the file may have
/// arrived after this time.
#[test]
fn messages_of_lost_entries_belong_to_each_range_that_may_contain_them() {
    let (recorded, ends) = second_by_second(true, 30);
    let (end, storage) = (*ends.last().unwrap(), &recorded.storage);
    let file = storage.open("index-0-0.idx", Access::Write).unwrap();
    file.set_length((2 + 20) * ENTRY_LENGTH as u64).unwrap();
    storage.set_time(Duration::ZERO);
    let segment = storage.bytes("0-0.rec").unwrap();
    storage.put("0-0.rec", &segment);
    let since = |time_us| recorded.find(end, TimeEdge::Since, time_us);
    // The 20 entries that are left are those of the first two messages.
    let within = since(FIRST_US + 6_000_000);
    assert_eq!((within.position, within.is_approximate), (ends[1], true));
    let until = recorded.find(end, TimeEdge::Until, FIRST_US + 6_000_000);
    assert!(until.position >= ends[5], "{until:?}");
    // A later message has a time before the range. So the messages without entries, which precede it, are before the
    // range too.
    let after = since(FIRST_US + 20_000_000);
    assert_eq!((after.position, after.is_approximate), (ends[18], false));
}

#[test]
fn the_last_messages_of_an_active_recording_are_found_without_an_entry() {
    let (mut recorded, session) = Recorded::new(true, 0);
    let message = |pause_us| Step::Message {
        fragments: vec![100],
        pause_us,
    };
    let steps = [message(0), message(100), message(100)];
    let ends = recorded.run(session, &steps, false);
    let last = ends[2].0;
    let find = |time_us| recorded.find(last, TimeEdge::Since, time_us).position;
    assert_eq!(find(FIRST_US), 0);
    assert_eq!(find(FIRST_US + 150), ends[0].0);
    assert_eq!(find(FIRST_US + 1_000), ends[0].0);
    assert_eq!(find(FIRST_US + 1_001), last);
    // An incomplete message belongs to a range that begins now.
    let file = recorded.storage.open("0-0.rec", Access::Write).unwrap();
    let begin = Publisher::new(last).data(BEGIN, &payload(100));
    file.write_all_at(&begin, last as u64).unwrap();
    let end = last + begin.len() as i64;
    let found = recorded.find(end, TimeEdge::Since, FIRST_US + 1_001);
    assert_eq!(found.position, last);
}

#[test]
fn the_search_finds_the_exact_position_in_a_recording_with_an_index() {
    let (recorded, ends) = second_by_second(true, 60);
    let end = *ends.last().unwrap();
    let found = recorded.find(end, TimeEdge::Since, FIRST_US + 30_000_000);
    assert_eq!(found.arrival_us, Some(FIRST_US + 30_000_000));
    assert_eq!(found.position, ends[28]);
}

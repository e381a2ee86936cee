//! Runs random steps (publish, poll, batch, end of an image, kill) and compares the results with a model. Each complete
//! message must be delivered once and in order, no message may be torn, no logged data may be lost, and gaps must be
//! reported exactly.

use std::collections::BTreeMap;
use std::time::Duration;

use aeron_archive::catalog::{Catalog, RecordingState};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_pipeline::planning::{self, PlanLimits, Range, RangeCutting, RowKind};
use aeron_pipeline::private::{
    Counts, KnownRecording, MAX_BLOCK_LENGTH, PrivateArchive, PrivateError, RecordingWriter,
};
use proptest::prelude::*;

use super::stream::{Row, SEGMENT_LENGTH, Stream, create, image, rows};

const BOUND: u64 = 600 * 1024;
/// Maximum length of a published message.
const MAX_LENGTH: usize = 30_000;

/// Cuts each recording into one partition.
const WHOLE: RangeCutting = RangeCutting {
    min_partitions: 1,
    max_rows: None,
    rows: RowKind::Messages,
};

/// A step of the test.
#[derive(Debug, Clone)]
enum Act {
    Publish {
        count: usize,
        length: usize,
    },
    Poll {
        blocks: usize,
        limit: usize,
    },
    /// A Spark batch. It is logged and read. It is committed if `is_committed` is `true`.
    Batch {
        is_committed: bool,
        limits: PlanLimits,
        cutting: RangeCutting,
    },
    /// The image becomes unavailable, with or without the end of its stream. Then another image joins.
    ImageLost {
        is_end_of_stream: bool,
        join: Join,
    },
    Work {
        ms: i64,
    },
    Kill {
        join: Join,
    },
}

/// Position at which the next image joins.
#[derive(Debug, Clone, Copy)]
enum Join {
    /// The position of the last image.
    Same,
    /// This many frames below the last image's position.
    Below(usize),
    /// This many frames above the last image's position.
    Above(usize),
}

/// A fault. It occurs after `step` storage operations of an act.
#[derive(Debug, Clone, Copy)]
struct Strike {
    step: u64,
    fault: StorageFault,
}

struct World {
    disk: MemoryStorage,
    stream: Stream,
    archive: PrivateArchive<MemoryStorage>,
    writer: Option<RecordingWriter<MemoryStorage>>,
    /// Position of the image.
    position: i64,
    /// Head and stop position of each ended recording.
    ended: BTreeMap<i64, (Option<i64>, i64)>,
    spark: Spark,
    missed: Vec<Missed>,
    now_us: i64,
}

/// A range that no image received: the messages that begin in the range are missing.
#[derive(Debug, Clone, Copy)]
struct Missed {
    from: i64,
    /// Position at which the next image joined. The range ends at the first message that begins at or after this
    /// position.
    join: i64,
    /// Whether the session has an earlier recording. The archive reports the gap only in this case.
    is_gap: bool,
}

/// Model of Spark: the positions, batches and rows of a query.
#[derive(Default)]
struct Spark {
    committed: BTreeMap<i64, i64>,
    /// The batch that is logged and not committed.
    batch: Option<Batch>,
    delivered: Vec<Row>,
}

struct Batch {
    ranges: BTreeMap<i64, (i64, i64)>,
    rows: Option<Vec<Row>>,
}

fn acts() -> impl Strategy<Value = Vec<(Act, Option<Strike>)>> {
    let join = prop_oneof![
        3 => Just(Join::Same),
        2 => (1usize..60).prop_map(Join::Below),
        2 => (1usize..60).prop_map(Join::Above),
    ];
    let fault = prop_oneof![
        3 => (0usize..4).prop_map(|progress| StorageFault::Kill { progress }),
        1 => (0usize..5000).prop_map(StorageFault::Short),
        1 => (0usize..4).prop_map(StorageFault::ShortPages),
        1 => Just(StorageFault::Error(std::io::ErrorKind::StorageFull)),
        1 => Just(StorageFault::Error(std::io::ErrorKind::Other)),
    ];
    let limit = || prop::option::of(1u64..100_000);
    let limits =
        (prop::option::of(1u64..30), limit()).prop_map(|(rows, payload_bytes)| PlanLimits {
            rows,
            payload_bytes,
        });
    let cutting = (1usize..5, prop::option::of(1u64..20)).prop_map(|(min_partitions, max_rows)| {
        RangeCutting {
            min_partitions,
            max_rows,
            rows: RowKind::Messages,
        }
    });
    let strike = (0u64..12, fault).prop_map(|(step, fault)| Strike { step, fault });
    let act = prop_oneof![
        6 => (1usize..20, prop_oneof![0usize..200, 0usize..MAX_LENGTH])
            .prop_map(|(count, length)| Act::Publish { count, length }),
        8 => (1usize..20, prop_oneof![Just(MAX_BLOCK_LENGTH), 1500usize..20_000])
            .prop_map(|(blocks, limit)| Act::Poll { blocks, limit }),
        4 => (any::<bool>(), limits, cutting).prop_map(|(is_committed, limits, cutting)| Act::Batch {
            is_committed,
            limits,
            cutting,
        }),
        1 => (any::<bool>(), join.clone())
            .prop_map(|(is_end_of_stream, join)| Act::ImageLost { is_end_of_stream, join }),
        2 => (0i64..40_000).prop_map(|ms| Act::Work { ms }),
        2 => join.prop_map(|join| Act::Kill { join }),
    ];
    prop::collection::vec((act, prop::option::weighted(0.2, strike)), 1..60)
}

impl World {
    fn new() -> Self {
        let disk = MemoryStorage::new();
        let stream = Stream::new(SEGMENT_LENGTH - 3 * 64);
        let archive = create(disk.clone(), BOUND);
        let position = stream.base;
        let mut world = Self {
            disk,
            stream,
            archive,
            writer: None,
            position,
            ended: BTreeMap::new(),
            spark: Spark::default(),
            missed: Vec::new(),
            now_us: 1_700_000_000_000_000,
        };
        world.join(Join::Same).unwrap();
        world
    }

    fn now_ms(&self) -> i64 {
        self.now_us / 1000
    }

    fn act(&mut self, act: &Act) -> Result<(), PrivateError> {
        self.now_us += 1000;
        self.disk
            .set_time(Duration::from_micros(self.now_us as u64));
        match *act {
            Act::Publish { count, length } => {
                (0..count).for_each(|number| self.stream.publish(length / (number % 3 + 1)));
                Ok(())
            }
            Act::Poll { blocks, limit } => (0..blocks).try_for_each(|_| self.poll(limit)),
            Act::Batch {
                is_committed,
                limits,
                cutting,
            } => self.batch(is_committed, limits, cutting),
            Act::ImageLost {
                is_end_of_stream,
                join,
            } => {
                let is_complete = self.is_at_message_end();
                self.end_recording(is_end_of_stream && is_complete)?;
                self.join(join)
            }
            Act::Work { ms } => {
                self.now_us += ms * 1000;
                let since = Some(self.now_ms() - 100_000);
                while self.archive.work(self.now_ms(), since)? {}
                Ok(())
            }
            Act::Kill { .. } => {
                self.disk.kill();
                Ok(())
            }
        }
    }

    fn is_at_message_end(&self) -> bool {
        let writer = self.writer.as_ref().unwrap();
        writer.head() == Some(writer.recorded_position())
    }

    fn poll(&mut self, limit: usize) -> Result<(), PrivateError> {
        let writer = self.writer.as_mut().unwrap();
        let limit = limit.min(writer.block_limit(self.archive.has_room()));
        let (block, end) = self.stream.block(self.position, limit);
        self.now_us += 10;
        let start = self.archive.descriptor(writer.recording_id()).unwrap();
        let first = self.stream.first_begin(start.start_position);
        writer.append(self.position, block, self.now_us)?;
        self.position = end;
        if let Some(gap) = writer.take_gap() {
            let missed = self.missed.last().unwrap();
            assert!(missed.is_gap);
            assert_eq!(Some(missed.from + gap), first);
        }
        Ok(())
    }

    fn batch(
        &mut self,
        is_committed: bool,
        limits: PlanLimits,
        cutting: RangeCutting,
    ) -> Result<(), PrivateError> {
        if self.spark.batch.is_none() {
            self.spark.batch = Some(Batch {
                ranges: self.plan(limits),
                rows: None,
            });
        }
        let batch = self.spark.batch.as_ref().unwrap();
        let read = self.read(&batch.ranges, cutting);
        if let Some(before) = &batch.rows {
            assert_eq!(before, &read, "the second read of a batch has other rows");
        }
        if !is_committed {
            self.spark.batch.as_mut().unwrap().rows = Some(read);
            return Ok(());
        }
        // Spark never requests committed data again, even if the commit of the archive fails.
        let batch = self.spark.batch.take().unwrap();
        self.spark.delivered.extend(read);
        let taken: Vec<_> = batch
            .ranges
            .iter()
            .map(|(&id, &(_, to))| (id, to))
            .collect();
        self.spark.committed.extend(taken.iter().copied());
        self.archive.commit(taken)
    }

    /// Returns the ranges of the next batch.
    fn plan(&self, limits: PlanLimits) -> BTreeMap<i64, (i64, i64)> {
        let recordings: Vec<_> = self.archive.recordings().collect();
        let ranges: Vec<_> = recordings
            .iter()
            .filter_map(|info| {
                let id = info.stream.recording_id();
                let taken = self.spark.committed.get(&id).copied();
                let from = taken.unwrap_or(info.stream.start_position());
                let to = info.published.complete_head().filter(|&head| head > from)?;
                let messages = self.archive.index(id).unwrap();
                Some((id, Range { messages, from, to }))
            })
            .collect();
        let (ids, ranges): (Vec<_>, Vec<_>) = ranges.into_iter().unzip();
        let ends = planning::take(&ranges, limits, RowKind::Messages).unwrap();
        let planned = ids.iter().zip(&ranges).zip(ends);
        planned
            .map(|((&id, range), end)| (id, (range.from, end)))
            .filter(|(_, (from, end))| end > from)
            .collect()
    }

    /// Reads the rows of a batch, partition by partition.
    fn read(&self, batch: &BTreeMap<i64, (i64, i64)>, cutting: RangeCutting) -> Vec<Row> {
        let mut all = Vec::new();
        for info in self.archive.recordings() {
            let id = info.stream.recording_id();
            let Some(&(from, to)) = batch.get(&id) else {
                continue;
            };
            let messages = self.archive.index(id).unwrap();
            let range = Range { messages, from, to };
            let mut read = Vec::new();
            for piece in planning::cut(std::slice::from_ref(&range), cutting).unwrap() {
                let hint = range.messages.entry_number(piece.from).unwrap();
                let rows = rows(&self.disk, info.stream, piece.from, piece.to, Some(hint));
                assert!(rows.len() as u64 <= cutting.max_rows.unwrap_or(u64::MAX));
                read.extend(rows);
            }
            assert!(read.iter().all(|row| row.arrival_us.is_some()));
            assert!(read.is_sorted_by_key(|row| row.arrival_us));
            assert!(read.is_sorted_by_key(|row| row.end));
            let counts = Counts {
                messages: read.len() as i64,
                payload_bytes: read.iter().map(|row| row.payload.len() as i64).sum(),
            };
            assert_eq!(range.messages.count(from, to).unwrap(), counts);
            let first = range.messages.first_message(from, to).unwrap();
            assert_eq!(
                first.map(|first| first.position),
                read.first().map(|row| row.end)
            );
            all.extend(read);
        }
        all
    }

    fn end_recording(&mut self, is_end_of_stream: bool) -> Result<(), PrivateError> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        self.archive
            .end_recording(writer, is_end_of_stream, self.now_ms())?;
        self.note_ended();
        Ok(())
    }

    /// Notes the head and the stop position of each ended recording. If a recording is gone, its purge has set its stop
    /// position to its head, so the noted stop position becomes the head too.
    fn note_ended(&mut self) {
        for info in self.archive.recordings().filter(|info| !info.is_live) {
            let id = info.stream.recording_id();
            let published = &info.published;
            self.ended
                .insert(id, (published.head(), published.recorded_position()));
        }
        for (id, (head, stop)) in &mut self.ended {
            if self.archive.descriptor(*id).is_none() {
                *stop = head.unwrap_or(-1);
            }
        }
    }

    fn join(&mut self, join: Join) -> Result<(), PrivateError> {
        self.note_ended();
        self.forget_missed_without_rows();
        let frames = &self.stream.frames;
        let at = frames.partition_point(|&frame| frame < self.position);
        let place = match join {
            Join::Same => at,
            Join::Below(count) => at.saturating_sub(count),
            Join::Above(count) => at + count,
        };
        let position = frames.get(place).copied().unwrap_or(self.stream.end());
        let earlier = self
            .ended
            .iter()
            .filter_map(|(id, (head, stop))| Some((*stop, *id, (*head)?)));
        let earlier = earlier.max();
        let expected = match earlier {
            Some((stop, _, head)) if position <= stop => head,
            _ => position,
        };
        let writer = self
            .archive
            .start_recording(&image(position), self.now_us)?;
        let start = self.archive.descriptor(writer.recording_id()).unwrap();
        assert_eq!(start.start_position, expected);
        let end_before = earlier.map_or(self.stream.base, |(stop, ..)| stop);
        if position > end_before {
            self.missed.push(Missed {
                from: earlier.map_or(self.stream.base, |(_, _, head)| head),
                join: position,
                is_gap: earlier.is_some(),
            });
        }
        self.writer = Some(writer);
        self.position = position;
        Ok(())
    }

    /// Starts a new process with the files of the last process. If the new process is killed or fails, starts another
    /// process without faults.
    fn restart(&mut self, join: Join, strike: Option<Strike>) {
        self.writer = None;
        self.disk.restart();
        if let Some(Strike { step, fault }) = strike {
            self.disk.fail_at(self.disk.steps() + step, fault);
            if self.open().and_then(|()| self.join(join)).is_ok() && !self.disk.is_killed() {
                return;
            }
            self.writer = None;
            self.disk.restart();
        }
        self.open().and_then(|()| self.join(join)).unwrap();
    }

    fn open(&mut self) -> Result<(), PrivateError> {
        let mut known = BTreeMap::new();
        for (&recording_id, &committed) in &self.spark.committed {
            let told = committed;
            known.insert(
                recording_id,
                KnownRecording {
                    recording_id,
                    committed,
                    told,
                },
            );
        }
        for (&recording_id, &(committed, told)) in
            self.spark.batch.iter().flat_map(|batch| &batch.ranges)
        {
            known.insert(
                recording_id,
                KnownRecording {
                    recording_id,
                    committed,
                    told,
                },
            );
        }
        let known: Vec<_> = known.into_values().collect();
        let (archive, report) =
            PrivateArchive::open(self.disk.clone(), &known, BOUND, self.now_ms())?;
        assert!(report.lost.is_empty(), "{:?}", report.lost);
        assert!(report.lost_times.is_empty(), "{:?}", report.lost_times);
        self.archive = archive;
        for info in self.archive.recordings() {
            let start = info.stream.start_position();
            let published = &info.published;
            let end = published.recorded_position();
            let first = self.archive.descriptor(info.stream.recording_id()).unwrap();
            // If the recording starts at a segment base, a purge may have removed the start of the first message. The
            // model cannot compute the head without this start.
            if first.start_position == start && start % SEGMENT_LENGTH != 0 {
                assert_eq!(published.head(), self.stream.head(start, end));
            }
        }
        Ok(())
    }

    /// Drops the gaps before recordings in which no message begins, for example because of a kill. The archive ignores
    /// such a recording: the next recording reports the gap since the last recording with a head.
    fn forget_missed_without_rows(&mut self) {
        let heads: Vec<_> = self.ended.values().filter_map(|(head, _)| *head).collect();
        let recordings: Vec<_> = self
            .archive
            .recordings()
            .filter_map(|info| info.published.head())
            .collect();
        let stream = &self.stream;
        self.missed.retain(|missed| {
            let to = stream.first_begin(missed.join).unwrap_or(i64::MAX);
            heads.iter().chain(&recordings).any(|head| *head >= to)
        });
    }

    /// Checks the invariants of a running process.
    fn check(&self) {
        let Some(writer) = &self.writer else { return };
        let info = self.archive.recordings().find(|info| info.is_live).unwrap();
        let recorded = writer.recorded_position();
        assert_eq!(info.published.recorded_position(), recorded);
        assert_eq!(info.published.head(), writer.head());
        let base = info.stream.segment_base(recorded);
        let segment = self.disk.bytes(&info.stream.segment_name(base)).unwrap();
        assert_eq!(segment.len() as i64, SEGMENT_LENGTH);
        let behind = &segment[(recorded - base) as usize..];
        assert!(
            behind.iter().all(|&byte| byte == 0),
            "bytes after {recorded} are not zero"
        );
        // The frames of a message are longer than the payload because of headers and alignment.
        let most = BOUND + MAX_BLOCK_LENGTH as u64 + 2 * MAX_LENGTH as u64;
        let padding = 65_536;
        assert!(self.archive.retained_bytes() <= most + padding);
    }

    /// Reads the remaining messages in batches, and compares all rows with the published messages.
    fn finish(mut self) {
        for _ in 0..1000 {
            self.poll(MAX_BLOCK_LENGTH).unwrap();
            self.batch(true, PlanLimits::default(), WHOLE).unwrap();
            self.archive.work(self.now_ms(), None).unwrap();
            self.check();
            if self.position == self.stream.end() {
                break;
            }
        }
        assert_eq!(
            self.position,
            self.stream.end(),
            "the recording makes no progress"
        );
        self.batch(true, PlanLimits::default(), WHOLE).unwrap();
        let is_missed = |begin: i64| {
            let mut missed = self.missed.iter();
            missed.any(|missed| (missed.from..missed.join).contains(&begin))
        };
        let first = self.stream.base;
        let expected = self
            .stream
            .messages
            .iter()
            .filter(|message| message.begin >= first);
        let mut expected: Vec<_> = expected
            .filter(|message| !is_missed(message.begin))
            .map(|message| (message.end, &message.payload))
            .collect();
        let mut delivered: Vec<_> = self
            .spark
            .delivered
            .iter()
            .map(|row| (row.end, &row.payload))
            .collect();
        delivered.sort_unstable();
        expected.sort_unstable();
        let ends = |rows: &[(i64, &Vec<u8>)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(ends(&delivered), ends(&expected));
        assert_eq!(delivered, expected);
        let catalog = Catalog::open_read_only(&self.disk).unwrap();
        assert!(
            catalog
                .entries()
                .iter()
                .all(|entry| entry.state != RecordingState::Invalid)
        );
    }
}

fn run(acts: &[(Act, Option<Strike>)]) {
    let mut world = World::new();
    let mut is_alone = false;
    for (act, strike) in acts {
        if let Some(Strike { step, fault }) = strike {
            // A short write is never pending together with another fault. A kill ends a write at a page boundary, and a
            // short write ends it within a page: the archive need not survive both in one write.
            let is_cut = matches!(fault, StorageFault::Short(_));
            if is_cut || is_alone {
                world.disk.forget_faults();
            }
            is_alone = is_cut;
            world.disk.fail_at(world.disk.steps() + step, *fault);
        }
        let done = world.act(act);
        let join = match act {
            Act::Kill { join } | Act::ImageLost { join, .. } => *join,
            _ => Join::Same,
        };
        if world.disk.is_killed() {
            let again = strike.filter(|_| matches!(act, Act::Kill { .. }));
            world.restart(join, again);
        } else if done.is_err() {
            // After an error, the query fails. Its process first tries to end its recording.
            let _ = world.end_recording(false);
            world.restart(join, None);
        }
        world.check();
    }
    world.disk.restart();
    world.restart(Join::Same, None);
    world.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// 08-20, 08-22, 08-24, 08-25, 08-29, 08-41
    #[test]
    fn after_any_fault_each_complete_message_is_read_once_and_in_order(acts in acts()) {
        run(&acts);
    }
}

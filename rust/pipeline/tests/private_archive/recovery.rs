//! Tests with kills, errors and short writes at each step of an append and of the open after it.

use std::io;
use std::time::Duration;

use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::storage::Storage;
use aeron_pipeline::private::{
    KnownRecording, MAX_BLOCK_LENGTH, OpenReport, PrivateArchive, RecordingWriter,
};

use super::stream::{
    ONE_GIB, SEGMENT_LENGTH, Stream, TERM_LENGTH, all_rows, create, image, record, same,
};

const NOW_US: i64 = 1_700_000_000_000_000;
const MODIFIED_US: i64 = NOW_US + 5_000_000;

/// A running recording, and the stream to record.
struct Live {
    disk: MemoryStorage,
    archive: PrivateArchive<MemoryStorage>,
    writer: RecordingWriter<MemoryStorage>,
    stream: Stream,
    position: i64,
}

impl Live {
    /// Records `stream` up to `to`.
    fn new(stream: Stream, to: i64) -> Self {
        let disk = MemoryStorage::new();
        disk.set_time(Duration::from_micros(MODIFIED_US as u64));
        let mut archive = create(disk.clone(), ONE_GIB);
        let mut writer = archive
            .start_recording(&image(stream.base), NOW_US)
            .unwrap();
        let position = record(&mut writer, &stream, stream.base, to, 4000, NOW_US).unwrap();
        Self {
            disk,
            archive,
            writer,
            stream,
            position,
        }
    }

    /// Appends the next block. Returns whether the append succeeded.
    fn append(&mut self) -> bool {
        let (block, end) = self.stream.block(self.position, MAX_BLOCK_LENGTH);
        let done = self
            .writer
            .append(self.position, block, NOW_US + 10)
            .is_ok();
        if done {
            self.position = end;
        }
        done
    }

    /// Returns the recording's positions in the checkpoint of a query that has logged all complete messages.
    fn told(&self) -> Vec<KnownRecording> {
        let told = self.writer.published().complete_head();
        let known = |told| KnownRecording {
            recording_id: 0,
            committed: self.stream.base,
            told,
        };
        told.map(known).into_iter().collect()
    }

    fn restart(self, known: &[KnownRecording]) -> Restarted {
        drop((self.archive, self.writer));
        self.disk.restart();
        let (archive, report) = open(&self.disk, known);
        Restarted {
            disk: self.disk,
            archive,
            report,
            stream: self.stream,
        }
    }
}

struct Restarted {
    disk: MemoryStorage,
    archive: PrivateArchive<MemoryStorage>,
    report: OpenReport,
    stream: Stream,
}

impl Restarted {
    fn end(&self) -> i64 {
        self.archive.descriptor(0).unwrap().stop_position
    }

    /// Checks that the rows are the messages up to the end, and that each row has an arrival time. A row that ends
    /// after `noted` has no index entry, so its arrival time is the file's modification time.
    fn check(&self, noted: i64) {
        assert_eq!(self.report.lost, []);
        assert_eq!(self.report.lost_times, []);
        let rows = all_rows(&self.archive, 0);
        assert!(same(
            &rows,
            &self.stream.messages_in(self.stream.base, self.end())
        ));
        for row in &rows {
            let arrival_us = row.arrival_us.unwrap();
            match row.end <= noted {
                true => assert!(arrival_us <= NOW_US + 10),
                false => assert_eq!(arrival_us, MODIFIED_US),
            }
        }
        self.check_zeros();
    }

    /// Checks that the segment contains only zeros after the end of the recording.
    fn check_zeros(&self) {
        let info = self.archive.recordings().next().unwrap();
        let base = info.stream.segment_base(self.end());
        if let Some(segment) = self.disk.bytes(&info.stream.segment_name(base)) {
            let behind = &segment[(self.end() - base) as usize..];
            assert!(behind.iter().all(|&byte| byte == 0));
            assert_eq!(segment.len() as i64, SEGMENT_LENGTH);
        }
    }
}

fn open(
    disk: &MemoryStorage,
    known: &[KnownRecording],
) -> (PrivateArchive<MemoryStorage>, OpenReport) {
    PrivateArchive::open(disk.clone(), known, ONE_GIB, NOW_US / 1000).unwrap()
}

/// Returns two streams, each with the position up to which a test records first. Blocks are several pages long. The
/// last block of the first stream ends within a term. The last block of the second stream fills a segment.
fn streams() -> [(Stream, i64); 2] {
    let mut amid = Stream::new(3 * TERM_LENGTH + 320);
    (0..8).for_each(|_| amid.publish(3000));
    let told = amid.messages[4].end;
    let mut full = Stream::new(SEGMENT_LENGTH - 24_000 / 32 * 32);
    (0..8).for_each(|_| full.publish(2900));
    full.pad();
    full.publish(100);
    let left = full.messages[5].end;
    [(amid, told), (full, left)]
}

/// 08-22
#[test]
fn a_kill_at_any_step_of_an_append_loses_no_recorded_data_and_leaves_no_torn_frame() {
    for which in 0..2 {
        for progress in 0..4 {
            for step in 0.. {
                let (stream, to) = streams().into_iter().nth(which).unwrap();
                let mut live = Live::new(stream, to);
                let before = live.writer.recorded_position();
                live.disk
                    .fail_at(live.disk.steps() + step, StorageFault::Kill { progress });
                while live.position < live.stream.end() && live.append() {}
                let told = live.told();
                let (recorded, was_killed) = (live.position, live.disk.is_killed());
                let restarted = live.restart(&told);
                let end = restarted.end();
                assert!(end >= recorded, "step {step}: {end} is below {recorded}");
                assert!(told.iter().all(|known| end >= known.told));
                let noted = if end > recorded { recorded } else { end };
                // The index entry may have been written before the kill.
                let rows = all_rows(&restarted.archive, 0);
                let is_noted = rows
                    .last()
                    .is_some_and(|row| row.arrival_us < Some(MODIFIED_US));
                restarted.check(if is_noted { end } else { noted });
                if !was_killed {
                    assert_eq!(end, restarted.stream.end());
                    assert!(step >= 2 && end > before);
                    break;
                }
            }
        }
    }
}

/// 08-24
#[test]
fn a_failed_or_short_write_leaves_no_bytes_after_the_recorded_position() {
    for which in 0..2 {
        for fault in [
            StorageFault::Error(io::ErrorKind::StorageFull),
            StorageFault::Error(io::ErrorKind::Other),
            StorageFault::Short(40),
            StorageFault::Short(5000),
        ] {
            for step in 0..8 {
                let (stream, to) = streams().into_iter().nth(which).unwrap();
                let mut live = Live::new(stream, to);
                live.disk.fail_at(live.disk.steps() + step, fault);
                while live.position < live.stream.end() && live.append() {}
                let recorded = live.writer.recorded_position();
                let Live {
                    disk,
                    mut archive,
                    writer,
                    stream,
                    ..
                } = live;
                // The fault may occur in this call. The next open then finds the end.
                let _ = archive.end_recording(writer, false, NOW_US / 1000);
                disk.restart();
                let (archive, report) = open(&disk, &[]);
                let restarted = Restarted {
                    disk,
                    archive,
                    report,
                    stream,
                };
                assert_eq!(restarted.end(), recorded);
                restarted.check(recorded);
                // The recovery finds the same end without the index.
                let descriptor = restarted.archive.descriptor(0).unwrap();
                let stream =
                    aeron_archive::stream::RecordedStream::new(&descriptor.into()).unwrap();
                let start = descriptor.start_position;
                let found =
                    aeron_archive::recovery::find_end(&restarted.disk, &stream, start).unwrap();
                assert_eq!(
                    (found.position, found.is_torn),
                    (recorded, false),
                    "{fault:?} at step {step}"
                );
            }
        }
    }
}

/// Returns a stream whose last frame contains a page of zeros, and the start position of its message.
fn with_zero_page() -> (Stream, i64) {
    let mut stream = Stream::new(0);
    stream.publish(100);
    let told = stream.end();
    stream.publish_zeros(9000);
    (stream, told)
}

/// 08-23
#[test]
fn a_last_frame_with_a_page_of_zeros_is_kept_only_if_the_index_or_the_checkpoint_has_its_end() {
    let (stream, first) = with_zero_page();
    let end = stream.end();
    for (is_told, expected) in [(true, end), (false, first)] {
        let mut live = Live::new(with_zero_page().0, first);
        assert!(live.append());
        assert_eq!(live.position, end);
        let told = live.told();
        // Without the index, only a logged position shows that the whole frame was written.
        live.disk.remove("index-0-0.idx").unwrap();
        let restarted = live.restart(if is_told { &told } else { &[] });
        assert_eq!(restarted.end(), expected);
        restarted.check_zeros();
    }
    // The index entry alone is enough to keep the frame.
    let mut live = Live::new(stream, first);
    assert!(live.append());
    assert_eq!(live.restart(&[]).end(), end);
}

/// 08-23
#[test]
fn a_torn_last_frame_is_removed_by_the_next_open() {
    let mut stream = Stream::new(0);
    stream.publish(100);
    let told = stream.end();
    stream.publish_in_one_frame(9000);
    let mut live = Live::new(stream, told);
    live.disk
        .fail_at(live.disk.steps(), StorageFault::Kill { progress: 1 });
    assert!(!live.append());
    let restarted = live.restart(&[]);
    assert_eq!(restarted.end(), told);
    assert!(
        restarted.report.lines[0].contains("torn"),
        "{:?}",
        restarted.report.lines
    );
    restarted.check(told);
}

/// 08-23
#[test]
fn a_last_padding_frame_longer_than_a_page_is_kept() {
    let mut stream = Stream::new(0);
    stream.publish(100);
    let told = stream.end();
    stream.pad();
    let mut live = Live::new(stream, told);
    // The kill prevents the index entry of the padding.
    live.disk
        .fail_at(live.disk.steps() + 1, StorageFault::Kill { progress: 0 });
    assert!(!live.append());
    let restarted = live.restart(&[]);
    assert_eq!(restarted.end(), TERM_LENGTH);
    restarted.check(TERM_LENGTH);
}

/// 08-22, 08-30: if an open is killed, the next open completes the recovery.
#[test]
fn a_kill_at_any_step_of_an_open_does_not_change_the_result_of_the_next_open() {
    for step in 0.. {
        let (stream, to) = streams().into_iter().next().unwrap();
        let mut live = Live::new(stream, to);
        live.disk
            .fail_at(live.disk.steps() + 1, StorageFault::Kill { progress: 0 });
        assert!(!live.append());
        let told = live.told();
        drop((live.archive, live.writer));
        live.disk.restart();
        live.disk
            .fail_at(live.disk.steps() + step, StorageFault::Kill { progress: 0 });
        let was_killed =
            PrivateArchive::open(live.disk.clone(), &told, ONE_GIB, NOW_US / 1000).is_err();
        live.disk.restart();
        let (archive, report) = open(&live.disk, &told);
        let restarted = Restarted {
            disk: live.disk,
            archive,
            report,
            stream: live.stream,
        };
        assert_eq!(restarted.end(), restarted.stream.end());
        restarted.check(to);
        if !was_killed {
            assert!(step >= 3, "only {step} steps");
            break;
        }
    }
}

/// 08-44
#[test]
fn arrival_times_never_decrease_even_if_the_clock_goes_back() {
    let (stream, _) = streams().into_iter().next().unwrap();
    let disk = MemoryStorage::new();
    let mut archive = create(disk.clone(), ONE_GIB);
    let mut writer = archive
        .start_recording(&image(stream.base), NOW_US)
        .unwrap();
    let mut position = stream.base;
    let mut now_us = NOW_US;
    while position < stream.end() {
        let (block, end) = stream.block(position, 4000);
        writer.append(position, block, now_us).unwrap();
        position = end;
        now_us -= 1_000_000;
    }
    let rows = all_rows(&archive, 0);
    assert!(rows.iter().all(|row| row.arrival_us == Some(NOW_US)));
    // After the kill, the modification time of the file is earlier than the arrival times in the index.
    disk.set_time(Duration::from_secs(1));
    disk.restart();
    let (archive, _) = open(&disk, &[]);
    assert_eq!(all_rows(&archive, 0), rows);
}

//! Tests of the limit of retained bytes, of the purge of committed data, of a full disk, and of file permissions.

use std::io;

use aeron_archive::catalog::{Catalog, RecordingState};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::recorder::RecorderError;
use aeron_archive::storage::{Directory, Storage};
use aeron_pipeline::private::{
    MAX_BLOCK_LENGTH, MAX_LIVE_RECORDINGS, PrivateArchive, PrivateError, RecordingWriter,
};

use super::stream::{
    MTU, ONE_GIB, SEGMENT_LENGTH, Stream, TERM_LENGTH, all_rows, create, image, record, same,
};

const NOW_US: i64 = 1_700_000_000_000_000;
const NOW_MS: i64 = NOW_US / 1000;
const BOUND: u64 = 300 * 1024;

/// Records until the limit of retained bytes stops the recording or the stream ends. Returns the end of the recorded
/// data.
fn poll<S: Storage + Clone>(
    archive: &PrivateArchive<S>,
    writer: &mut RecordingWriter<S>,
    stream: &Stream,
    mut position: i64,
) -> i64 {
    loop {
        let limit = writer.block_limit(archive.has_room());
        let (block, end) = stream.block(position, limit);
        if end == position || limit == 0 {
            return position;
        }
        writer.append(position, block, NOW_US).unwrap();
        position = end;
    }
}

fn work<S: Storage + Clone>(archive: &mut PrivateArchive<S>) {
    while archive.work(NOW_MS, None).unwrap() {}
}

/// 08-29
#[test]
fn recording_stops_at_the_limit_and_continues_after_a_commit() {
    let mut stream = Stream::new(0);
    (0..200).for_each(|_| stream.publish(4000));
    let mut archive = create(MemoryStorage::new(), BOUND);
    let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
    let mut position = 0;
    let mut stops = 0;
    while position < stream.end() {
        let next = poll(&archive, &mut writer, &stream, position);
        assert!(
            next > position,
            "the recording makes no progress at {position}"
        );
        position = next;
        assert!(archive.retained_bytes() <= BOUND + MAX_BLOCK_LENGTH as u64);
        stops += usize::from(!archive.has_room());
        archive.commit([(0, writer.head().unwrap())]).unwrap();
        assert_eq!(
            archive.retained_bytes() as i64,
            position - writer.head().unwrap()
        );
    }
    assert!(stops >= 2);
}

/// 08-29
#[test]
fn a_recording_is_completed_up_to_the_end_of_a_message_longer_than_the_limit() {
    let mut stream = Stream::new(0);
    stream.publish(992);
    let first = stream.end();
    stream.publish_over_segments(900_000);
    stream.publish(992);
    let mut archive = create(MemoryStorage::new(), BOUND);
    let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
    let mut other = image(0);
    other.session_id += 1;
    let other = archive.start_recording(&other, NOW_US).unwrap();

    // The first message must be committed before the recording of the long message may continue.
    let position = poll(&archive, &mut writer, &stream, 0);
    assert!(archive.retained_bytes() <= BOUND + MAX_BLOCK_LENGTH as u64);
    assert_eq!(writer.block_limit(archive.has_room()), 0);
    archive.commit([(0, first)]).unwrap();
    assert!(!archive.has_room());
    let position = poll(&archive, &mut writer, &stream, position);
    assert!(writer.head().unwrap() >= stream.messages[1].end);
    // The recording stops after the long message.
    assert!(archive.retained_bytes() > 900_000);
    assert_eq!(writer.block_limit(archive.has_room()), 0);
    // A recording without an unfinished message waits for room. Otherwise, each of many recordings could exceed the
    // bound by one block.
    assert_eq!(other.block_limit(archive.has_room()), 0);
    archive.commit([(0, writer.head().unwrap())]).unwrap();
    assert_eq!(poll(&archive, &mut writer, &stream, position), stream.end());
}

/// 08-29: a message without an end cannot fill the disk.
#[test]
fn a_message_without_an_end_is_recorded_up_to_the_maximum_message_length() {
    let mut stream = Stream::new(0);
    stream.publish_over_segments(20 << 20);
    let mut archive = create(MemoryStorage::new(), BOUND);
    let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
    poll(&archive, &mut writer, &stream, 0);
    let longest = (16 << 20) / (MTU as u64 - 32) * MTU as u64 + 2 * MTU as u64;
    assert!(archive.retained_bytes() >= 16 << 20);
    assert!(archive.retained_bytes() <= longest + MAX_BLOCK_LENGTH as u64);
}

/// 08-42
#[test]
fn a_range_can_be_counted_and_cut_after_a_purge_of_the_segments_before_it() {
    let mut stream = Stream::new(0);
    while stream.end() < 4 * SEGMENT_LENGTH {
        stream.publish(6000);
    }
    let mut archive = create(MemoryStorage::new(), ONE_GIB);
    let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
    let end = stream.end();
    record(&mut writer, &stream, 0, end, MAX_BLOCK_LENGTH, NOW_US).unwrap();
    let index = archive.index(0).unwrap();
    let taken = stream
        .messages
        .iter()
        .rfind(|it| it.end < 2 * SEGMENT_LENGTH);
    let from = taken.unwrap().end;
    let left = index.count(from, end).unwrap();
    archive.commit([(0, from)]).unwrap();
    work(&mut archive);
    assert!(archive.descriptor(0).unwrap().start_position > 0);
    assert_eq!(index.count(from, end).unwrap(), left);
    assert_eq!(index.count(end, end).unwrap().messages, 0);
    let first = index.first_message(from, end).unwrap().unwrap();
    assert_eq!(first.counts.messages, 1);
    let all = index.cut(from, end, |_| true).unwrap();
    assert_eq!((all.position, all.counts), (end, left));
}

/// 08-30
#[test]
fn a_commit_purges_exactly_the_segments_before_it_and_their_index_files() {
    let mut stream = Stream::new(SEGMENT_LENGTH - 192);
    while stream.end() < 4 * SEGMENT_LENGTH {
        stream.publish(6000);
    }
    let disk = MemoryStorage::new();
    let mut archive = create(disk.clone(), ONE_GIB);
    let mut writer = archive
        .start_recording(&image(stream.base), NOW_US)
        .unwrap();
    record(
        &mut writer,
        &stream,
        stream.base,
        stream.end(),
        MAX_BLOCK_LENGTH,
        NOW_US,
    )
    .unwrap();
    let first = SEGMENT_LENGTH - TERM_LENGTH;
    let files = |bases: &[i64]| -> Vec<String> {
        let names = bases
            .iter()
            .flat_map(|base| [format!("index-0-{base}.idx"), format!("0-{base}.rec")]);
        let mut names: Vec<_> = names.chain(["archive.catalog".to_owned()]).collect();
        names.sort();
        names
    };
    let bases: Vec<i64> = (0..4)
        .map(|number| first + number * SEGMENT_LENGTH)
        .collect();
    assert_eq!(disk.names().unwrap(), files(&bases));

    let within = |base: i64| {
        stream
            .messages
            .iter()
            .find(|message| message.end > base)
            .unwrap()
            .end
    };
    archive.commit([(0, within(bases[1]) - 6208)]).unwrap();
    work(&mut archive);
    archive.commit([(0, within(bases[2]))]).unwrap();
    assert_eq!(archive.descriptor(0).unwrap().start_position, bases[2]);
    work(&mut archive);
    assert_eq!(disk.names().unwrap(), files(&bases[2..]));
    // A commit of an unknown recording changes nothing, and neither does a position at or below the committed position.
    // A position above the head is treated as the head.
    archive
        .commit([(9, 64), (0, 64), (0, within(bases[2]))])
        .unwrap();
    work(&mut archive);
    assert_eq!(disk.names().unwrap(), files(&bases[2..]));
    archive.commit([(0, i64::MAX)]).unwrap();
    work(&mut archive);
    assert_eq!(disk.names().unwrap(), files(&bases[3..]));
    // The data after the start position can still be read.
    let rows = all_rows(&archive, 0);
    let start = archive.descriptor(0).unwrap().start_position;
    assert!(same(&rows, &stream.messages_in(start, stream.end())));
}

/// 08-42: `before` is the index that a planner obtained before the purge.
#[test]
fn counts_after_a_commit_do_not_need_purged_segments() {
    let mut stream = Stream::new(0);
    stream.publish(992);
    // The message begins in the first segment and ends in the third.
    stream.publish_over_segments(2 << 20);
    (0..600).for_each(|_| stream.publish(2000));
    let mut archive = create(MemoryStorage::new(), ONE_GIB);
    let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
    record(&mut writer, &stream, 0, stream.end(), 10_000, NOW_US).unwrap();
    let before = archive.index(0).unwrap();
    let (long, head) = (stream.messages[1].end, writer.head().unwrap());
    let count = before.count(long, head).unwrap();
    assert_eq!(count.messages, 600);
    archive.commit([(0, long)]).unwrap();
    work(&mut archive);
    assert!(archive.descriptor(0).unwrap().start_position > SEGMENT_LENGTH);
    for index in [before, archive.index(0).unwrap()] {
        assert_eq!(index.count(long, head).unwrap(), count);
        for (taken, messages) in [(long, 1), (long, 599), (stream.messages[300].end, 5)] {
            let cut = index
                .cut(taken, head, |counts| counts.messages <= messages)
                .unwrap();
            assert_eq!(cut.counts.messages, messages);
            let first = stream
                .messages
                .iter()
                .position(|message| message.begin >= taken)
                .unwrap();
            assert_eq!(
                cut.position,
                stream.messages[first + messages as usize - 1].end
            );
        }
    }
}

/// 08-30
#[test]
fn files_that_a_killed_purge_has_left_are_removed_by_the_next_open() {
    let mut stream = Stream::new(0);
    while stream.end() < 2 * SEGMENT_LENGTH + 10_000 {
        stream.publish(6000);
    }
    for step in 0.. {
        let disk = MemoryStorage::new();
        let mut archive = create(disk.clone(), ONE_GIB);
        let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
        record(
            &mut writer,
            &stream,
            0,
            stream.end(),
            MAX_BLOCK_LENGTH,
            NOW_US,
        )
        .unwrap();
        let head = writer.head().unwrap();
        disk.fail_at(disk.steps() + step, StorageFault::Kill { progress: 1 });
        let committed = archive.commit([(0, head)]);
        let worked = committed.and_then(|()| {
            while archive.work(NOW_MS, None)? {}
            Ok(())
        });
        let was_killed = disk.is_killed();
        assert!(was_killed || worked.is_ok());
        disk.restart();
        let (archive, report) = PrivateArchive::open(disk.clone(), &[], ONE_GIB, NOW_MS).unwrap();
        assert_eq!(report.lost, []);
        let start = archive.descriptor(0).unwrap().start_position;
        assert_eq!(start, 2 * SEGMENT_LENGTH);
        let names = disk.names().unwrap();
        assert_eq!(
            names,
            ["0-2097152.rec", "archive.catalog", "index-0-2097152.idx"],
            "killed at step {step}"
        );
        if !was_killed {
            assert_eq!(
                step, 11,
                "one step for the catalog, and five steps for each of two segments"
            );
            break;
        }
    }
}

/// 08-30
#[test]
fn a_kill_during_the_purge_of_a_whole_recording_leaves_the_recording_purged() {
    let mut stream = Stream::new(0);
    while stream.end() < SEGMENT_LENGTH + 10_000 {
        stream.publish(6000);
    }
    // In the second case, the recording ended within a message.
    for cut in [0, MTU as i64] {
        for step in 0.. {
            let disk = MemoryStorage::new();
            let mut archive = create(disk.clone(), ONE_GIB);
            let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
            let last = stream.messages.last().unwrap();
            let end = if cut > 0 { last.begin + cut } else { last.end };
            record(&mut writer, &stream, 0, end, 20_000, NOW_US).unwrap();
            let head = writer.head().unwrap();
            archive.end_recording(writer, true, NOW_MS).unwrap();
            archive.commit([(0, head)]).unwrap();
            disk.fail_at(disk.steps() + step, StorageFault::Kill { progress: 1 });
            let mut work = || -> Result<(), PrivateError> {
                while archive.work(NOW_MS, None)? {}
                Ok(())
            };
            let worked = work();
            let was_killed = disk.is_killed();
            assert!(was_killed || worked.is_ok());
            disk.restart();
            let (archive, report) =
                PrivateArchive::open(disk.clone(), &[], ONE_GIB, NOW_MS).unwrap();
            assert_eq!((report.lost, report.lost_times), (vec![], vec![]));
            assert_eq!(archive.recordings().count(), 0, "killed at step {step}");
            assert_eq!(disk.names().unwrap(), ["archive.catalog"]);
            let catalog = Catalog::open_read_only(&disk).unwrap();
            let entry = catalog.entry(0).unwrap();
            assert_eq!(entry.state, RecordingState::Deleted);
            assert_eq!(entry.descriptor.stop_position, head);
            if !was_killed {
                assert!(step >= 3);
                break;
            }
        }
    }
}

/// 08-17
#[test]
fn entries_of_purged_recordings_are_removed_if_they_are_the_majority_and_ids_are_never_reused() {
    let mut stream = Stream::new(0);
    stream.publish(100);
    let disk = MemoryStorage::new();
    let mut archive = create(disk.clone(), ONE_GIB);
    for number in 0..6 {
        let mut image = image(0);
        // There are two sessions, and each session returns twice.
        image.session_id += number % 2;
        let writer = archive.start_recording(&image, NOW_US).unwrap();
        assert_eq!(writer.recording_id(), i64::from(number));
        archive.end_recording(writer, true, NOW_MS).unwrap();
    }
    let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
    record(&mut writer, &stream, 0, stream.end(), 1000, NOW_US).unwrap();
    archive.end_recording(writer, true, NOW_MS).unwrap();
    archive.commit([(6, stream.end())]).unwrap();
    work(&mut archive);
    let ids = |now_ms: i64| -> Vec<i64> {
        PrivateArchive::open(disk.clone(), &[], ONE_GIB, now_ms).unwrap();
        let catalog = Catalog::open_read_only(&disk).unwrap();
        catalog
            .entries()
            .iter()
            .map(|entry| entry.descriptor.recording_id)
            .collect()
    };
    // Only the last recording of the first session has a head. Its entry is kept for a day, because the next recording
    // of this session begins at this head.
    assert_eq!(ids(NOW_MS), [6]);
    let day_ms = 24 * 3_600_000;
    assert_eq!(ids(NOW_MS + day_ms), [6]);
    assert_eq!(ids(NOW_MS + day_ms + 1), [0; 0]);
    let (mut archive, _) = PrivateArchive::open(disk, &[], ONE_GIB, NOW_MS).unwrap();
    let writer = archive.start_recording(&image(0), NOW_US).unwrap();
    assert_eq!(writer.recording_id(), 7);
}

/// 08-33
#[test]
fn a_full_disk_is_an_error_with_the_sizes_and_no_recorded_data_is_lost() {
    let mut stream = Stream::new(0);
    (0..100).for_each(|_| stream.publish(6000));
    let disk = MemoryStorage::new();
    disk.set_capacity(300_000);
    let mut archive = create(disk.clone(), ONE_GIB);
    let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
    assert!(archive.space_warning().unwrap().contains("MiB free"));
    let error = record(&mut writer, &stream, 0, stream.end(), 50_000, NOW_US).unwrap_err();
    let PrivateError::Recorder(RecorderError::Full { needed, free, .. }) = &error else {
        panic!("{error}")
    };
    assert!(*needed as u64 > *free, "{error}");
    let recorded = writer.recorded_position();
    assert!(recorded > 200_000);
    archive.end_recording(writer, false, NOW_MS).unwrap();

    // After the disk has space again, the session returns at the same position.
    disk.set_capacity(ONE_GIB);
    disk.restart();
    let (mut archive, report) = PrivateArchive::open(disk, &[], ONE_GIB, NOW_MS).unwrap();
    assert_eq!(report.lost, []);
    let mut writer = archive.start_recording(&image(recorded), NOW_US).unwrap();
    record(
        &mut writer,
        &stream,
        recorded,
        stream.end(),
        MAX_BLOCK_LENGTH,
        NOW_US,
    )
    .unwrap();
    assert_eq!(writer.take_gap(), None);
    let mut rows = all_rows(&archive, 0);
    rows.extend(all_rows(&archive, 1));
    assert!(same(&rows, &stream.messages));
}

#[test]
fn a_recording_above_the_maximum_number_is_refused() {
    let mut archive = create(MemoryStorage::new(), ONE_GIB);
    let mut writers = Vec::new();
    for session_id in 0..MAX_LIVE_RECORDINGS as i32 {
        let mut image = image(0);
        image.session_id = session_id;
        writers.push(archive.start_recording(&image, NOW_US).unwrap());
    }
    let error = archive.start_recording(&image(0), NOW_US).unwrap_err();
    assert!(
        error.to_string().contains("4096 recordings run already"),
        "{error}"
    );
    archive
        .end_recording(writers.remove(9), true, NOW_MS)
        .unwrap();
    archive.start_recording(&image(0), NOW_US).unwrap();
}

/// 08-32
#[test]
fn only_the_owner_has_access_to_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let storage = Directory::new(directory.path());
    let mut archive = create(storage, ONE_GIB);
    let _writer = archive.start_recording(&image(0), NOW_US).unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", entry.path());
    }
}

/// Records 10 GiB with a limit of 256 MiB for the retained bytes.
///
/// 08-30
#[cfg(target_os = "linux")]
#[test]
fn the_used_bytes_never_exceed_the_limit_plus_a_block_a_segment_and_the_index() -> io::Result<()> {
    const TOTAL: i64 = 10 << 30;
    const LIMIT: u64 = 256 << 20;
    let mut term = Stream::new(0);
    (0..15).for_each(|_| term.publish(4000));
    term.pad();
    let directory = tempfile::Builder::new()
        .prefix("aeron-private-")
        .tempdir_in("/dev/shm")?;
    let mut archive = create(Directory::new(directory.path()), LIMIT);
    let mut writer = archive.start_recording(&image(0), NOW_US).unwrap();
    let mut most = 0;
    let mut position = 0;
    while position < TOTAL {
        if writer.block_limit(archive.has_room()) == 0 {
            most = most.max(used_bytes(directory.path())?);
            archive.commit([(0, writer.head().unwrap())]).unwrap();
            work(&mut archive);
        }
        let (block, length) = term.block_again(position);
        writer.append(position, &block, NOW_US).unwrap();
        position += length;
    }
    // An index file uses at least one page.
    let index = (LIMIT / SEGMENT_LENGTH as u64 + 2) * 4096;
    assert!(
        most > LIMIT,
        "at most {most} bytes were used: the limit was never reached"
    );
    assert!(
        most <= LIMIT + MAX_BLOCK_LENGTH as u64 + SEGMENT_LENGTH as u64 + index,
        "{most}"
    );
    Ok(())
}

/// Returns the bytes that the files of a directory use.
#[cfg(target_os = "linux")]
fn used_bytes(directory: &std::path::Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut used = 0;
    for entry in std::fs::read_dir(directory)? {
        used += entry?.metadata()?.blocks() * 512;
    }
    Ok(used)
}

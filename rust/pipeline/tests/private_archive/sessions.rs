//! Tests of sessions that return. The earlier recording has a head and a stop position. The new image joins at one of
//! these positions, or below, between or above them.

use aeron_archive::catalog::{Catalog, RecordingState};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_pipeline::private::{MAX_BLOCK_LENGTH, PrivateArchive, SESSION_RETURN_TIMEOUT_MS};

use super::stream::{
    ONE_GIB, SEGMENT_LENGTH, Stream, TERM_LENGTH, all_rows, create, image, record, rows, same,
};

const NOW_US: i64 = 1_700_000_000_000_000;
const NOW_MS: i64 = NOW_US / 1000;

/// An archive whose first recording ended at `stop`.
struct Returning {
    disk: MemoryStorage,
    archive: PrivateArchive<MemoryStorage>,
    stream: Stream,
    head: i64,
    stop: i64,
}

impl Returning {
    /// Records `stream` up to the first start of a frame at or after `stop`, and ends the recording.
    fn new(stream: Stream, stop: i64) -> Self {
        let disk = MemoryStorage::new();
        let mut archive = create(disk.clone(), ONE_GIB);
        let join = stream.base;
        let mut writer = archive.start_recording(&image(join), NOW_US).unwrap();
        let stop = stream
            .frames
            .iter()
            .copied()
            .find(|&frame| frame >= stop)
            .unwrap();
        record(&mut writer, &stream, join, stop, MAX_BLOCK_LENGTH, NOW_US).unwrap();
        assert_eq!(writer.recorded_position(), stop);
        let head = writer.head().unwrap();
        assert_eq!(Some(head), stream.head(join, stop));
        archive.end_recording(writer, false, NOW_MS).unwrap();
        Self {
            disk,
            archive,
            stream,
            head,
            stop,
        }
    }

    /// Joins at `join` and records the remaining stream. Checks that each message occurs once. If the image joined
    /// above the stop position, the messages that begin at or after `head` and before `join` are missing. Returns the
    /// reported gap.
    fn returns(mut self, join: i64) -> Option<i64> {
        let mut writer = self.archive.start_recording(&image(join), NOW_US).unwrap();
        let id = writer.recording_id();
        let end = self.stream.end();
        record(
            &mut writer,
            &self.stream,
            join,
            end,
            MAX_BLOCK_LENGTH,
            NOW_US,
        )
        .unwrap();
        let gap = writer.take_gap();
        assert_eq!(writer.take_gap(), None, "the gap was reported again");
        let (mut found, taken) = match self.archive.descriptor(0) {
            Some(_) => (all_rows(&self.archive, 0), self.stream.base),
            None => (Vec::new(), self.head),
        };
        found.extend(all_rows(&self.archive, id));
        let from = if join <= self.stop { self.head } else { join };
        let mut expected = self.stream.messages_in(taken, self.head);
        expected.extend(self.stream.messages_in(from, end));
        assert!(same(&found, &expected));
        gap
    }
}

/// Returns a stream of messages of 5000 bytes over three terms. Each message has four fragments.
fn stream() -> Stream {
    let mut stream = Stream::new(5 * TERM_LENGTH + 640);
    (0..35).for_each(|_| stream.publish(5000));
    stream
}

/// Returns a position within the eighth message.
fn amid(stream: &Stream) -> i64 {
    stream.messages[7].begin + 1408
}

/// 08-20
#[test]
fn each_message_is_recorded_once_if_the_image_joins_at_or_below_the_stop_position() {
    let all = stream();
    let stop = amid(&all);
    let joins = all
        .frames
        .iter()
        .copied()
        .filter(|&frame| frame <= stop + 1408);
    for join in joins {
        let returning = Returning::new(stream(), stop);
        assert!(returning.head < returning.stop);
        if join <= returning.stop {
            assert_eq!(returning.returns(join), None, "joined at {join}");
        }
    }
}

/// 08-20: an image may join several terms below the stop position. The new recording skips the padding at the end of
/// each recorded term.
#[test]
fn recorded_padding_is_skipped_if_an_image_joins_several_terms_below_the_stop_position() {
    let all = stream();
    let stop = all.messages[30].begin + 1408;
    assert!(all.padding().filter(|&padding| padding < stop).count() > 1);
    for join in all.padding().chain([all.base]) {
        let returning = Returning::new(stream(), stop);
        if join <= returning.stop {
            assert_eq!(returning.returns(join), None, "joined at {join}");
        }
    }
}

/// 08-20, 08-49
#[test]
fn the_gap_before_an_image_that_joins_above_the_stop_position_is_exact() {
    let returning = Returning::new(stream(), amid(&stream()));
    let (head, stop) = (returning.head, returning.stop);
    // The image joins one fragment after the stop position. The remaining fragments of this message give no row.
    let join = stop + 1408;
    let first = returning.stream.first_begin(join).unwrap();
    assert_eq!(returning.returns(join), Some(first - head));

    // The image joins at the start of a message.
    let returning = Returning::new(stream(), amid(&stream()));
    let join = returning.stream.messages[12].begin;
    assert_eq!(returning.returns(join), Some(join - head));
}

/// 08-20
#[test]
fn the_session_of_a_recording_that_stopped_after_padding_at_the_end_of_a_term_can_return() {
    let mut all = stream();
    let padding = all.padding().next().unwrap();
    let behind = (padding / TERM_LENGTH + 1) * TERM_LENGTH;
    for (stop, join) in [(behind, behind), (behind, padding), (behind + 1408, behind)] {
        let returning = Returning::new(all, stop);
        assert!(returning.head <= padding);
        assert_eq!(returning.returns(join), None);
        all = stream();
    }
}

/// 08-16, 08-20: the end of the message is in another segment than the head.
#[test]
fn an_unfinished_message_over_several_segments_is_complete_in_the_new_recording() {
    let long = || {
        let mut stream = Stream::new(0);
        // Frames of 1024 bytes, with their headers, fill each term exactly.
        stream.publish(992);
        stream.publish_over_segments(3 * SEGMENT_LENGTH as usize);
        stream.publish(992);
        stream
    };
    let all = long();
    assert!(all.messages[1].end > 3 * SEGMENT_LENGTH);
    let stop = 2 * SEGMENT_LENGTH + 5 * 1024;
    for join in [512 * 1024, SEGMENT_LENGTH, 2 * SEGMENT_LENGTH, stop] {
        let returning = Returning::new(long(), stop);
        assert_eq!(returning.head, all.messages[0].end);
        assert_eq!(returning.returns(join), None);
    }
    let whole = Returning::new(long(), 2 * SEGMENT_LENGTH);
    assert_eq!(whole.head, all.messages[0].end);
}

/// 08-20
#[test]
fn the_next_recording_begins_at_the_stop_position_of_a_purged_recording() {
    let all = stream();
    let stop = all.messages[7].end;
    let mut returning = Returning::new(stream(), stop);
    assert_eq!(returning.head, stop);
    returning.archive.commit([(0, stop)]).unwrap();
    while returning.archive.work(NOW_MS, Some(NOW_MS)).unwrap() {}
    assert!(returning.archive.descriptor(0).is_none());
    let names = aeron_archive::storage::Storage::names(&returning.disk).unwrap();
    assert_eq!(names, ["archive.catalog"]);
    // The image joins below the committed position. Committed messages are not recorded again.
    let join = all.messages[3].begin;
    assert_eq!(returning.returns(join), None);
}

/// 08-20, 08-30: if a recording ended within a message, the beginning of the message is kept until the session returns.
#[test]
fn a_recording_that_ended_within_a_message_is_kept_until_the_new_recording_has_the_message() {
    let mut returning = Returning::new(stream(), amid(&stream()));
    let head = returning.head;
    let archive = &mut returning.archive;
    archive.commit([(0, head)]).unwrap();
    let since = NOW_MS + 5_000;
    let almost = since + SESSION_RETURN_TIMEOUT_MS - 1;
    assert!(
        !archive.work(almost, None).unwrap(),
        "the recording was removed, although the session had no subscription to return to"
    );
    assert!(!archive.work(almost, Some(since)).unwrap());
    assert!(archive.descriptor(0).is_some());

    // The session has returned, but the new recording does not contain the whole message yet.
    let mut writer = archive.start_recording(&image(head), NOW_US).unwrap();
    assert!(!archive.work(almost + 100_000, Some(since)).unwrap());
    let end = returning.stream.end();
    record(
        &mut writer,
        &returning.stream,
        head,
        end,
        MAX_BLOCK_LENGTH,
        NOW_US,
    )
    .unwrap();
    assert!(archive.work(almost, Some(since)).unwrap());
    assert!(archive.descriptor(0).is_none());
}

/// 08-30
#[test]
fn a_recording_that_ended_within_a_message_is_removed_after_a_minute_without_its_session() {
    let mut returning = Returning::new(stream(), amid(&stream()));
    let head = returning.head;
    let archive = &mut returning.archive;
    archive.commit([(0, head)]).unwrap();
    let since = NOW_MS + 5_000;
    assert!(
        archive
            .work(since + SESSION_RETURN_TIMEOUT_MS, Some(since))
            .unwrap()
    );
    let catalog = Catalog::open_read_only(&returning.disk).unwrap();
    let entry = catalog.entry(0).unwrap();
    assert_eq!(entry.state, RecordingState::Deleted);
    assert_eq!(entry.descriptor.stop_position, head);
}

/// 08-30
#[test]
fn a_committed_recording_of_an_ended_stream_or_without_messages_is_removed_at_once() {
    let stream = stream();
    let disk = MemoryStorage::new();
    let mut archive = create(disk.clone(), ONE_GIB);
    let mut writer = archive
        .start_recording(&image(stream.base), NOW_US)
        .unwrap();
    record(
        &mut writer,
        &stream,
        stream.base,
        amid(&stream),
        1408,
        NOW_US,
    )
    .unwrap();
    let head = writer.head().unwrap();
    archive.end_recording(writer, true, NOW_MS).unwrap();
    assert!(
        !archive.work(NOW_MS, None).unwrap(),
        "the recording was removed before its messages were committed"
    );
    archive.commit([(0, head)]).unwrap();
    assert!(archive.work(NOW_MS, None).unwrap());

    // This recording begins within a message and ends before the next one.
    let join = stream.messages[9].begin + 1408;
    let mut other = image(join);
    other.session_id += 1;
    let writer = archive.start_recording(&other, NOW_US).unwrap();
    archive.end_recording(writer, false, NOW_MS).unwrap();
    assert!(archive.work(NOW_MS, None).unwrap());
    let catalog = Catalog::open_read_only(&disk).unwrap();
    assert_eq!(catalog.entry(1).unwrap().descriptor.stop_position, -1);
}

/// 08-19
#[test]
fn images_with_another_stream_session_channel_or_source_get_their_own_recordings() {
    let stream = stream();
    let mut archive = create(MemoryStorage::new(), ONE_GIB);
    let mut images = vec![image(stream.base); 6];
    images[1].stream_id += 1;
    images[2].session_id += 1;
    images[3].original_channel += "|mtu=1408";
    images[4].source_identity = "127.0.0.1:4711".to_owned();
    images[5].initial_term_id += 1;
    let mut writer = archive.start_recording(&images[0], NOW_US).unwrap();
    record(
        &mut writer,
        &stream,
        stream.base,
        stream.end(),
        MAX_BLOCK_LENGTH,
        NOW_US,
    )
    .unwrap();
    archive.end_recording(writer, false, NOW_MS).unwrap();
    for (id, image) in images.iter().enumerate().skip(1) {
        let writer = archive.start_recording(image, NOW_US).unwrap();
        assert_eq!(writer.recording_id(), id as i64);
        assert_eq!(writer.recorded_position(), stream.base);
    }
    // Another image of the same session gets a new recording, too.
    let writer = archive.start_recording(&images[0], NOW_US).unwrap();
    assert_eq!(writer.recording_id(), 6);
    assert_eq!(
        writer.recorded_position(),
        stream.head(stream.base, stream.end()).unwrap()
    );
}

/// 08-20: the process is killed before, during and after the copy of the unfinished message.
#[test]
fn a_kill_at_any_step_of_the_copy_loses_no_message() {
    let stop = amid(&stream());
    let mut step = 0;
    loop {
        let Returning {
            disk,
            mut archive,
            stream,
            head,
            stop,
        } = Returning::new(stream(), stop);
        disk.fail_at(disk.steps() + step, StorageFault::Kill { progress: 1 });
        let started = archive.start_recording(&image(stop), NOW_US).is_ok();
        let was_killed = disk.is_killed();
        assert_eq!(started, !was_killed);
        disk.restart();
        let (mut archive, report) =
            PrivateArchive::open(disk.clone(), &[], ONE_GIB, NOW_MS).unwrap();
        assert_eq!(report.lost, []);
        let mut writer = archive.start_recording(&image(stop), NOW_US).unwrap();
        let id = writer.recording_id();
        record(
            &mut writer,
            &stream,
            stop,
            stream.end(),
            MAX_BLOCK_LENGTH,
            NOW_US,
        )
        .unwrap();
        assert_eq!(writer.take_gap(), None);
        let info = archive.recordings().find(|info| info.is_live).unwrap();
        let found = rows(&disk, info.stream, head, writer.head().unwrap(), None);
        assert!(
            same(&found, &stream.messages_in(head, stream.end())),
            "killed at step {step}, recording {id}"
        );
        if !was_killed {
            assert!(step > 5, "only {step} steps");
            break;
        }
        step += 1;
    }
}

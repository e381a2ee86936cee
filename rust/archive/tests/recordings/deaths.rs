//! A recorder whose disk fails, or whose process is killed, at each step. The tests compare the
//! segment files with the appended frames.

use crate::recordings::stream::*;
use aeron_archive::memory_storage::{MemoryStorage, PAGE_LENGTH, StorageFault};
use aeron_archive::reader::RecordingReader;
use aeron_archive::recorder::{RecorderError, RecorderSession};
use aeron_archive::recovery::{find_end, recover};
use aeron_archive::storage::SyncLevel;
use aeron_archive::stream::RecordedStream;
use proptest::prelude::*;
use std::io::ErrorKind;

/// The next action of a publisher.
#[derive(Debug, Clone)]
pub enum Action {
    /// Offers messages of these lengths. The messages that fit into the term are in one block.
    Offer(Vec<u16>),
    /// Adds padding of this many times 32 bytes.
    Pad(u16),
}

/// Position and length of the last appended block.
#[derive(Clone, Copy, Debug, Default)]
struct LastBlock {
    position: i64,
    length: usize,
}

/// Results of a recorder that has recorded all blocks or has failed.
#[derive(Debug, Default)]
struct Life {
    /// Position and bytes of each frame that the recorder accepted.
    frames: Vec<(i64, Vec<u8>)>,
    /// The last block that was passed to `append`.
    block: LastBlock,
    /// End of the last appended block. Other processes may have read the files up to this position.
    appended: i64,
    published: i64,
    error: Option<RecorderError>,
}

pub fn actions() -> impl Strategy<Value = Vec<Action>> {
    let lengths = prop::collection::vec(prop_oneof![0..200u16, 0..20_000u16], 1..5);
    let action = prop_oneof![
        4 => lengths.prop_map(Action::Offer),
        1 => (1..2048u16).prop_map(Action::Pad),
    ];
    prop::collection::vec(action, 1..12)
}

/// Returns the blocks of all actions, from `start` on.
pub fn blocks(start: i64, actions: &[Action]) -> Vec<Vec<u8>> {
    let mut publisher = Publisher::new(start);
    let mut blocks = Vec::new();
    for action in actions {
        match action {
            Action::Pad(units) => {
                let left = TERM_LENGTH - publisher.position() % TERM_LENGTH;
                blocks.push(publisher.pad((i64::from(*units) * 32).min(left)));
            }
            Action::Offer(lengths) => {
                let mut block = Vec::new();
                for length in lengths {
                    let before = publisher.position();
                    let mut message = publisher.offer(&payload(usize::from(*length)));
                    let is_new_term = before % TERM_LENGTH == 0;
                    if message.len() > 1 || is_new_term {
                        blocks.push(std::mem::take(&mut block));
                    }
                    let last = message.pop().unwrap();
                    blocks.extend(message);
                    block.extend(last);
                }
                blocks.push(block);
            }
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Records the blocks until all are recorded or an error occurs.
fn live(storage: &MemoryStorage, stream: RecordedStream, blocks: &[Vec<u8>]) -> Life {
    let start = stream.start_position();
    let mut life = Life {
        block: LastBlock {
            position: start,
            length: 0,
        },
        appended: start,
        published: start,
        ..Life::default()
    };
    life.error = run(storage, stream, blocks, &mut life).err();
    life
}

fn run(
    storage: &MemoryStorage,
    stream: RecordedStream,
    blocks: &[Vec<u8>],
    life: &mut Life,
) -> Result<(), RecorderError> {
    let mut session = RecorderSession::create(storage, stream, SyncLevel::None)?;
    for block in blocks {
        life.block = LastBlock {
            position: session.recorded_position(),
            length: block.len(),
        };
        let frames = &mut life.frames;
        life.appended = session.append(block, |frame| {
            frames.push((frame.position(), frame.bytes().to_vec()));
        })?;
        let published = session.publish();
        life.published = session.recorded_position();
        published?;
    }
    Ok(())
}

/// Returns the end of the last whole frame if only the first `written` bytes of the last block are
/// in the file.
fn expected_end(life: &Life, written: usize) -> i64 {
    let begin = life.block.position;
    let whole = life
        .frames
        .iter()
        .enumerate()
        .filter(|(_, (position, bytes))| {
            *position < begin || (*position - begin) as usize + bytes.len() <= written
        });
    whole
        .map(|(index, _)| end_of(life, index))
        .max()
        .unwrap_or(begin)
}

fn end_of(life: &Life, index: usize) -> i64 {
    let (position, bytes) = &life.frames[index];
    let length = i32::from_le_bytes(bytes[..4].try_into().unwrap());
    position + i64::from((length + 31) / 32 * 32)
}

/// Checks that the recording consists exactly of the frames up to `end`, followed by zeros.
fn check_contents(storage: &MemoryStorage, stream: RecordedStream, life: &Life, end: i64) {
    let mut reader = RecordingReader::new(storage, stream, stream.start_position(), end).unwrap();
    let mut expected = life.frames.iter();
    while let Some(frame) = reader.next_frame().unwrap() {
        let (position, bytes) = expected.next().unwrap();
        assert_eq!((frame.position(), frame.bytes()), (*position, &bytes[..]));
    }
    let first = stream.segment_base(stream.start_position());
    for base in (first..).step_by(SEGMENT_LENGTH as usize) {
        let Some(file) = storage.bytes(&stream.segment_name(base)) else {
            break;
        };
        assert_eq!(file.len() as i64, SEGMENT_LENGTH);
        let used = (end - base).clamp(0, SEGMENT_LENGTH) as usize;
        assert!(
            file[used..].iter().all(|byte| *byte == 0),
            "the segment at {base} has bytes other than zeros after position {end}"
        );
    }
}

/// Returns the number of bytes of a block that are in the file if a kill leaves this many pages of
/// the write.
fn left_by_kill(block: LastBlock, pages: usize) -> usize {
    let within = block.position as usize % PAGE_LENGTH;
    pages
        .saturating_mul(PAGE_LENGTH)
        .saturating_sub(within)
        .min(block.length)
}

pub fn stream_of(start_units: u16) -> RecordedStream {
    recorded_stream(TERM_LENGTH + i64::from(start_units) * 32)
}

/// Returns the number of steps that recording all blocks takes.
fn steps(stream: RecordedStream, blocks: &[Vec<u8>]) -> u64 {
    let storage = MemoryStorage::new();
    let life = live(&storage, stream, blocks);
    assert!(life.error.is_none(), "{:?}", life.error);
    check_contents(&storage, stream, &life, life.published);
    storage.steps()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_kill_at_any_step_leaves_all_acknowledged_data_and_a_prefix_of_the_block_08_22(
        start_units in 0..2000u16, actions in actions()
    ) {
        let stream = stream_of(start_units);
        let blocks = blocks(stream.start_position(), &actions);
        for step in 0..steps(stream, &blocks) {
            for progress in [0, 1, 2, 3, usize::MAX] {
                let storage = MemoryStorage::new();
                storage.fail_at(step, StorageFault::Kill { progress });
                let life = live(&storage, stream, &blocks);
                assert!(life.error.is_some());
                storage.restart();
                let is_append = life.appended < end_of_frames(&life);
                let written = if is_append { left_by_kill(life.block, progress) } else { usize::MAX };
                for known in [stream.start_position(), life.published, life.appended] {
                    let end = recover(&storage, &stream, known).unwrap();
                    prop_assert_eq!(end.position, expected_end(&life, written));
                    check_contents(&storage, stream, &life, end.position);
                }
            }
        }
    }

    #[test]
    fn a_failed_or_short_write_leaves_no_bytes_after_the_recorded_position_08_24(
        start_units in 0..2000u16, actions in actions(), short in 0..5000usize, is_full: bool
    ) {
        let stream = stream_of(start_units);
        let blocks = blocks(stream.start_position(), &actions);
        let failure = if is_full { ErrorKind::StorageFull } else { ErrorKind::Other };
        for step in 1..steps(stream, &blocks) {
            let storage = MemoryStorage::new();
            storage.fail_at(step, StorageFault::Short(short));
            storage.fail_at(step + 1, StorageFault::Error(failure));
            let life = live(&storage, stream, &blocks);
            check_contents(&storage, stream, &life, life.published);
            let end = find_end(&storage, &stream, life.published).unwrap();
            prop_assert_eq!((end.position, end.is_torn), (life.published, false));
            if let Some(RecorderError::Full { position, .. }) = life.error {
                prop_assert_eq!(position, life.published);
            }
        }
    }

    #[test]
    fn a_full_disk_ends_the_recording_at_the_recorded_position_08_24(
        start_units in 0..2000u16, actions in actions(), pages in 0..40u64
    ) {
        let stream = stream_of(start_units);
        let blocks = blocks(stream.start_position(), &actions);
        let storage = MemoryStorage::new();
        storage.set_capacity(pages * PAGE_LENGTH as u64);
        let life = live(&storage, stream, &blocks);
        check_contents(&storage, stream, &life, life.published);
        if let Some(error) = &life.error {
            let is_full = matches!(error, RecorderError::Full { .. });
            prop_assert!(is_full, "{error}");
        }
    }

    #[test]
    fn kills_during_an_undo_and_during_recoveries_do_not_change_the_found_end_08_22(
        start_units in 0..2000u16, actions in actions(), pages in 0..20u64
    ) {
        let stream = stream_of(start_units);
        let blocks = blocks(stream.start_position(), &actions);
        let full_disk = || {
            let storage = MemoryStorage::new();
            storage.set_capacity(pages * PAGE_LENGTH as u64);
            storage
        };
        let storage = full_disk();
        if live(&storage, stream, &blocks).error.is_none() {
            return Ok(());
        }
        // The last two steps of an undo shorten the file and set its length again.
        for (before_end, progress) in [(2, 0), (2, 1), (1, 0), (1, 1)] {
            let killed = full_disk();
            killed.fail_at(storage.steps() - before_end, StorageFault::Kill { progress });
            let life = live(&killed, stream, &blocks);
            let is_undo = matches!(life.error, Some(RecorderError::Undo { .. }));
            prop_assert!(is_undo, "{:?}", life.error);
            killed.restart();
            recover_through_kills(&killed, &stream, life.published);
            let end = find_end(&killed, &stream, life.published).unwrap();
            prop_assert!(!end.is_torn && end.position >= life.published);
            check_contents(&killed, stream, &life, end.position);
        }
    }

    #[test]
    fn reading_and_recovering_a_damaged_segment_does_not_panic(
        actions in actions(), flips in prop::collection::vec((0..SEGMENT_LENGTH as u64, 0..8u32), 1..8)
    ) {
        let stream = recorded_stream(0);
        let storage = MemoryStorage::new();
        let life = live(&storage, stream, &blocks(0, &actions));
        for (offset, bit) in flips {
            storage.flip_bit(&stream.segment_name(0), offset, bit);
        }
        let _ = read(&storage, stream, 0, life.published);
        for known in [0, life.published] {
            if let Ok(end) = recover(&storage, &stream, known) {
                prop_assert!(end.position >= known);
            }
        }
    }
}

/// Recovers in four processes that are killed at different points, and then in a process that is not killed. Checks
/// that all these processes find the same end.
fn recover_through_kills(storage: &MemoryStorage, stream: &RecordedStream, known: i64) {
    let mut ends = Vec::new();
    for (steps, progress) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        ends.push(find_end(storage, stream, known).unwrap().position);
        let before = storage.steps();
        storage.fail_at(before + steps, StorageFault::Kill { progress });
        // If no bytes must be removed, the recovery changes no file, so the kill does not happen.
        let is_recovered = recover(storage, stream, known).is_ok();
        assert!(!is_recovered || storage.steps() <= before + steps);
        storage.forget_faults();
        storage.restart();
    }
    ends.push(recover(storage, stream, known).unwrap().position);
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
}

fn end_of_frames(life: &Life) -> i64 {
    match life.frames.len() {
        0 => life.appended,
        count => end_of(life, count - 1),
    }
}

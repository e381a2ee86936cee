//! A recorder on a disk that loses power at each step. At [`SyncLevel::Data`] all published bytes survive.

use crate::recordings::deaths::{actions, blocks, stream_of};
use crate::recordings::stream::*;
use aeron_archive::memory_storage::{MemoryStorage, StorageFault};
use aeron_archive::reader::RecordingReader;
use aeron_archive::recorder::{RecorderError, RecorderSession};
use aeron_archive::recovery::recover;
use aeron_archive::storage::SyncLevel;
use aeron_archive::stream::RecordedStream;
use proptest::prelude::*;
use std::io::ErrorKind;

/// The frames that were appended before the loss of power, and the end of the published frames.
#[derive(Default)]
struct Life {
    frames: Vec<(i64, Vec<u8>)>,
    published: i64,
}

fn record(
    storage: &MemoryStorage,
    stream: RecordedStream,
    blocks: &[Vec<u8>],
) -> (Life, Option<RecorderError>) {
    let mut life = Life {
        published: stream.start_position(),
        ..Life::default()
    };
    let error = run(storage, stream, blocks, &mut life).err();
    (life, error)
}

fn run(
    storage: &MemoryStorage,
    stream: RecordedStream,
    blocks: &[Vec<u8>],
    life: &mut Life,
) -> Result<(), RecorderError> {
    let mut session = RecorderSession::create(storage, stream, SyncLevel::Data)?;
    for block in blocks {
        session.append(block, |frame| {
            life.frames.push((frame.position(), frame.bytes().to_vec()));
        })?;
        let published = session.publish();
        life.published = session.recorded_position();
        published?;
    }
    Ok(())
}

fn check_published(storage: &MemoryStorage, stream: RecordedStream, life: &Life) {
    let mut reader =
        RecordingReader::new(storage, stream, stream.start_position(), life.published).unwrap();
    let mut expected = life.frames.iter();
    while let Some(frame) = reader.next_frame().unwrap() {
        let (position, bytes) = expected.next().unwrap();
        assert_eq!((frame.position(), frame.bytes()), (*position, &bytes[..]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn published_frames_survive_a_loss_of_power_at_any_step_07_53(
        start_units in 0..2000u16, actions in actions(), coins in prop::collection::vec(any::<bool>(), 1..40)
    ) {
        let stream = stream_of(start_units);
        let blocks = blocks(stream.start_position(), &actions);
        let storage = MemoryStorage::new();
        let (_, error) = record(&storage, stream, &blocks);
        prop_assert!(error.is_none());
        for step in 0..=storage.steps() {
            let storage = MemoryStorage::new();
            storage.fail_at(step, StorageFault::Kill { progress: 9 });
            let (life, _) = record(&storage, stream, &blocks);
            let mut coins = coins.iter().cycle();
            storage.lose_power(|| coins.next() == Some(&true));
            let end = recover(&storage, &stream, life.published).unwrap();
            prop_assert!(end.position >= life.published);
            check_published(&storage, stream, &life);
        }
    }
}

#[test]
fn without_a_sync_level_a_loss_of_power_may_remove_published_frames() {
    let (storage, stream) = (MemoryStorage::new(), recorded_stream(0));
    let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    let mut publisher = Publisher::new(0);
    session
        .append(&publisher.offer(&payload(100))[0], |_| {})
        .unwrap();
    let published = session.publish().unwrap();
    storage.lose_power(|| false);
    let lost = recover(&storage, &stream, published).unwrap_err();
    assert_eq!(
        lost.to_string(),
        format!(
            "recording {}: recorded up to {published}, but its segment files end at 0",
            stream.recording_id()
        )
    );
}

#[test]
fn a_block_that_cannot_be_synced_is_not_recorded() {
    let (storage, stream) = (MemoryStorage::new(), recorded_stream(0));
    let mut session = RecorderSession::create(&storage, stream, SyncLevel::Data).unwrap();
    let mut publisher = Publisher::new(0);
    session
        .append(&publisher.offer(&payload(100))[0], |_| {})
        .unwrap();
    storage.fail_at(storage.steps(), StorageFault::Error(ErrorKind::Other));
    let error = session.publish().unwrap_err();
    assert!(
        matches!(error, RecorderError::Sync { position: 0, .. }),
        "{error}"
    );
    assert_eq!(session.recorded_position(), 0);
    let segment = storage.bytes(&stream.segment_name(0)).unwrap();
    assert!(segment.iter().all(|byte| *byte == 0));
}

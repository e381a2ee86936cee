//! Tests of the rewriting of recorded frames for a replay.

use aeron_layout::frame::FirstWord;
use aeron_memory::{SharedBuffer, Words};
use proptest::prelude::*;

use super::kit::{Recording, STREAM_ID, TERM_LENGTH, descriptor};
use crate::checksum::Checksum;
use crate::frame::FrameFault;
use crate::server::replay::frame_run::{FrameRewrite, FrameRun, RecordedBytes, RunFault};
use crate::stream::{RecordedStream, StreamDescription};

fn rewrite(session_id: i32, stream_id: i32, checksum: Option<Checksum>) -> FrameRewrite {
    let description = StreamDescription::from(&descriptor(0, -1));
    let stream = RecordedStream::new(&description).unwrap();
    FrameRewrite::new(
        stream.any_session().rules(),
        checksum,
        session_id,
        stream_id,
    )
}

/// Copies `bytes` to offset 64 of a term, rewrites the run at the start of these bytes, and copies
/// them back.
fn take_run(
    mut rewrite: FrameRewrite,
    position: i64,
    limit: i64,
    bytes: &mut [u8],
) -> Result<FrameRun, RunFault> {
    let (offset, length) = (64, bytes.len());
    let term = SharedBuffer::heap(offset + length.next_multiple_of(64) + 64);
    term.copy_in(offset, bytes);
    let first_word = FirstWord(term.load_i64_relaxed(offset));
    term.store_i64_relaxed(offset, 0);
    let recorded = RecordedBytes {
        term: &term,
        offset,
        length,
        first_word,
    };
    let run = rewrite.take_run(position, limit, recorded);
    term.store_i64_relaxed(offset, first_word.0);
    term.copy_out(offset, bytes);
    run
}

/// Returns `count` frames of 64 bytes, with an arbitrary session id and the stream id of the recording.
fn frames(count: usize) -> Vec<u8> {
    let mut recording = Recording::new(0);
    (0..count).for_each(|_| recording.message(20));
    let mut bytes = recording.replayed(0, recording.position()).to_vec();
    for frame in bytes.chunks_mut(64) {
        frame[12..16].copy_from_slice(&5_i32.to_le_bytes());
        frame[16..20].copy_from_slice(&STREAM_ID.to_le_bytes());
    }
    bytes
}

fn take(bytes: &mut [u8], limit: i64) -> Result<FrameRun, RunFault> {
    take_run(rewrite(-2, 9, None), 0, limit, bytes)
}

fn data(data_length: usize) -> Result<FrameRun, RunFault> {
    Ok(FrameRun {
        data_length,
        padding_length: 0,
    })
}

/// 07-99
#[test]
fn only_session_id_and_stream_id_of_the_recorded_frames_are_replaced() {
    let (mut bytes, recorded) = (frames(3), frames(3));
    assert_eq!(take(&mut bytes, i64::MAX), data(192));
    for (frame, recorded) in bytes.chunks(64).zip(recorded.chunks(64)) {
        assert_eq!(frame[..12], recorded[..12]);
        assert_eq!(frame[12..16], (-2_i32).to_le_bytes());
        assert_eq!(frame[16..20], 9_i32.to_le_bytes());
        assert_eq!(frame[20..], recorded[20..]);
    }
}

/// 07-89
#[test]
fn the_frame_that_contains_the_limit_is_the_last_frame_of_a_run() {
    for (limit, length) in [(0, 0), (1, 64), (64, 64), (65, 128), (1000, 192)] {
        assert_eq!(take(&mut frames(3), limit), data(length));
    }
}

#[test]
fn an_incomplete_frame_at_the_end_is_not_part_of_the_run() {
    for (length, taken) in [
        (0, 0),
        (31, 0),
        (32, 0),
        (63, 0),
        (64, 64),
        (96, 64),
        (191, 128),
    ] {
        assert_eq!(take(&mut frames(3)[..length], i64::MAX), data(taken));
    }
}

#[test]
fn bytes_that_are_not_a_frame_of_the_recording_are_refused() {
    let mut bytes = frames(3);
    bytes[64..96].fill(0);
    assert_eq!(take(&mut bytes, i64::MAX), data(64));
    bytes[..32].fill(0);
    assert_eq!(
        take(&mut bytes, i64::MAX),
        Err(RunFault::Frame(FrameFault::Nothing))
    );
    let mut bytes = frames(3);
    bytes[20] ^= 1;
    assert!(take(&mut bytes, i64::MAX).is_err());
}

#[test]
fn padding_ends_a_run() {
    let mut recording = Recording::new(0);
    recording.message(20);
    recording.padding(96);
    recording.message(20);
    let mut bytes = recording.replayed(0, recording.position()).to_vec();
    for at in [0, 64, 160] {
        bytes[at + 16..at + 20].copy_from_slice(&STREAM_ID.to_le_bytes());
    }
    let run = FrameRun {
        data_length: 64,
        padding_length: 96,
    };
    assert_eq!(take(&mut bytes.clone(), i64::MAX), Ok(run));
    assert_eq!(take(&mut bytes, 64), data(64));
}

proptest! {
    #[test]
    fn a_run_of_any_bytes_ends_within_the_term_and_does_not_cause_a_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        frames_before in 0_usize..4,
        position in 0..2 * TERM_LENGTH / 32,
        limit: i64,
    ) {
        let mut all = frames(frames_before);
        all.append(&mut bytes);
        let length = all.len();
        if let Ok(run) = take_run(rewrite(1, 2, None), position * 32, limit, &mut all) {
            prop_assert!(run.data_length <= length);
            let end = (position * 32) % TERM_LENGTH + (run.data_length + run.padding_length) as i64;
            prop_assert!(run.is_empty() || end <= TERM_LENGTH);
        }
    }
}

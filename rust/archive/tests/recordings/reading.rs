//! The frames that a reader returns, and the errors for ranges and bytes that it refuses.

use crate::recordings::stream::*;
use aeron_archive::frame::FrameFault;
use aeron_archive::reader::{ReadError, RecordingReader};
use aeron_archive::recorder::RecorderSession;
use aeron_archive::storage::{Directory, SyncLevel};
use aeron_archive::stream::{RecordedStream, StreamError};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

/// A recording of messages of different lengths over three segments, and the frames that were recorded.
struct Recording {
    place: TempDir,
    storage: Directory,
    stream: RecordedStream,
    frames: Vec<Seen>,
    end: i64,
}

impl Recording {
    fn new(start: i64) -> Self {
        let place = TempDir::new().unwrap();
        let storage = Directory::new(place.path());
        let stream = recorded_stream(start);
        let mut publisher = Publisher::new(start);
        let mut frames = Vec::new();
        let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
        let mut length = 0;
        while publisher.position() < start + 5 * TERM_LENGTH {
            length = (length * 3 + 1) % 8000;
            for block in publisher.offer(&payload(length)) {
                session
                    .append(&block, |frame| {
                        let payload = frame.payload().to_vec();
                        frames.push((
                            frame.position(),
                            payload,
                            frame.flags(),
                            frame.reserved_value(),
                            frame.is_padding(),
                        ));
                    })
                    .unwrap();
                session.publish().unwrap();
            }
        }
        Self {
            place,
            storage,
            stream,
            frames,
            end: publisher.position(),
        }
    }

    fn read(&self, from: i64, to: i64) -> Result<Vec<Seen>, ReadError> {
        read(&self.storage, self.stream, from, to)
    }

    fn write(&self, name: &str, offset: i64, bytes: &[u8]) {
        let file = OpenOptions::new()
            .write(true)
            .open(self.place.path().join(name))
            .unwrap();
        file.write_all_at(bytes, offset as u64).unwrap();
    }
}

#[test]
fn reading_a_recording_returns_the_published_frames_of_all_segments() {
    let recording = Recording::new(TERM_LENGTH + 96);
    assert_eq!(
        recording.read(TERM_LENGTH + 96, recording.end).unwrap(),
        recording.frames
    );
    assert!(
        recording
            .frames
            .iter()
            .any(|(_, _, _, _, is_padding)| *is_padding)
    );
    assert!(
        recording
            .frames
            .iter()
            .any(|(_, payload, flags, ..)| payload.len() > 1000 && *flags == 0)
    );
}

#[test]
fn a_range_may_begin_and_end_at_any_frame() {
    let recording = Recording::new(0);
    let bounds: Vec<_> = recording
        .frames
        .iter()
        .map(|frame| frame.0)
        .chain([recording.end])
        .collect();
    for (from, to) in [
        (0, 0),
        (0, 1),
        (5, 9),
        (1, bounds.len() - 2),
        (40, bounds.len() - 1),
    ] {
        let frames = recording.read(bounds[from], bounds[to]).unwrap();
        assert_eq!(frames, recording.frames[from..to]);
    }
}

#[test]
fn a_segment_that_is_longer_than_the_read_buffer_is_read_completely() {
    let place = TempDir::new().unwrap();
    let storage = Directory::new(place.path());
    let mut description = description(0);
    (description.term_length, description.segment_length) = (1 << 22, 1 << 22);
    let stream = RecordedStream::new(&description).unwrap();
    let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    let mut publisher = Publisher::with_term_length(0, 1 << 22);
    for _ in 0..2500 {
        session
            .append(&publisher.data(0xC0, &payload(1344)), |_| {})
            .unwrap();
    }
    let end = session.publish().unwrap();
    let seen = read(&storage, stream, 0, end).unwrap();
    assert!(end > 3 << 20);
    assert_eq!(seen.len(), 2500);
    assert!(seen.iter().all(|frame| frame.1 == payload(1344)));
}

#[test]
fn the_error_of_an_invalid_header_field_has_the_file_and_the_position_08_27() {
    let recording = Recording::new(0);
    let frame = recording
        .frames
        .iter()
        .find(|frame| frame.0 > SEGMENT_LENGTH)
        .unwrap();
    let (position, offset) = (frame.0, frame.0 - SEGMENT_LENGTH);
    let cases: [(i64, &[u8], &str); 8] = [
        (4, &[1], "version 1, expected 0"),
        (6, &[2], "type 2, expected 1"),
        (
            8,
            &[1],
            &format!(
                "term offset {}, expected {}",
                position % TERM_LENGTH + 1 - position % 256,
                position % TERM_LENGTH
            ),
        ),
        (12, &[1], "session id -255, expected -7"),
        (16, &[0], "stream id 768, expected 1001"),
        (20, &[9], "term id"),
        (0, &[31, 0, 0, 0], "frame of 31 bytes"),
        (0, &[0, 0, 0, 0x80], "frame of -2147483648 bytes"),
    ];
    for (at, bytes, expected) in cases {
        let mut original = vec![0; bytes.len()];
        let file = OpenOptions::new()
            .read(true)
            .open(recording.place.path().join("3-131072.rec"))
            .unwrap();
        file.read_exact_at(&mut original, (offset + at) as u64)
            .unwrap();
        recording.write("3-131072.rec", offset + at, bytes);
        let error = recording.read(0, recording.end).unwrap_err().to_string();
        let place = format!("3-131072.rec, position {position}: ");
        assert!(
            error.starts_with(&place) && error.contains(expected),
            "{error}"
        );
        recording.write("3-131072.rec", offset + at, &original);
    }
    assert!(recording.read(0, recording.end).is_ok());
}

#[test]
fn a_frame_of_length_0_or_longer_than_the_limit_or_the_file_is_an_error_08_27() {
    let recording = Recording::new(0);
    let fault_of = |length: i32| {
        recording.write("3-0.rec", 0, &length.to_le_bytes());
        match recording.read(0, recording.end).unwrap_err() {
            ReadError::Frame { fault, .. } => fault,
            other => panic!("{other}"),
        }
    };
    assert_eq!(fault_of(0), FrameFault::Nothing);
    assert_eq!(
        fault_of(65_505),
        FrameFault::Length {
            length: 65_505,
            limit: 65_504
        }
    );
    assert_eq!(
        fault_of(i32::MAX),
        FrameFault::Length {
            length: i32::MAX,
            limit: 65_504
        }
    );
    let file = OpenOptions::new()
        .write(true)
        .open(recording.place.path().join("3-0.rec"))
        .unwrap();
    file.set_len(48).unwrap();
    assert_eq!(
        fault_of(64),
        FrameFault::Incomplete {
            length: 64,
            available: 48
        }
    );
    file.set_len(20).unwrap();
    assert_eq!(
        fault_of(64),
        FrameFault::Incomplete {
            length: 32,
            available: 20
        }
    );
}

#[test]
fn the_error_of_a_missing_segment_has_its_name_08_27() {
    let recording = Recording::new(0);
    std::fs::remove_file(recording.place.path().join("3-131072.rec")).unwrap();
    let error = recording.read(0, recording.end).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("3-131072.rec, position 131072: "),
        "{error}"
    );
    assert!(
        matches!(error, ReadError::Storage { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    );
}

#[test]
fn a_range_that_ends_within_a_frame_is_an_error() {
    let recording = Recording::new(0);
    let frame = recording
        .frames
        .iter()
        .find(|frame| frame.1.len() > 1000)
        .unwrap();
    let error = recording.read(frame.0, frame.0 + 64).unwrap_err();
    assert!(matches!(
        error,
        ReadError::Frame {
            fault: FrameFault::Incomplete { available: 64, .. },
            ..
        }
    ));
    let padding = recording.frames.iter().find(|frame| frame.4).unwrap();
    assert!(recording.read(padding.0, padding.0 + 32).is_err());
}

#[test]
fn ranges_that_are_reversed_unaligned_or_outside_the_recording_are_refused() {
    let recording = Recording::new(TERM_LENGTH + 64);
    let start = TERM_LENGTH + 64;
    for (from, to) in [
        (start - 32, start),
        (start + 64, start),
        (start + 1, start + 64),
        (start, start + 33),
        (start, i64::MAX),
    ] {
        let error =
            RecordingReader::new(&recording.storage, recording.stream, from, to).unwrap_err();
        assert!(matches!(error, ReadError::Range { .. }), "{error}");
    }
}

/// An archive that writes checksums stores them in the session id field.
#[test]
fn frames_with_checksums_are_read_if_the_reader_accepts_any_session_id() {
    let recording = Recording::new(0);
    recording.write("3-0.rec", 12, &0x1234_5678i32.to_le_bytes());
    assert!(recording.read(0, recording.end).is_err());
    let frames = read(
        &recording.storage,
        recording.stream.any_session(),
        0,
        recording.end,
    )
    .unwrap();
    assert_eq!(frames, recording.frames);
}

#[test]
fn streams_with_impossible_values_are_refused() {
    let refused = |change: fn(&mut aeron_archive::stream::StreamDescription)| {
        let mut description = description(0);
        change(&mut description);
        RecordedStream::new(&description).unwrap_err()
    };
    assert!(matches!(
        refused(|it| it.term_length = 65_537),
        StreamError::TermLength { .. }
    ));
    assert!(matches!(
        refused(|it| it.term_length = -65_536),
        StreamError::TermLength { .. }
    ));
    assert!(matches!(
        refused(|it| it.segment_length = 32_768),
        StreamError::SegmentLength { .. }
    ));
    assert!(matches!(
        refused(|it| it.segment_length = 3 << 16),
        StreamError::SegmentLength { .. }
    ));
    assert!(matches!(
        refused(|it| it.segment_length = i32::MIN),
        StreamError::SegmentLength { .. }
    ));
    assert!(matches!(
        refused(|it| it.start_position = -32),
        StreamError::StartPosition { .. }
    ));
    assert!(matches!(
        refused(|it| it.start_position = 33),
        StreamError::StartPosition { .. }
    ));
    assert!(matches!(
        refused(|it| it.start_position = i64::MAX - 31),
        StreamError::StartPosition { .. }
    ));
}

#[test]
fn segment_bases_begin_with_the_term_of_the_start_position_08_16() {
    let stream = recorded_stream(132_096);
    assert_eq!(stream.segment_base(132_096), 131_072);
    assert_eq!(stream.segment_base(262_143), 131_072);
    assert_eq!(stream.segment_base(262_144), 262_144);
    let stream = recorded_stream(TERM_LENGTH + 32);
    assert_eq!(
        stream.segment_base(TERM_LENGTH + SEGMENT_LENGTH),
        TERM_LENGTH + SEGMENT_LENGTH
    );
    assert_eq!(stream.segment_name(TERM_LENGTH), "3-65536.rec");
}

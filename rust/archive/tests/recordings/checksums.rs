//! Checksums of frames: written during recording, verified during reading.

use crate::recordings::stream::*;
use aeron_archive::checksum::Checksum;
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::reader::RecordingReader;
use aeron_archive::recorder::RecorderSession;
use aeron_archive::storage::SyncLevel;

const CHECKSUMS: [Checksum; 2] = [Checksum::Crc32, Checksum::Crc32c];

/// Records data and padding, and returns the end position of the recording.
fn record(storage: &MemoryStorage, checksum: Checksum) -> i64 {
    let stream = recorded_stream(0);
    let mut session = RecorderSession::create(storage, stream, SyncLevel::None)
        .unwrap()
        .with_checksum(Some(checksum));
    let mut publisher = Publisher::new(0);
    let mut blocks = publisher.offer(&payload(3000));
    blocks.push(publisher.pad(96));
    blocks.extend(publisher.offer(&payload(1)));
    blocks.extend(publisher.offer(&[]));
    for block in blocks {
        session
            .append(&block, |frame| assert_eq!(frame.session_id(), SESSION_ID))
            .unwrap();
        session.publish().unwrap();
    }
    session.recorded_position()
}

#[test]
fn the_session_id_of_a_data_frame_is_the_checksum_of_its_aligned_payload_07_51() {
    for checksum in CHECKSUMS {
        let storage = MemoryStorage::new();
        let end = record(&storage, checksum);
        let stream = recorded_stream(0).any_session();
        let mut reader = RecordingReader::new(&storage, stream, 0, end).unwrap();
        let mut count = 0;
        while let Some(frame) = reader.next_frame().unwrap() {
            count += 1;
            assert_eq!(checksum.verify(&frame), Ok(()));
            match frame.is_padding() {
                true => assert_eq!(frame.session_id(), SESSION_ID),
                false => assert_eq!(frame.session_id(), checksum.compute(&frame.bytes()[32..])),
            }
        }
        assert_eq!(count, 6);
    }
}

#[test]
fn a_changed_byte_in_the_alignment_after_a_payload_is_detected_07_51() {
    let storage = MemoryStorage::new();
    let end = record(&storage, Checksum::Crc32c);
    // The offset of a byte of the alignment after a payload of one byte. The frame of an empty message follows.
    let at = end - 64 + 32 + 20 - 32;
    storage.flip_bit("3-0.rec", at as u64, 3);
    let stream = recorded_stream(0).any_session();
    let mut reader = RecordingReader::new(&storage, stream, 0, end).unwrap();
    let mut wrong = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        if let Err(mismatch) = Checksum::Crc32c.verify(&frame) {
            wrong.push(mismatch.position);
        }
    }
    assert_eq!(wrong, [end - 96]);
}

#[test]
fn checksums_are_parsed_from_the_names_of_aeron() {
    let names = [
        ("CRC-32", Checksum::Crc32),
        ("io.aeron.archive.checksum.Crc32", Checksum::Crc32),
        ("org.agrona.checksum.Crc32", Checksum::Crc32),
        ("CRC-32C", Checksum::Crc32c),
        ("io.aeron.archive.checksum.Crc32c", Checksum::Crc32c),
        ("org.agrona.checksum.Crc32c", Checksum::Crc32c),
    ];
    for (name, checksum) in names {
        assert_eq!(name.parse(), Ok(checksum));
    }
    let refusal = "com.example.Adler".parse::<Checksum>().unwrap_err();
    assert!(
        refusal
            .to_string()
            .starts_with("unknown checksum com.example.Adler: ")
    );
}

/// The published check values of the two algorithms.
#[test]
fn checksums_have_the_standard_values() {
    assert_eq!(Checksum::Crc32.compute(b"123456789") as u32, 0xCBF4_3926);
    assert_eq!(Checksum::Crc32c.compute(b"123456789") as u32, 0xE306_9283);
}

/// Writes a recording of 60 messages of 100 bytes. The frames of the first `plain` messages have the session id
/// `session_id`, and the other frames have the checksum.
fn mixed(plain: usize, session_id: i32, checksum: Checksum) -> (MemoryStorage, i64) {
    let storage = MemoryStorage::new();
    let mut publisher = Publisher::new(0).of_session(session_id);
    let stream = recorded_stream(0).any_session();
    let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    for number in 0..60 {
        if number == plain {
            session = session.with_checksum(Some(checksum));
        }
        let message = payload(100 + number);
        for block in publisher.offer(&message) {
            session.append(&block, |_| ()).unwrap();
            session.publish().unwrap();
        }
    }
    let position = session.recorded_position();
    drop(session);
    (storage, position)
}

fn verified(storage: &MemoryStorage, from: i64, end: i64) -> Result<usize, (i64, String)> {
    let stream = recorded_stream(0).any_session();
    let mut reader = RecordingReader::new(storage, stream, from, end)
        .unwrap()
        .verifying();
    let mut count = 0;
    loop {
        match reader.next_frame() {
            Ok(Some(_)) => count += 1,
            Ok(None) => return Ok(count),
            Err(error) => return Err((reader.position(), error.to_string())),
        }
    }
}

/// Returns the positions of all frames.
fn positions(storage: &MemoryStorage, end: i64) -> Vec<i64> {
    let stream = recorded_stream(0).any_session();
    let mut reader = RecordingReader::new(storage, stream, 0, end).unwrap();
    let mut positions = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        positions.push(frame.position());
    }
    positions
}

#[test]
fn a_verifying_reader_accepts_session_ids_and_checksums_of_both_kinds_07_194() {
    for checksum in CHECKSUMS {
        for session_id in [SESSION_ID, 99] {
            for plain in [0, 1, 2, 30, 60] {
                // Without an index, one frame of an unknown session before checksums looks like a damaged frame.
                if (plain, session_id) == (1, 99) {
                    continue;
                }
                let (storage, end) = mixed(plain, session_id, checksum);
                assert_eq!(
                    verified(&storage, 0, end),
                    Ok(60),
                    "{plain} of {session_id}"
                );
            }
        }
    }
}

/// Each range may begin at any frame, also at the damaged frame or at the frame after it.
#[test]
fn each_changed_byte_of_a_frame_with_a_checksum_is_an_error_07_194() {
    for checksum in CHECKSUMS {
        let (storage, end) = mixed(0, SESSION_ID, checksum);
        let positions = positions(&storage, end);
        for number in [0, 1, 30, 58] {
            let damaged = positions[number];
            let at = damaged as u64 + 32 + 77;
            assert!(storage.flip_bit("3-0.rec", at, 2));
            for from in [0, damaged] {
                let (position, text) = verified(&storage, from, end).unwrap_err();
                assert_eq!(position, damaged);
                assert!(text.contains(&checksum.to_string()), "{text}");
                assert!(text.contains("3-0.rec"), "{text}");
            }
            assert_eq!(
                verified(&storage, positions[number + 1], end),
                Ok(59 - number)
            );
            assert!(storage.flip_bit("3-0.rec", at, 2));
        }
    }
}

#[test]
fn a_session_id_after_a_checksum_in_the_same_segment_is_an_error_07_194() {
    let (storage, end) = mixed(0, SESSION_ID, Checksum::Crc32c);
    let fourth = positions(&storage, end)[4];
    let mut bytes = storage.bytes("3-0.rec").unwrap();
    bytes[fourth as usize + 12..][..4].copy_from_slice(&SESSION_ID.to_le_bytes());
    storage.put("3-0.rec", &bytes);
    let (position, text) = verified(&storage, 0, end).unwrap_err();
    assert_eq!(position, fourth);
    assert!(
        text.contains("session id among frames with checksums"),
        "{text}"
    );
}

/// Several sessions have extended the recording, each with one message. The catalog has only the last session id.
#[test]
fn session_ids_that_are_not_in_the_catalog_are_accepted_07_194() {
    let storage = MemoryStorage::new();
    let stream = recorded_stream(0).any_session();
    let mut session = RecorderSession::create(&storage, stream, SyncLevel::None).unwrap();
    let mut publisher = Publisher::new(0);
    for session_id in 1000..1040 {
        publisher = publisher.of_session(session_id);
        for block in publisher.offer(&payload(50)) {
            session.append(&block, |_| ()).unwrap();
            session.publish().unwrap();
        }
    }
    let end = session.recorded_position();
    assert_eq!(verified(&storage, 0, end), Ok(40));
}

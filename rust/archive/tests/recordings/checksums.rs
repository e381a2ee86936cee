//! Checksums of frames: written during recording, verified during reading.

use crate::stream::*;
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

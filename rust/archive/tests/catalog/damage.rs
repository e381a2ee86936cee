//! Damaged catalogs are refused. The error has the name of the field, its offset and its value.

use aeron_archive::catalog::{Catalog, RecordingDescriptor, RecordingState};
use aeron_archive::memory_storage::MemoryStorage;

use crate::catalog::common::{CATALOG, TERM_LENGTH, empty, open, recording};

/// Returns a catalog of two recordings. The bytes of the file at `offset` are replaced by `bytes`.
fn with(offset: usize, bytes: &[u8]) -> MemoryStorage {
    let (storage, mut catalog) = empty();
    catalog.add(recording(1)).unwrap();
    catalog.add(recording(2)).unwrap();
    let mut file = storage.bytes(CATALOG).unwrap();
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    storage.put(CATALOG, &file);
    storage
}

fn refusal(storage: &MemoryStorage) -> String {
    let refusal = Catalog::open(storage, 0).expect_err("the catalog must be refused");
    refusal.to_string()
}

/// 08-17, 08-27, 07-67
#[test]
fn another_major_version_is_refused() {
    let refusal = refusal(&with(0, &[0, 0, 2, 0]));
    assert_eq!(
        refusal,
        "incompatible catalog file version 2.0.0, archive software is 3.1.0"
    );
    let minor = with(0, &[7, 9, 3, 0]);
    assert_eq!(
        open(&minor).entries().len(),
        2,
        "another minor version is accepted"
    );
}

/// 08-17
#[test]
fn a_next_id_that_an_entry_already_has_is_refused_for_writing() {
    let storage = with(8, &1i64.to_le_bytes());
    assert_eq!(
        refusal(&storage),
        "archive.catalog is damaged: next recording id 1 is not above the last one, 1"
    );
    assert!(refusal(&with(8, &(-7i64).to_le_bytes())).contains("id -7"));
    let reader = Catalog::open_read_only(&storage).unwrap();
    assert_eq!(reader.entries().len(), 2);
}

/// 08-17
#[test]
fn a_next_id_of_zero_is_computed_from_the_entries() {
    assert_eq!(open(&with(8, &[0; 8])).next_recording_id(), 2);
}

/// 08-17, 08-27
#[test]
fn the_error_of_a_damaged_field_has_its_name_offset_and_value() {
    let i32_of = i32::to_le_bytes;
    // The file has two entries of 192 bytes, which begin at 32 and 224.
    let cases: [(usize, &[u8], &str); 12] = [
        (4, &i32_of(31), "length at offset 4 is 31, expected 32"),
        (16, &i32_of(0), "alignment at offset 16 is 0, expected 64"),
        (
            32,
            &i32_of(161),
            "length at offset 32 is 161, expected a multiple of 64",
        ),
        (32, &i32_of(i32::MAX), "length at offset 32 is 2147483647"),
        (
            32,
            &i32_of(0x7FFF_FFE0),
            "length at offset 32 is 2147483616, expected at most 1 MiB",
        ),
        (
            224,
            &i32_of(65_536 - 32),
            "length at offset 224 is 65504, expected an entry that ends within",
        ),
        (
            32,
            &i32_of(32),
            "length at offset 64 is 32, expected at least 92",
        ),
        (
            36,
            &i32_of(3),
            "state at offset 36 is 3, expected 0, 1 or 2",
        ),
        (
            272,
            &[0; 8],
            "recordingId at offset 272 is 0, expected an id greater",
        ),
        (
            80,
            &[0xFF; 8],
            "recordingId at offset 80 is -1, expected an id greater",
        ),
        (
            144,
            &i32_of(-1),
            "strippedChannel at offset 144 is 4294967295,",
        ),
        (
            148,
            &[0xC3],
            "strippedChannel at offset 148 is 195, expected UTF-8 text",
        ),
    ];
    for (offset, bytes, expected) in cases {
        let refusal = refusal(&with(offset, bytes));
        let expected = format!("archive.catalog is damaged: {expected}");
        assert!(refusal.starts_with(&expected), "{refusal}\nnot {expected}");
    }
}

/// 08-17
#[test]
fn a_recording_with_impossible_values_is_not_served_and_the_others_are() {
    let i32_of = i32::to_le_bytes;
    let cases: [(usize, &[u8], &str); 4] = [
        (104, &[1], "startPosition at offset 104 is 1,"),
        (
            112,
            &[8, 0, 0, 0, 0, 0, 0, 0],
            "stopPosition at offset 112 is 8,",
        ),
        (124, &i32_of(3), "segmentFileLength at offset 124 is 3,"),
        (
            128,
            &i32_of(i32::MIN),
            "termBufferLength at offset 128 is -2147483648,",
        ),
    ];
    for (offset, bytes, expected) in cases {
        let storage = with(offset, bytes);
        let before = storage.bytes(CATALOG);
        let mut catalog = open(&storage);
        let served: Vec<_> = catalog.recordings().map(|it| it.recording_id).collect();
        assert_eq!(served, [1], "{expected}");
        assert!(catalog.recording(0).is_err() && catalog.stop(0, 64, 7).is_err());
        let entry = catalog.entry(0).unwrap();
        assert!(!entry.is_served() && entry.state == RecordingState::Valid);
        let fault = entry.fault().unwrap();
        assert!(fault.starts_with(expected), "{fault}\nnot {expected}");
        assert!(
            storage.bytes(CATALOG) == before,
            "opening changes nothing: {expected}"
        );
    }
}

/// 08-17
#[test]
fn the_highest_possible_recording_id_is_not_used() {
    let storage = with(8, &i64::MAX.to_le_bytes());
    let mut catalog = open(&storage);
    assert_eq!(
        catalog.add(recording(3)).unwrap_err().to_string(),
        "archive.catalog is damaged: nextRecordingId at offset 8 is 9223372036854775807, expected an id below 9223372036854775807"
    );
    assert_eq!(open(&storage).entries().len(), 2);
}

/// The test changes the segment length and the term length of the deleted recording.
#[test]
fn the_values_of_a_deleted_recording_are_not_checked() {
    let (storage, mut catalog) = empty();
    let id = catalog.add(recording(1)).unwrap();
    catalog.delete(id, -1).unwrap();
    let mut file = storage.bytes(CATALOG).unwrap();
    file[124..132].fill(0xFF);
    storage.put(CATALOG, &file);
    assert_eq!(open(&storage).entry(id).unwrap().descriptor.term_length, -1);
}

#[test]
fn a_position_after_the_last_term_of_the_stream_is_refused() {
    let last = i64::from(TERM_LENGTH) << 31;
    for (position, fine) in [(last, true), (last + 32, false), (i64::MAX - 31, false)] {
        let start = RecordingDescriptor {
            start_position: position,
            ..recording(1)
        };
        assert_eq!(start.check().is_ok(), fine, "start {position}");
        let stop = RecordingDescriptor {
            stop_position: position,
            ..recording(1)
        };
        assert_eq!(stop.check().is_ok(), fine, "stop {position}");
    }
}

/// 08-27, 08-35
#[test]
fn a_catalog_that_is_shortened_to_any_length_is_refused_or_has_fewer_entries() {
    let whole = with(0, &[]).bytes(CATALOG).unwrap();
    for length in 0..512 {
        let storage = MemoryStorage::new();
        storage.put(CATALOG, &whole[..length]);
        let found = Catalog::open_read_only(&storage)
            .map(|catalog| catalog.entries().len())
            .map_err(|refusal| refusal.to_string());
        match length {
            0..32 => assert!(
                found.unwrap_err().contains("is not within 32 to"),
                "{length}"
            ),
            32..64 => assert_eq!(found, Ok(0), "{length}"),
            224..256 => assert_eq!(found, Ok(1), "{length}"),
            416.. => assert_eq!(found, Ok(2), "{length}"),
            _ => assert!(
                found.unwrap_err().contains("ends within the file"),
                "{length}"
            ),
        }
    }
}

/// 08-35
#[test]
fn a_very_long_sparse_file_is_refused_without_using_memory() {
    let storage = with(0, &[]);
    let file = aeron_archive::storage::Storage::open(
        &storage,
        CATALOG,
        aeron_archive::storage::Access::Write,
    )
    .unwrap();
    aeron_archive::storage::StorageFile::set_length(&file, 1 << 40).unwrap();
    assert_eq!(
        refusal(&storage),
        "catalog capacity 1099511627776 is not within 32 to 2147483647 bytes"
    );
}

#[test]
fn the_error_of_a_file_that_cannot_be_read_has_its_name() {
    let storage = with(0, &[]);
    storage.fail_reads(Some(std::io::ErrorKind::PermissionDenied));
    assert_eq!(
        refusal(&storage),
        "archive.catalog: cannot read it: permission denied"
    );
    let nothing = MemoryStorage::new();
    assert_eq!(
        refusal(&nothing),
        "archive.catalog: cannot open it: entity not found"
    );
}

/// 08-27, 08-35
#[test]
fn a_catalog_with_a_flipped_bit_is_refused_or_read_without_a_panic() {
    let whole = with(0, &[]).bytes(CATALOG).unwrap();
    for bit in 0..448 * 8 {
        let storage = MemoryStorage::new();
        storage.put(CATALOG, &whole);
        assert!(storage.flip_bit(CATALOG, bit / 8, (bit % 8) as u32));
        if let Ok(mut catalog) = Catalog::open(&storage, 0) {
            for recording in catalog.recordings() {
                assert_eq!(recording.check(), Ok(()));
                let base = recording.first_segment_base();
                assert!(base <= recording.start_position);
            }
            let next = catalog.next_recording_id();
            assert_eq!(catalog.add(recording(3)).unwrap(), next);
        }
    }
}

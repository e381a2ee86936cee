//! Tests of the CnC file: layout, valid lengths, opening, and the state of the driver.

use aeron_memory::cnc::{
    CNC_VERSION, Cnc, CncError, CncFile, CncLengths, DriverIdentity, DriverState,
    InvalidCncLengths, Reader, SemanticVersion,
};
use aeron_memory::mapped::MappedFile;
use aeron_memory::{SharedBuffer, Words};

const IDENTITY: DriverIdentity = DriverIdentity {
    client_liveness_timeout_ns: 10_000_000_000,
    start_timestamp_ms: 1_700_000_000_000,
    pid: 4242,
};

fn cnc() -> (SharedBuffer, Cnc<SharedBuffer>) {
    let lengths = CncLengths::default();
    let words = SharedBuffer::heap(lengths.file_length().unwrap());
    (
        words.clone(),
        Cnc::format(words, &lengths, &IDENTITY).unwrap(),
    )
}

/// 01-9
#[test]
fn the_header_has_its_fields_at_their_offsets_and_zeros_after_them() {
    let (words, cnc) = cnc();
    cnc.publish();
    let i32s = [0, 4, 8, 12, 16, 20, 48].map(|offset| words.load_i32_relaxed(offset));
    assert_eq!(
        i32s,
        [
            512, 1_049_344, 1_048_704, 33_554_432, 8_388_608, 4_194_304, 4096
        ]
    );
    let i64s = [24, 32, 40].map(|offset| words.load_i64_relaxed(offset));
    assert_eq!(i64s, [10_000_000_000, 1_700_000_000_000, 4242]);
    let mut rest = [1; 76];
    words.copy_out(52, &mut rest);
    assert_eq!(rest, [0; 76]);
}

/// 01-10
#[test]
fn the_default_file_has_the_known_length_and_its_sections_follow_each_other() {
    let lengths = CncLengths::default();
    assert_eq!(lengths.file_length(), Ok(48_238_592));
    let huge_pages = CncLengths {
        file_page_size: 2 << 20,
        ..lengths
    };
    assert_eq!(huge_pages.file_length(), Ok(50_331_648));
    let (words, cnc) = cnc();
    let start = words.as_ptr() as usize;
    let sections = [
        cnc.to_driver().words(),
        cnc.to_clients(),
        cnc.counters_metadata(),
        cnc.counters_values(),
        cnc.error_log(),
    ]
    .map(|section| section.as_ptr() as usize - start);
    assert_eq!(
        sections,
        [128, 1_049_472, 2_098_176, 35_652_608, 44_041_216]
    );
    assert_eq!(cnc.error_log().len(), 4_194_304);
    assert_eq!(cnc.counters().max_counter_id(), 65_535);
}

/// 01-11, 01-15
#[test]
fn a_file_opens_only_after_it_was_published() {
    let (words, cnc) = cnc();
    let early = Cnc::open(words.clone(), Reader::Client).unwrap_err();
    assert_eq!(early, CncError::NotInitialised);
    assert!(early.is_transient());
    assert!(early.to_string().contains("created but not initialised"));
    cnc.publish();
    let opened = Cnc::open(words, Reader::Client).unwrap();
    assert_eq!((opened.version(), opened.version().0), (CNC_VERSION, 512));
    assert_eq!(
        (opened.identity(), opened.file_page_size()),
        (IDENTITY, 4096)
    );
}

/// 01-13
#[test]
fn lengths_out_of_range_are_refused_unless_they_were_clamped() {
    let good = CncLengths::default();
    let refused = [
        CncLengths {
            to_driver: good.to_driver - 1,
            ..good
        },
        CncLengths {
            to_driver: 1 << 31,
            ..good
        },
        CncLengths {
            to_driver: 1_535_232 + 768,
            ..good
        },
        CncLengths {
            to_clients: good.to_clients - 1,
            ..good
        },
        CncLengths {
            to_clients: good.to_clients + 8,
            ..good
        },
        CncLengths {
            counters_values: (1 << 20) - 128,
            ..good
        },
        CncLengths {
            counters_values: (500 << 20) + 128,
            ..good
        },
        CncLengths {
            counters_values: (8 << 20) + 8,
            ..good
        },
        CncLengths {
            error_log: (4 << 20) - 1,
            ..good
        },
        CncLengths {
            error_log: usize::MAX,
            ..good
        },
        CncLengths {
            file_page_size: 2048,
            ..good
        },
        CncLengths {
            file_page_size: 2 << 30,
            ..good
        },
        CncLengths {
            file_page_size: 4096 * 3,
            ..good
        },
        CncLengths {
            error_log: i32::MAX as usize,
            ..good
        },
    ];
    for lengths in refused {
        assert!(lengths.file_length().is_err(), "{lengths:?}");
    }
    let not_a_power = CncLengths {
        to_driver: 1_535_232 + 768,
        ..good
    }
    .file_length();
    assert!(
        not_a_power
            .unwrap_err()
            .to_string()
            .starts_with("Invalid capacity: 1535232")
    );
    let too_large = CncLengths {
        counters_values: 500 << 20,
        ..good
    }
    .file_length();
    assert!(matches!(too_large, Err(InvalidCncLengths::FileLength(_))));

    let tiny = CncLengths {
        to_driver: 0,
        to_clients: 5,
        counters_values: 0,
        error_log: 0,
        file_page_size: 4096,
    };
    let clamped = CncLengths {
        counters_values: 1 << 20,
        ..good
    };
    assert_eq!(tiny.clamped(), clamped);
    assert_eq!(tiny.clamped().file_length(), Ok(11_538_432));
}

/// 01-14: a file of at most 128 bytes is not populated yet, so opening it again later may succeed.
#[test]
fn a_file_that_is_not_longer_than_a_header_is_a_temporary_error() {
    for length in [0, 1, 127, 128] {
        let error = Cnc::open(SharedBuffer::heap(length), Reader::Client).unwrap_err();
        assert_eq!(error, CncError::NotPopulated { length });
        assert!(error.is_transient());
    }
    assert_eq!(
        Cnc::open(SharedBuffer::heap(129), Reader::Client).unwrap_err(),
        CncError::NotInitialised
    );
}

/// 01-16
#[test]
fn another_major_version_and_for_clients_an_older_minor_version_are_incompatible() {
    let (words, cnc) = cnc();
    cnc.publish();
    let open = |version: SemanticVersion, reader| {
        words.store_i32_relaxed(0, version.0);
        Cnc::open(words.clone(), reader).err()
    };
    for version in [
        SemanticVersion::new(1, 2, 0),
        SemanticVersion(-1),
        SemanticVersion(0x0100_0200),
    ] {
        for reader in [Reader::Client, Reader::Tool] {
            let error = open(version, reader).unwrap();
            assert_eq!(error, CncError::IncompatibleVersion { file: version });
            assert!(!error.is_transient());
        }
    }
    let old = SemanticVersion::new(0, 1, 9);
    assert_eq!(
        open(old, Reader::Client).unwrap().to_string(),
        "CnC version not compatible: app=0.2.0 file=0.1.9"
    );
    assert_eq!(open(old, Reader::Tool), None);
    assert_eq!(open(SemanticVersion::new(0, 3, 0), Reader::Client), None);
}

/// 01-17
#[test]
fn the_heartbeat_shows_whether_the_driver_is_alive() {
    let (_, cnc) = cnc();
    let now_ms = 1_700_000_000_000;
    let state = |heartbeat_ms| {
        cnc.to_driver().set_consumer_heartbeat_ms(heartbeat_ms);
        (
            cnc.driver_state(now_ms, 10_000),
            cnc.is_active(now_ms, 10_000),
        )
    };
    assert_eq!(state(0), (DriverState::NoHeartbeat, false));
    assert_eq!(state(-1), (DriverState::Inactive, false));
    assert_eq!(state(now_ms - 10_001), (DriverState::Inactive, false));
    assert_eq!(state(now_ms - 10_000), (DriverState::Active, true));
    assert_eq!(state(now_ms + 60_000), (DriverState::Active, true));
    assert_eq!(state(i64::MIN), (DriverState::Inactive, false));
    assert_eq!(state(i64::MAX), (DriverState::Active, true));
}

/// 01-7: a driver that has closed is inactive, even for a client with an infinite timeout.
#[test]
fn a_closed_driver_is_not_alive_even_with_an_infinite_timeout() {
    let (_, cnc) = cnc();
    cnc.to_driver().set_consumer_heartbeat_ms(-1);
    assert_eq!(cnc.driver_state(1, i64::MAX), DriverState::Inactive);
    assert!(!cnc.is_active(1, i64::MAX));
}

/// 01-18: a file that is shorter than its header requires is still being written, so opening it again later may
/// succeed.
#[test]
fn a_file_shorter_than_the_lengths_in_its_header_is_a_temporary_error() {
    let (words, cnc) = cnc();
    cnc.publish();
    let required = 48_235_520;
    let error = Cnc::open(words.slice(0, required - 1), Reader::Client).unwrap_err();
    assert_eq!(
        error,
        CncError::Truncated {
            length: required - 1,
            required
        }
    );
    assert!(error.is_transient());
    assert!(Cnc::open(words.slice(0, required), Reader::Client).is_ok());
}

/// Impossible section lengths are not a temporary error.
#[test]
fn damaged_section_lengths_are_a_permanent_error() {
    for (offset, length) in [
        (4, 1_049_344 + 8),
        (4, -1),
        (8, 0),
        (12, 8),
        (16, 12),
        (20, i32::MIN),
    ] {
        let (words, cnc) = cnc();
        cnc.publish();
        words.store_i32_relaxed(offset, length);
        let error = Cnc::open(words, Reader::Client).unwrap_err();
        assert!(
            error.to_string().starts_with("CnC file is damaged"),
            "{offset} {length}: {error}"
        );
        assert!(!error.is_transient());
    }
}

/// 01-8 (the CnC)
#[cfg(target_os = "linux")]
#[test]
fn a_created_file_has_all_blocks_and_can_be_opened() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("cnc.dat");
    let lengths = CncLengths {
        counters_values: 1 << 20,
        ..Default::default()
    };
    assert_eq!(
        CncFile::map(&path, Reader::Tool).unwrap_err().kind(),
        std::io::ErrorKind::NotFound
    );
    let created = CncFile::create(&path, &lengths, &IDENTITY).unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!(metadata.len() as usize, lengths.file_length().unwrap());
    assert_eq!(
        metadata.blocks() * 512,
        metadata.len(),
        "all blocks of the file must be allocated"
    );
    assert_eq!(
        CncFile::map(&path, Reader::Tool).unwrap().unwrap_err(),
        CncError::NotInitialised
    );
    created.publish();
    created.to_driver().set_consumer_heartbeat_ms(5);
    let opened = CncFile::map(&path, Reader::Tool).unwrap().unwrap();
    assert_eq!(
        (
            opened.to_driver().consumer_heartbeat_ms(),
            opened.file_length()
        ),
        (5, created.file_length())
    );
    let again = CncFile::create(&path, &lengths, &IDENTITY).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    let invalid = CncFile::create(
        &path,
        &CncLengths {
            error_log: 0,
            ..lengths
        },
        &IDENTITY,
    )
    .unwrap_err();
    assert_eq!(invalid.kind(), std::io::ErrorKind::InvalidInput);
}

/// 01-19: the path leads to the file of the new driver; the old mapping does not change.
#[test]
fn a_file_replaced_by_a_new_driver_is_found_by_mapping_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cnc.dat");
    let lengths = CncLengths {
        counters_values: 1 << 20,
        ..Default::default()
    };
    let create = |pid| {
        let cnc = CncFile::create(&path, &lengths, &DriverIdentity { pid, ..IDENTITY }).unwrap();
        cnc.publish();
        cnc
    };
    let old = create(1);
    let seen = CncFile::map(&path, Reader::Client).unwrap().unwrap();
    old.to_driver().set_consumer_heartbeat_ms(-1);
    std::fs::remove_file(&path).unwrap();
    create(2).to_driver().set_consumer_heartbeat_ms(100);
    assert_eq!(seen.driver_state(100, 10), DriverState::Inactive);
    let new = CncFile::map(&path, Reader::Client).unwrap().unwrap();
    assert_eq!(
        (new.identity().pid, new.driver_state(100, 10)),
        (2, DriverState::Active)
    );
}

#[test]
fn an_empty_file_is_not_populated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cnc.dat");
    std::fs::write(&path, b"").unwrap();
    assert!(MappedFile::open(&path, false).is_err());
    let error = CncFile::map(&path, Reader::Client).unwrap().unwrap_err();
    assert_eq!(error, CncError::NotPopulated { length: 0 });
}

//! `MemoryStorage` behaves like a directory of the file system, until a test sets a fault.

use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use aeron_archive::memory_storage::{MemoryStorage, PAGE_LENGTH, StorageFault, Survival};
use aeron_archive::storage::{Access, Directory, Storage, StorageFile, SyncLevel};
use proptest::prelude::*;

const PAGE: u64 = PAGE_LENGTH as u64;

#[derive(Clone, Debug)]
enum Step {
    Create {
        name: u8,
        length: u64,
    },
    Remove {
        name: u8,
    },
    Rename {
        from: u8,
        to: u8,
    },
    SetLength {
        name: u8,
        length: u64,
    },
    Write {
        name: u8,
        offset: u64,
        length: usize,
        byte: u8,
    },
    Read {
        name: u8,
        offset: u64,
        length: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..3u8;
    let at = 0..3 * PAGE;
    let length = 0..2 * PAGE_LENGTH;
    let step = prop_oneof![
        (name.clone(), at.clone()).prop_map(|(name, length)| Step::Create { name, length }),
        name.clone().prop_map(|name| Step::Remove { name }),
        (name.clone(), name.clone()).prop_map(|(from, to)| Step::Rename { from, to }),
        (name.clone(), at.clone()).prop_map(|(name, length)| Step::SetLength { name, length }),
        (name.clone(), at.clone(), length.clone(), 1..9u8).prop_map(
            |(name, offset, length, byte)| Step::Write {
                name,
                offset,
                length,
                byte
            }
        ),
        (name, at, length).prop_map(|(name, offset, length)| Step::Read {
            name,
            offset,
            length
        }),
    ];
    prop::collection::vec(step, 1..60)
}

/// Runs a step. Returns the bytes that were read, the number of bytes that were written, or the kind of the error.
fn run<S: Storage>(storage: &S, step: &Step) -> Result<Vec<u8>, ErrorKind> {
    let done = |()| Vec::new();
    let name = |number: &u8| number.to_string();
    let answer = match step {
        Step::Create { name: n, length } => storage.create(&name(n), *length).map(|_| ()).map(done),
        Step::Remove { name: n } => storage.remove(&name(n)).map(done),
        Step::Rename { from, to } if from == to => Ok(Vec::new()),
        Step::Rename { from, to } => storage.rename(&name(from), &name(to)).map(done),
        Step::SetLength { name: n, length } => storage
            .open(&name(n), Access::Write)
            .and_then(|file| file.set_length(*length))
            .map(done),
        Step::Write {
            name: n,
            offset,
            length,
            byte,
        } => storage
            .open(&name(n), Access::Write)
            .and_then(|file| file.write_at(&vec![*byte; *length], *offset))
            .map(|count| count.to_le_bytes().to_vec()),
        Step::Read {
            name: n,
            offset,
            length,
        } => {
            let mut bytes = vec![0xEE; *length];
            storage
                .open(&name(n), Access::Read)
                .and_then(|file| file.read_at(&mut bytes, *offset))
                .map(|count| bytes[..count].to_vec())
        }
    };
    answer.map_err(|error| error.kind())
}

fn whole<S: Storage>(storage: &S, name: &str) -> Vec<u8> {
    let file = storage.open(name, Access::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn without_faults_memory_storage_behaves_like_a_directory(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let (real, memory) = (Directory::new(dir.path()), MemoryStorage::new());
        for step in &steps {
            prop_assert_eq!(run(&memory, step), run(&real, step), "{:?}", step);
        }
        let mut names = real.names().unwrap();
        names.sort_unstable();
        prop_assert_eq!(&memory.names().unwrap(), &names);
        for name in names {
            prop_assert_eq!(whole(&memory, &name), whole(&real, &name));
            prop_assert_eq!(memory.bytes(&name).unwrap(), whole(&real, &name));
        }
    }
}

#[test]
fn a_killed_write_ends_at_the_end_of_a_page_and_all_calls_fail_until_a_restart() {
    for (progress, kept) in [(0, 0), (1, 96), (2, 96 + PAGE_LENGTH), (9, 3 * PAGE_LENGTH)] {
        let storage = MemoryStorage::new();
        let file = storage.create("f", 0).unwrap();
        storage.fail_at(1, StorageFault::Kill { progress });
        let bytes = vec![7; 3 * PAGE_LENGTH];
        assert!(file.write_all_at(&bytes, PAGE - 96).is_err());
        assert!(storage.is_killed());
        assert!(file.length().is_err() && storage.names().is_err());
        assert!(storage.open("f", Access::Read).is_err());

        storage.restart();
        assert!(
            file.length().is_err(),
            "a file that the killed process had opened stays unusable"
        );
        let after = whole(&storage, "f");
        assert_eq!(after.iter().filter(|&&byte| byte == 7).count(), kept);
        assert_eq!(
            after.len(),
            if kept == 0 {
                0
            } else {
                PAGE_LENGTH - 96 + kept
            }
        );
        assert_eq!(storage.steps(), 2);
    }
}

#[test]
fn a_kill_leaves_a_rename_or_a_creation_undone_partly_done_or_done() {
    for progress in 0..3 {
        let storage = MemoryStorage::new();
        storage.put("old", b"old");
        storage.fail_at(0, StorageFault::Kill { progress });
        assert!(storage.rename("old", "new").is_err());
        storage.restart();
        assert_eq!(storage.bytes("new").is_some(), progress > 0);
        assert_eq!(storage.bytes("old").is_some(), progress == 0);

        storage.fail_at(1, StorageFault::Kill { progress });
        assert!(storage.create("file", 100).is_err());
        storage.restart();
        let expected = [None, Some(0), Some(100)][progress];
        assert_eq!(storage.bytes("file").map(|bytes| bytes.len()), expected);
    }
}

#[test]
fn a_write_to_a_full_disk_is_shortened_and_removing_a_file_frees_space() {
    let storage = MemoryStorage::new();
    storage.set_capacity(3 * PAGE);
    assert_eq!(storage.free_bytes().unwrap(), 3 * PAGE);
    storage.put("other", &[1; PAGE_LENGTH]);
    let file = storage.create("f", 1 << 40).unwrap();
    assert_eq!(
        storage.free_bytes().unwrap(),
        2 * PAGE,
        "a new file is sparse, so its length uses no space"
    );

    let bytes = vec![2; 4 * PAGE_LENGTH];
    assert_eq!(file.write_at(&bytes, 10).unwrap(), 2 * PAGE_LENGTH - 10);
    let full = file.write_at(&bytes, 2 * PAGE).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    assert_eq!(
        file.write_at(&bytes[..9], 5).unwrap(),
        9,
        "a page that is already allocated can be written on a full disk"
    );

    storage.remove("other").unwrap();
    assert_eq!(file.write_at(&bytes, 2 * PAGE).unwrap(), PAGE_LENGTH);
    file.set_length(0).unwrap();
    assert_eq!(storage.free_bytes().unwrap(), 3 * PAGE);
}

#[test]
fn a_short_write_or_an_error_occurs_once_at_the_given_step() {
    let storage = MemoryStorage::new();
    let file = storage.create("f", 0).unwrap();
    storage.fail_at(1, StorageFault::Short(3));
    storage.fail_at(2, StorageFault::Error(ErrorKind::Interrupted));
    storage.fail_at(4, StorageFault::Short(0));
    file.write_all_at(b"whole", 0)
        .expect("a short write and an interruption are retried");
    assert_eq!(storage.bytes("f").unwrap(), b"whole");
    let nothing = file.write_all_at(b"x", 0).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::WriteZero);
}

#[test]
fn flip_bit_inverts_one_bit_and_fail_reads_makes_reads_fail() {
    let storage = MemoryStorage::new();
    storage.put("f", &[0b1000]);
    assert!(storage.flip_bit("f", 0, 3) && storage.flip_bit("f", 0, 0));
    assert_eq!(storage.bytes("f").unwrap(), [1]);
    assert!(!storage.flip_bit("f", 1, 0) && !storage.flip_bit("none", 0, 0));

    let file = storage.open("f", Access::Read).unwrap();
    storage.fail_reads(Some(ErrorKind::TimedOut));
    let failure = file.read_at(&mut [0], 0).unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::TimedOut);
    storage.fail_reads(None);
    assert_eq!(file.read_at(&mut [0], 0).unwrap(), 1);
    let refused = file.write_at(&[1], 0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn the_modification_time_of_a_file_is_the_time_of_its_last_write() {
    let storage = MemoryStorage::new();
    let file = storage.create("f", 10).unwrap();
    storage.set_time(Duration::from_millis(1234));
    file.write_all_at(b"x", 0).unwrap();
    storage.set_time(Duration::from_millis(9999));
    let expected = SystemTime::UNIX_EPOCH + Duration::from_millis(1234);
    assert_eq!(file.modified().unwrap(), expected);
}

#[test]
fn a_loss_of_power_undoes_only_unsynced_changes() {
    let storage = MemoryStorage::new();
    let file = storage.create("f", 2 * PAGE).unwrap();
    file.write_all_at(b"old", 0).unwrap();
    file.sync(SyncLevel::Data).unwrap();
    storage.sync().unwrap();
    file.write_all_at(b"new", 0).unwrap();
    file.write_all_at(b"new", PAGE).unwrap();
    file.write_all_at(b"new", 5 * PAGE).unwrap();
    storage.create("g", 0).unwrap();

    storage.lose_power(|| false);
    assert_eq!(storage.names().unwrap(), ["f"]);
    let left = whole(&storage, "f");
    assert_eq!((left.len() as u64, &left[..3]), (2 * PAGE, &b"old"[..]));
    assert!(left[3..].iter().all(|byte| *byte == 0));
    assert!(
        file.length().is_err(),
        "a file that the killed process had opened stays unusable"
    );
}

#[test]
fn unsynced_pages_survive_independently_and_directory_changes_survive_in_order() {
    let storage = MemoryStorage::new();
    let file = storage.create("f", 2 * PAGE).unwrap();
    storage.sync().unwrap();
    file.sync(SyncLevel::Data).unwrap();
    file.write_all_at(&[1; 2 * PAGE_LENGTH], 0).unwrap();
    for name in ["g", "h"] {
        storage.create(name, 0).unwrap();
    }
    storage.rename("f", "i").unwrap();

    // Of the changes of the directory, only the first survives. Of the pages of the file, only the second survives.
    let mut survives = [true, false, false, true].into_iter();
    storage.lose_power(|| survives.next().unwrap_or(false));
    assert_eq!(storage.names().unwrap(), ["f", "g"]);
    let left = whole(&storage, "f");
    assert_eq!((left[0], left[PAGE_LENGTH]), (0, 1));
    assert_eq!(storage.free_bytes().unwrap(), {
        let unlimited = MemoryStorage::new();
        unlimited.put("page", &[1]);
        unlimited.free_bytes().unwrap()
    });
}

#[test]
fn an_unsynced_truncation_and_removal_are_undone_by_a_loss_of_power() {
    let storage = MemoryStorage::new();
    storage.put("f", &[7; 3 * PAGE_LENGTH]);
    let file = storage.open("f", Access::Write).unwrap();
    file.set_length(10).unwrap();
    storage.remove("f").unwrap();
    storage.lose_power(|| false);
    assert_eq!(whole(&storage, "f"), [7; 3 * PAGE_LENGTH]);
}

#[test]
fn only_some_sectors_of_an_unsynced_page_may_survive_a_loss_of_power() {
    let storage = MemoryStorage::new();
    storage.put("file", &[1; 2 * PAGE_LENGTH]);
    let file = storage.open("file", Access::Write).unwrap();
    file.write_all_at(&[2; 2 * PAGE_LENGTH], 0).unwrap();
    let mut pages = [Survival::Sectors(0b0000_0101), Survival::Kept].into_iter();
    storage.lose_power_in_sectors(|| pages.next().unwrap_or(Survival::Lost));
    let bytes = storage.bytes("file").unwrap();
    let sectors: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
    assert_eq!(
        sectors,
        [2, 1, 2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2],
        "{sectors:?}"
    );
}

#[test]
fn read_exact_at_continues_after_short_reads() {
    let storage = MemoryStorage::new();
    let content: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    storage.put("file", &content);
    storage.shorten_reads(Some(100));
    let file = storage.open("file", Access::Read).unwrap();
    let mut bytes = vec![0; 10_000];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 100);
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, content);
}

//! A mark file of any content, and a file of any content that links to a mark file. Each file is refused or read. In
//! both cases, a new owner can replace the mark file.
#![no_main]

use aeron_archive::mark_file::{self, MarkFile, Owner};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::storage::Storage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let storage = MemoryStorage::new();
    storage.put(mark_file::MARK_FILE, data);
    storage.put(mark_file::LINK_FILE, data);
    let _ = mark_file::read_link(&storage);
    let errors = mark_file::read_errors(&storage);
    if let Ok(state) = mark_file::read(&storage) {
        let state = state.expect("the file is there");
        assert!(state.is_active(i64::MIN) || state.activity_timestamp_ms == -1);
    }

    let owner = Owner::without_server(1, 2, "/dev/shm/aeron".into());
    let mut mark = MarkFile::take(&storage, &owner, 3).expect("nothing is in the way");
    mark.record_error(4, "an error").expect("the log is empty");
    mark.ready(5).expect("the disk has room");
    let state = mark_file::read(&storage)
        .expect("just written")
        .expect("there");
    assert_eq!((state.owner, state.activity_timestamp_ms), (owner, 5));
    let has_errors = errors.is_ok_and(|errors| !errors.is_empty());
    let names = storage.names().expect("listed");
    assert_eq!(names.len(), 1 + usize::from(has_errors), "wrong file count");
    if data.len() > mark_file::HEADER_LENGTH {
        // The replaced file was longer than the header, so it had bytes where the new error log is. They must not be
        // read as errors. For shorter files the log is not read, because reading a whole log takes a long time.
        let found = mark_file::read_errors(&storage).expect("just written");
        assert_eq!(found.len(), 1);
    }
});

//! Decodes a lock file of any content. The decoder refuses the file, or returns a record that survives a round trip.
#![no_main]

use aeron_pipeline::private::LockRecord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    check(data);
    if let Some((body, _)) = data.split_last_chunk::<4>() {
        let mut sealed = body.to_vec();
        sealed.extend(crc32fast::hash(body).to_le_bytes());
        check(&sealed);
    }
});

fn check(bytes: &[u8]) {
    if let Ok(Some(record)) = LockRecord::decode(bytes) {
        let again = LockRecord::decode(&record.encode()).expect("what was read can be written");
        assert_eq!(again, Some(record));
    }
}

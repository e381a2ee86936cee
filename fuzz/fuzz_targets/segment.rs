//! Segment files of any content. Reading them ends with frames or an error. Recovery finds the end of the
//! recording, and a second recovery changes nothing.
#![no_main]

use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::reader::RecordingReader;
use aeron_archive::recovery::{find_end, recover};
use aeron_archive::stream::{RecordedStream, StreamDescription};
use libfuzzer_sys::fuzz_target;

const LENGTH: usize = 64 * 1024;
const ALIGNMENT: i64 = 32;

/// Values from the first bytes of the input, two bytes for each value. The input has positions in units of 32 bytes.
/// `split` is the offset of the bytes of the second segment.
struct Layout {
    start: i64,
    known: i64,
    from: i64,
    to: i64,
    split: usize,
    lacks_end: bool,
}

fuzz_target!(|input: &[u8]| {
    let Some((head, bytes)) = input.split_first_chunk::<12>() else {
        return;
    };
    let layout = Layout::new(head);
    let Ok(stream) = RecordedStream::new(&StreamDescription {
        recording_id: 0,
        start_position: layout.start,
        segment_length: LENGTH as i32,
        term_length: LENGTH as i32,
        initial_term_id: 0,
        session_id: 7,
        stream_id: 1001,
    }) else {
        return;
    };
    let storage = MemoryStorage::new();
    layout.put(&storage, bytes);
    for stream in [stream, stream.any_session()] {
        let _ = read(&storage, stream, layout.from, layout.to);
        let Ok(found) = find_end(&storage, &stream, layout.known) else {
            continue;
        };
        assert!(found.position >= layout.known);
        assert_eq!(
            recover(&storage, &stream, layout.known).expect("found"),
            found
        );
        let again = find_end(&storage, &stream, layout.known).expect("recovered");
        assert_eq!((again.position, again.is_torn), (found.position, false));
        let checked_from = layout.known.max(stream.segment_base(found.position));
        if checked_from < found.position {
            read(&storage, stream, checked_from, found.position).expect("checked");
        }
    }
});

impl Layout {
    fn new(head: &[u8; 12]) -> Self {
        let value = |index: usize| u16::from_le_bytes([head[2 * index], head[2 * index + 1]]);
        let units = |index| i64::from(value(index)) * ALIGNMENT;
        Self {
            start: units(0) % LENGTH as i64,
            known: units(1),
            from: units(2),
            to: units(3),
            split: usize::from(value(4)),
            lacks_end: value(5) != 0,
        }
    }

    /// Creates two segments. The first contains the bytes before the split, from the start position on. The second
    /// contains the bytes after the split.
    fn put(&self, storage: &MemoryStorage, bytes: &[u8]) {
        let (first, second) = bytes.split_at(self.split.min(bytes.len()));
        let mut segment = vec![0; self.start as usize];
        segment.extend(first);
        self.put_segment(storage, "0-0.rec", segment);
        if !second.is_empty() {
            self.put_segment(storage, "0-65536.rec", second.to_vec());
        }
    }

    fn put_segment(&self, storage: &MemoryStorage, name: &str, mut bytes: Vec<u8>) {
        if self.lacks_end {
            bytes.truncate(LENGTH);
        } else {
            bytes.resize(LENGTH, 0);
        }
        storage.put(name, &bytes);
    }
}

fn read(storage: &MemoryStorage, stream: RecordedStream, from: i64, to: i64) -> Result<(), ()> {
    let mut reader = RecordingReader::new(storage, stream, from, to).map_err(|_| ())?;
    let mut position = from;
    while let Some(frame) = reader.next_frame().map_err(|_| ())? {
        assert_eq!(frame.position(), position);
        position = frame.end_position();
        assert!(position <= to && frame.payload().len() < LENGTH);
        let _ = (frame.flags(), frame.reserved_value(), frame.bytes());
    }
    assert_eq!(position, to);
    Ok(())
}

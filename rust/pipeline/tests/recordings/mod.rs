//! Recordings in which a test chooses each frame. The code that writes live recordings writes these recordings too.

use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::storage::Storage;
use aeron_pipeline::partition::{ArchiveLocation, Partition, RecordingPiece};
use aeron_pipeline::private::{ImageDescription, PrivateArchive, RecordingWriter};
use aeron_protocol::frame::{DATA_HEADER_LENGTH, DataHeader, flags};

pub const STREAM_ID: i32 = 1001;
pub const SESSION_ID: i32 = -77;
const INITIAL_TERM_ID: i32 = i32::MAX - 1;
const MTU_LENGTH: usize = 1408;
const MIN_SEGMENT_LENGTH: i32 = 1024 * 1024;

/// A recording to which a test adds frames.
pub struct Recording<S: Storage = MemoryStorage> {
    pub storage: S,
    term_length: i32,
    writer: RecordingWriter<S>,
    /// End of the added frames.
    position: i64,
    /// Start positions of the frames.
    pub frames: Vec<i64>,
    block: Vec<u8>,
    now_us: i64,
}

impl Recording {
    /// Creates an empty recording in memory, from position 0.
    pub fn new(term_length: i32) -> Self {
        Self::within(MemoryStorage::new(), term_length)
    }
}

impl<S: Storage + Clone> Recording<S> {
    /// Creates an empty recording in an empty directory, from position 0.
    pub fn within(storage: S, term_length: i32) -> Self {
        let mut archive = PrivateArchive::open(storage.clone(), &[], u64::MAX, 0)
            .unwrap()
            .0;
        let image = ImageDescription {
            original_channel: "aeron:ipc".to_owned(),
            stripped_channel: "aeron:ipc".to_owned(),
            stream_id: STREAM_ID,
            session_id: SESSION_ID,
            source_identity: "aeron:ipc".to_owned(),
            initial_term_id: INITIAL_TERM_ID,
            term_length,
            mtu_length: MTU_LENGTH as i32,
            join_position: 0,
        };
        let writer = archive.start_recording(&image, 0).unwrap();
        Self {
            storage,
            term_length,
            writer,
            position: 0,
            frames: Vec::new(),
            block: Vec::new(),
            now_us: 0,
        }
    }

    /// Returns the end of the added frames.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Sets the arrival time of all frames that are added after this call.
    pub fn at(&mut self, now_us: i64) {
        self.arrive();
        self.now_us = now_us;
    }

    /// Adds a message, in fragments if necessary. Returns the end position of the message.
    pub fn message(&mut self, payload: &[u8], reserved_value: i64) -> i64 {
        let most = MTU_LENGTH - DATA_HEADER_LENGTH;
        let count = payload.len().div_ceil(most).max(1);
        self.make_room(payload.len() + count * (DATA_HEADER_LENGTH + 32));
        for number in 0..count {
            let begin = if number == 0 { flags::BEGIN } else { 0 };
            let end = if number + 1 == count { flags::END } else { 0 };
            let fragment = &payload[number * most..payload.len().min((number + 1) * most)];
            self.fragment(begin | end, fragment, reserved_value);
        }
        self.position
    }

    /// Adds a data frame.
    pub fn fragment(&mut self, flags: u8, payload: &[u8], reserved_value: i64) {
        let length = DATA_HEADER_LENGTH + payload.len();
        self.make_room(length);
        let begin = self.block.len();
        self.block.resize(begin + length.next_multiple_of(32), 0);
        self.header(flags, length, false, reserved_value)
            .encode(&mut self.block[begin..]);
        self.block[begin + DATA_HEADER_LENGTH..begin + length].copy_from_slice(payload);
        self.advance(length);
    }

    /// Adds padding.
    pub fn padding(&mut self, length: usize) {
        self.make_room(length);
        self.arrive();
        let mut block = [0; DATA_HEADER_LENGTH];
        self.header(0, length, true, 0).encode(&mut block);
        self.writer
            .append(self.position, &block, self.now_us)
            .unwrap();
        self.advance(length);
    }

    /// Returns a partition with the messages that begin at or after `from` and before `to`.
    pub fn partition(&mut self, from: i64, to: i64) -> Partition {
        self.arrive();
        Partition {
            archive: ArchiveLocation {
                path: "/".to_owned(),
                nonce: Some(String::new()),
                boot_id: String::new(),
                host: String::new(),
            },
            recording: RecordingPiece {
                id: self.writer.recording_id(),
                stream_id: STREAM_ID,
                session_id: SESSION_ID,
                initial_term_id: INITIAL_TERM_ID,
                term_length: self.term_length,
                segment_length: self.term_length.max(MIN_SEGMENT_LENGTH),
                start_position: 0,
                channel: None,
            },
            from,
            to,
            end: self.position,
            index_hint: None,
        }
    }

    /// Returns a partition with all messages.
    pub fn whole(&mut self) -> Partition {
        self.partition(0, self.position)
    }

    fn header(
        &self,
        flags: u8,
        frame_length: usize,
        is_padding: bool,
        reserved_value: i64,
    ) -> DataHeader {
        let term_length = i64::from(self.term_length);
        DataHeader {
            frame_length: frame_length as i32,
            flags,
            is_padding,
            term_offset: (self.position % term_length) as i32,
            session_id: SESSION_ID,
            stream_id: STREAM_ID,
            term_id: INITIAL_TERM_ID.wrapping_add((self.position / term_length) as i32),
            reserved_value,
        }
    }

    /// Fills the term with padding if a frame of `length` bytes does not fit in it.
    fn make_room(&mut self, length: usize) {
        let left =
            self.term_length as usize - (self.position % i64::from(self.term_length)) as usize;
        if left < length {
            self.padding(left);
        }
    }

    fn advance(&mut self, length: usize) {
        self.frames.push(self.position);
        self.position += length.next_multiple_of(32) as i64;
        if self.position % i64::from(self.term_length) == 0 || self.block.len() > 100_000 {
            self.arrive();
        }
    }

    /// Writes the added frames to the recording, with the current arrival time.
    fn arrive(&mut self) {
        if !self.block.is_empty() {
            let begin = self.position - self.block.len() as i64;
            self.writer.append(begin, &self.block, self.now_us).unwrap();
            self.block.clear();
        }
    }
}

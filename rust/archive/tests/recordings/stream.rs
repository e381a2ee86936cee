//! Builds a publisher's stream as blocks of frames, as a block poll of an image would return them.

use aeron_archive::reader::{ReadError, RecordingReader};
use aeron_archive::storage::{Access, Storage, StorageFile};
use aeron_archive::stream::{RecordedStream, StreamDescription};
use aeron_memory::log::frame::{HEADER_LENGTH, aligned_length, flags, frame_type};

pub const TERM_LENGTH: i64 = 64 * 1024;
pub const SEGMENT_LENGTH: i64 = 2 * TERM_LENGTH;
pub const MTU_LENGTH: usize = 1408;
pub const INITIAL_TERM_ID: i32 = i32::MAX;
pub const SESSION_ID: i32 = -7;
pub const STREAM_ID: i32 = 1001;

/// Returns the description of recording 3, which starts at `start_position`.
pub fn description(start_position: i64) -> StreamDescription {
    StreamDescription {
        recording_id: 3,
        start_position,
        segment_length: SEGMENT_LENGTH as i32,
        term_length: TERM_LENGTH as i32,
        initial_term_id: INITIAL_TERM_ID,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
    }
}

pub fn recorded_stream(start_position: i64) -> RecordedStream {
    RecordedStream::new(&description(start_position)).unwrap()
}

/// Builds the frames of a publisher from a position on. The term length is 64 KiB by default.
#[derive(Debug, Clone)]
pub struct Publisher {
    position: i64,
    term_length: i64,
    session_id: i32,
}

impl Publisher {
    pub fn new(position: i64) -> Self {
        Self::with_term_length(position, TERM_LENGTH)
    }

    pub fn with_term_length(position: i64, term_length: i64) -> Self {
        Self {
            position,
            term_length,
            session_id: SESSION_ID,
        }
    }

    /// Returns the publisher with another session id and the same position.
    pub fn of_session(self, session_id: i32) -> Self {
        Self { session_id, ..self }
    }

    pub fn position(&self) -> i64 {
        self.position
    }

    /// Returns the blocks of a message: if necessary, padding up to the end of the term, and then
    /// the frames of the message.
    pub fn offer(&mut self, payload: &[u8]) -> Vec<Vec<u8>> {
        let max_payload = MTU_LENGTH - HEADER_LENGTH;
        let lengths = payload
            .chunks(max_payload)
            .map(|chunk| HEADER_LENGTH + chunk.len());
        let framed: usize = lengths
            .map(aligned_length)
            .sum::<usize>()
            .max(HEADER_LENGTH);
        let left = self.term_length - self.position % self.term_length;
        let mut blocks = Vec::new();
        if framed as i64 > left {
            blocks.push(self.pad(left));
        }
        let mut block = Vec::new();
        let count = payload.chunks(max_payload).count().max(1);
        for index in 0..count {
            let rest = &payload[index * max_payload..];
            let begin = if index == 0 { flags::BEGIN } else { 0 };
            let end = if index + 1 == count { flags::END } else { 0 };
            block.extend(self.data(begin | end, &rest[..rest.len().min(max_payload)]));
        }
        blocks.push(block);
        blocks
    }

    /// Returns the header of a padding frame over `length` bytes.
    pub fn pad(&mut self, length: i64) -> Vec<u8> {
        let flags = flags::UNFRAGMENTED;
        let header = self.header(length as usize, frame_type::PADDING, flags, 0);
        self.position += length;
        header
    }

    /// Returns one data frame.
    pub fn data(&mut self, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = HEADER_LENGTH + payload.len();
        let mut frame = self.header(length, frame_type::DATA, flags, -self.position);
        frame.extend_from_slice(payload);
        frame.resize(aligned_length(length), 0);
        self.position += frame.len() as i64;
        frame
    }

    fn header(&self, length: usize, frame_type: u16, flags: u8, reserved: i64) -> Vec<u8> {
        let term_id = INITIAL_TERM_ID.wrapping_add((self.position / self.term_length) as i32);
        let mut bytes = (length as u32).to_le_bytes().to_vec();
        bytes.extend([0, flags]);
        bytes.extend(frame_type.to_le_bytes());
        bytes.extend(((self.position % self.term_length) as i32).to_le_bytes());
        bytes.extend(self.session_id.to_le_bytes());
        bytes.extend(STREAM_ID.to_le_bytes());
        bytes.extend(term_id.to_le_bytes());
        bytes.extend(reserved.to_le_bytes());
        bytes
    }
}

/// Returns a payload without zero bytes, in which each byte depends on its index.
pub fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 + 1).collect()
}

/// Returns a file's bytes.
pub fn bytes<S: Storage>(storage: &S, name: &str) -> Vec<u8> {
    let file = storage.open(name, Access::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Returns whether all bytes of a file from `offset` on are zeros.
pub fn is_zero_from<S: Storage>(storage: &S, name: &str, offset: i64) -> bool {
    bytes(storage, name)[offset as usize..]
        .iter()
        .all(|byte| *byte == 0)
}

/// A frame that was read: position, payload, flags, reserved value, and whether the frame is padding.
pub type Seen = (i64, Vec<u8>, u8, i64, bool);

pub fn read<S: Storage>(
    storage: &S,
    stream: RecordedStream,
    from: i64,
    to: i64,
) -> Result<Vec<Seen>, ReadError> {
    let mut reader = RecordingReader::new(storage, stream, from, to)?;
    let mut seen = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        seen.push((
            frame.position(),
            frame.payload().to_vec(),
            frame.flags(),
            frame.reserved_value(),
            frame.is_padding(),
        ));
    }
    assert_eq!(reader.position(), to);
    Ok(seen)
}

//! A publisher's stream in the form in which a subscriber receives it, and the rows of its recordings.

use aeron_archive::reader::RecordingReader;
use aeron_archive::storage::Storage;
use aeron_archive::stream::RecordedStream;
use aeron_pipeline::private::{
    Arrivals, ImageDescription, OpenReport, PrivateArchive, PrivateError, RecordingWriter,
};

pub const TERM_LENGTH: i64 = 64 * 1024;
pub const SEGMENT_LENGTH: i64 = 1024 * 1024;
pub const MTU: usize = 1408;
pub const INITIAL_TERM_ID: i32 = -3;
pub const SESSION: i32 = 7;
pub const STREAM: i32 = 1001;
pub const ONE_GIB: u64 = 1 << 30;

const HEADER: usize = 32;
const BEGIN: u8 = 0x80;
const END: u8 = 0x40;

/// Creates the archive of a new query.
pub fn create<S: Storage + Clone>(storage: S, max_retained_bytes: u64) -> PrivateArchive<S> {
    let (archive, report) = PrivateArchive::open(storage, &[], max_retained_bytes, 0).unwrap();
    assert_eq!(report, OpenReport::default());
    archive
}

/// All published frames after the position `base`.
pub struct Stream {
    pub base: i64,
    log: Vec<u8>,
    pub messages: Vec<Published>,
    /// Start positions of the frames.
    pub frames: Vec<i64>,
}

/// A message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub begin: i64,
    pub end: i64,
    pub payload: Vec<u8>,
}

/// A message that was read from a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub end: i64,
    pub payload: Vec<u8>,
    pub arrival_us: Option<i64>,
}

impl Stream {
    pub fn new(base: i64) -> Self {
        Self {
            base,
            log: Vec::new(),
            messages: Vec::new(),
            frames: Vec::new(),
        }
    }

    pub fn end(&self) -> i64 {
        self.base + self.log.len() as i64
    }

    /// Publishes a message of this length. If the message does not fit into the term, it is published in the next
    /// term.
    pub fn publish(&mut self, length: usize) {
        let framed: usize = fragments(length, MTU - HEADER)
            .map(|(part, _)| (part + HEADER).next_multiple_of(32))
            .sum();
        if framed as i64 > self.term_left() {
            self.pad();
        }
        self.publish_fragments(length, MTU - HEADER);
    }

    /// Publishes a message in frames of 1024 bytes, headers included. The frames fill each term exactly and continue in
    /// the next one.
    pub fn publish_over_segments(&mut self, length: usize) {
        self.publish_fragments(length, 1024 - HEADER);
    }

    /// Publishes a message in one frame of any length.
    pub fn publish_in_one_frame(&mut self, length: usize) {
        self.publish_fragments(length, length);
    }

    /// Publishes a message of zeros in one frame.
    pub fn publish_zeros(&mut self, length: usize) {
        self.publish_payload(vec![0; length], length);
    }

    fn publish_fragments(&mut self, length: usize, most: usize) {
        let number = self.messages.len();
        let payload = (0..length).map(|at| (number * 31 + at) as u8 | 1).collect();
        self.publish_payload(payload, most);
    }

    fn publish_payload(&mut self, payload: Vec<u8>, most: usize) {
        let length = payload.len();
        let begin = self.end();
        let mut at = 0;
        for (part, flags) in fragments(length, most) {
            let framed = (part + HEADER).next_multiple_of(32) as i64;
            assert!(
                framed <= self.term_left(),
                "a fragment does not fit in the term"
            );
            self.frame(1, flags, &payload[at..at + part]);
            at += part;
        }
        self.messages.push(Published {
            begin,
            end: self.end(),
            payload,
        });
    }

    /// Fills the term with padding.
    pub fn pad(&mut self) {
        let left = self.term_left() as usize;
        self.frames.push(self.end());
        let header = header(self.end(), left, 0, BEGIN | END);
        self.log.extend(header);
        self.log.resize(self.log.len() + left - HEADER, 0);
    }

    pub fn term_left(&self) -> i64 {
        TERM_LENGTH - self.end() % TERM_LENGTH
    }

    fn frame(&mut self, frame_type: u8, flags: u8, payload: &[u8]) {
        self.frames.push(self.end());
        let header = header(self.end(), HEADER + payload.len(), frame_type, flags);
        self.log.extend(header);
        self.log.extend(payload);
        self.log.resize(self.log.len().next_multiple_of(32), 0);
    }

    /// Returns the block of a poll at `position`, and the end position of the block. A block has whole frames of one
    /// term, or one padding frame.
    pub fn block(&self, position: i64, limit: usize) -> (&[u8], i64) {
        let begin = (position - self.base) as usize;
        let mut end = begin;
        while end < self.log.len() {
            let length = u32::from_le_bytes(self.log[end..end + 4].try_into().unwrap()) as usize;
            let aligned = length.next_multiple_of(32);
            if self.log[end + 6] == 0 {
                if end == begin {
                    return (&self.log[begin..begin + aligned], position + aligned as i64);
                }
                break;
            }
            if end + aligned - begin > limit {
                break;
            }
            end += aligned;
            if (self.base + end as i64) % TERM_LENGTH == 0 {
                break;
            }
        }
        (&self.log[begin..end], self.base + end as i64)
    }

    /// Returns the start positions of all padding at the end of a term.
    pub fn padding(&self) -> impl Iterator<Item = i64> {
        let frames = self.frames.iter().copied();
        frames.filter(|&frame| self.log[(frame - self.base) as usize + 6] == 0)
    }

    /// Returns the block at `position` of an endless stream that repeats the only term of this stream. The second value
    /// is the length of the block in the stream.
    pub fn block_again(&self, position: i64) -> (Vec<u8>, i64) {
        let offset = position % TERM_LENGTH;
        let (block, end) = self.block(offset, usize::MAX);
        let mut block = block.to_vec();
        let term_id = INITIAL_TERM_ID + (position / TERM_LENGTH) as i32;
        let mut at = 0;
        while at < block.len() {
            block[at + 20..at + 24].copy_from_slice(&term_id.to_le_bytes());
            let length = u32::from_le_bytes(block[at..at + 4].try_into().unwrap());
            at += (length as usize).next_multiple_of(32);
        }
        (block, end - offset)
    }

    /// Returns the start of the first message that begins at or after a position; `None` if there is no such message.
    pub fn first_begin(&self, position: i64) -> Option<i64> {
        let mut messages = self.messages.iter();
        messages
            .find(|message| message.begin >= position)
            .map(|message| message.begin)
    }

    /// Returns the head of a recording with the range `start..end`.
    pub fn head(&self, start: i64, end: i64) -> Option<i64> {
        let first = self.first_begin(start).filter(|&first| first < end)?;
        let complete = self.messages.iter().rev();
        let mut complete = complete.filter(|message| message.begin >= start && message.end <= end);
        Some(complete.next().map_or(first, |message| message.end))
    }

    /// Returns the messages in a range.
    pub fn messages_in(&self, from: i64, to: i64) -> Vec<Published> {
        let messages = self.messages.iter();
        messages
            .filter(|message| message.begin >= from && message.end <= to)
            .cloned()
            .collect()
    }
}

/// Returns the lengths and flags of the fragments of a message.
fn fragments(length: usize, most: usize) -> impl Iterator<Item = (usize, u8)> {
    let count = length.div_ceil(most).max(1);
    (0..count).map(move |number| {
        let begin = if number == 0 { BEGIN } else { 0 };
        let end = if number + 1 == count { END } else { 0 };
        (most.min(length - number * most), begin | end)
    })
}

fn header(position: i64, length: usize, frame_type: u8, flags: u8) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let term_id = INITIAL_TERM_ID + (position / TERM_LENGTH) as i32;
    header[0..4].copy_from_slice(&(length as u32).to_le_bytes());
    header[5] = flags;
    header[6] = frame_type;
    header[8..12].copy_from_slice(&((position % TERM_LENGTH) as i32).to_le_bytes());
    header[12..16].copy_from_slice(&SESSION.to_le_bytes());
    header[16..20].copy_from_slice(&STREAM.to_le_bytes());
    header[20..24].copy_from_slice(&term_id.to_le_bytes());
    header
}

/// Describes an image of the stream.
pub fn image(join_position: i64) -> ImageDescription {
    ImageDescription {
        original_channel: "aeron:ipc?alias=a".to_owned(),
        stripped_channel: "aeron:ipc?alias=a".to_owned(),
        stream_id: STREAM,
        session_id: SESSION,
        source_identity: "aeron:ipc".to_owned(),
        initial_term_id: INITIAL_TERM_ID,
        term_length: TERM_LENGTH as i32,
        mtu_length: MTU as i32,
        join_position,
    }
}

/// Records the stream from `position` up to `to`, in blocks of at most `limit` bytes. Returns the end position.
pub fn record<S: Storage + Clone>(
    writer: &mut RecordingWriter<S>,
    stream: &Stream,
    mut position: i64,
    to: i64,
    limit: usize,
    now_us: i64,
) -> Result<i64, PrivateError> {
    while position < to {
        let (block, end) = stream.block(position, limit.min((to - position) as usize));
        if end == position {
            break;
        }
        writer.append(position, block, now_us)?;
        position = end;
    }
    Ok(position)
}

/// Reads the rows of a range in the same way as a task of Spark.
pub fn rows<S: Storage + Clone>(
    storage: &S,
    stream: RecordedStream,
    from: i64,
    to: i64,
    hint: Option<u64>,
) -> Vec<Row> {
    let mut reader = RecordingReader::new(storage.clone(), stream, from, to).unwrap();
    let mut arrivals = Arrivals::new(storage.clone(), stream, from, hint).unwrap();
    let mut rows = Vec::new();
    let mut payload: Option<Vec<u8>> = None;
    while let Some(frame) = reader.next_frame().unwrap() {
        if frame.is_padding() {
            payload = None;
        }
        if frame.is_begin() {
            payload = Some(Vec::new());
        }
        if let Some(bytes) = &mut payload {
            bytes.extend(frame.payload());
        }
        if frame.is_end()
            && let Some(payload) = payload.take()
        {
            let end = frame.end_position();
            rows.push(Row {
                end,
                payload,
                arrival_us: arrivals.at(end).unwrap(),
            });
        }
    }
    rows
}

/// Returns all rows of a recording up to its head.
pub fn all_rows<S: Storage + Clone>(archive: &PrivateArchive<S>, recording_id: i64) -> Vec<Row> {
    let info = archive
        .recordings()
        .find(|info| info.stream.recording_id() == recording_id)
        .unwrap();
    let start = info.stream.start_position();
    match info.published.head() {
        Some(head) if head > start => rows(archive.storage(), info.stream, start, head, None),
        _ => Vec::new(),
    }
}

/// Returns whether the rows are exactly these messages.
pub fn same(rows: &[Row], messages: &[Published]) -> bool {
    let rows = rows.iter().map(|row| (row.end, &row.payload));
    rows.eq(messages
        .iter()
        .map(|message| (message.end, &message.payload)))
}

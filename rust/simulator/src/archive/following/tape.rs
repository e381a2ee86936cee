//! [`StreamTape`]: all messages that a source has published, by session.

use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_protocol::frame::DataHeader;

use crate::payload::Message;

/// The sessions of one stream, in the order of their publications.
#[derive(Debug, Default)]
pub struct StreamTape {
    sessions: Vec<SessionTape>,
}

/// The messages of one publication.
#[derive(Debug)]
pub struct SessionTape {
    /// Session id.
    pub session_id: i32,
    /// Number of the publication in the messages.
    pub publication: u32,
    /// Position after the published data, with padding.
    pub end: i64,
    /// Longest payload of a frame in bytes.
    max_payload: usize,
    messages: Vec<PublishedMessage>,
}

/// A message with its range in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedMessage {
    /// Position of its first frame.
    pub begin: i64,
    /// Position after its last frame.
    pub end: i64,
    /// The message.
    pub message: Message,
    /// Time at which the publication accepted it, in milliseconds since the epoch.
    pub published_ms: i64,
}

impl StreamTape {
    /// Adds the session of a new publication.
    pub fn add_session(&mut self, stream_id: i32, session_id: i32, max_payload: usize) {
        let publication = stream_id as u32 * 1_000 + self.sessions.len() as u32;
        self.sessions.push(SessionTape {
            session_id,
            publication,
            end: 0,
            max_payload,
            messages: Vec::new(),
        });
    }

    /// Returns the session of the newest publication, for additions.
    pub fn last_mut(&mut self) -> Option<&mut SessionTape> {
        self.sessions.last_mut()
    }

    /// Returns the tape of a session.
    pub fn session(&self, session_id: i32) -> Option<&SessionTape> {
        let mut newest_first = self.sessions.iter().rev();
        newest_first.find(|session| session.session_id == session_id)
    }

    /// Returns the number of all messages.
    pub fn count(&self) -> usize {
        self.sessions.iter().map(|it| it.messages.len()).sum()
    }
}

impl SessionTape {
    /// Returns the number of messages.
    pub fn count(&self) -> u32 {
        self.messages.len() as u32
    }

    /// Adds a message that the publication has accepted at a time.
    pub fn add(&mut self, message: Message, end: i64, published_ms: i64) {
        let begin = end - framed_length(message.length, self.max_payload);
        self.messages.push(PublishedMessage {
            begin,
            end,
            message,
            published_ms,
        });
        self.end = self.end.max(end);
    }

    /// Returns the message with a number.
    pub fn message(&self, number: usize) -> Option<PublishedMessage> {
        self.messages.get(number).copied()
    }

    /// Returns the first message that was published at or after a time.
    pub fn first_since(&self, published_ms: i64) -> Option<PublishedMessage> {
        let mut messages = self.messages.iter();
        messages.find(|it| it.published_ms >= published_ms).copied()
    }

    /// Returns the first message that begins at or after a position.
    pub fn next_at(&self, position: i64) -> Option<PublishedMessage> {
        let at = self.messages.partition_point(|it| it.begin < position);
        self.messages.get(at).copied()
    }
}

/// Returns the length of the frames of a message.
fn framed_length(length: usize, max_payload: usize) -> i64 {
    let framed = |payload: usize| (DataHeader::LENGTH + payload).next_multiple_of(FRAME_ALIGNMENT);
    let (full, rest) = (length / max_payload, length % max_payload);
    let rest = if rest > 0 || full == 0 {
        framed(rest)
    } else {
        0
    };
    (full * framed(max_payload) + rest) as i64
}

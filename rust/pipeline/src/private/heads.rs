//! Which messages of a recording are complete: its head, and how many they are.
//!
//! A message begins with a fragment that has the BEGIN flag and is complete with the next one that has END. Fragments before
//! the first BEGIN belong to no message. Padding breaks a message that is under way, as does another BEGIN: whoever reads the
//! stream drops it then, as Aeron's own assemblers do.

use aeron_archive::frame::Frame;

/// Messages and the bytes that they carry, counted from some point on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Complete messages.
    pub messages: i64,
    /// Bytes of their payloads, without headers.
    pub payload_bytes: i64,
}

/// How far the messages of a recording go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// End of the last complete message; before one is complete, the begin of the first; before that `None`.
    pub head: Option<i64>,
    /// Complete messages up to the head.
    pub counts: Counts,
}

/// Follows the frames of a recording from one on, in order.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadTracker {
    progress: Progress,
    unfinished: Option<Unfinished>,
}

/// A message that has begun and not ended.
#[derive(Debug, Clone, Copy)]
struct Unfinished {
    begin: i64,
    payload_bytes: i64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    /// Wraps: counts of damaged files may be anything, and only differences of counts have a meaning.
    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages.wrapping_add(other.messages),
            payload_bytes: self.payload_bytes.wrapping_add(other.payload_bytes),
        }
    }
}

impl std::ops::Sub for Counts {
    type Output = Self;

    /// Wraps, as addition does.
    fn sub(self, other: Self) -> Self {
        Self {
            messages: self.messages.wrapping_sub(other.messages),
            payload_bytes: self.payload_bytes.wrapping_sub(other.payload_bytes),
        }
    }
}

impl HeadTracker {
    /// Goes on where the messages up to `progress` end, with none under way.
    pub fn new(progress: Progress) -> Self {
        Self {
            progress,
            unfinished: None,
        }
    }

    /// How far the messages go with the frames taken until now.
    #[inline]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Where the message begins that is under way.
    pub fn unfinished_begin(&self) -> Option<i64> {
        self.unfinished.map(|message| message.begin)
    }

    /// Takes the next frame.
    #[inline]
    pub fn take(&mut self, frame: &Frame<'_>) {
        if frame.is_padding() {
            self.unfinished = None;
            return;
        }
        if frame.is_begin() {
            let begin = frame.position();
            self.progress.head.get_or_insert(begin);
            self.unfinished = Some(Unfinished {
                begin,
                payload_bytes: 0,
            });
        }
        if let Some(message) = &mut self.unfinished {
            message.payload_bytes += frame.payload().len() as i64;
            if frame.is_end() {
                self.complete(frame.end_position());
            }
        }
    }

    #[inline]
    fn complete(&mut self, end_position: i64) {
        if let Some(message) = self.unfinished.take() {
            self.progress.head = Some(end_position);
            self.progress.counts = self.progress.counts
                + Counts {
                    messages: 1,
                    payload_bytes: message.payload_bytes,
                };
        }
    }
}

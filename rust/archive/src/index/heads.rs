//! Counts the complete messages of a recording, and finds the end of the last complete message.
//! This position is the *head* of the recording.
//!
//! A message begins with a fragment that has the BEGIN flag. It is complete with the next fragment that has the END
//! flag. Fragments before the first BEGIN belong to no message. If padding or another BEGIN follows an incomplete
//! message, the message is not counted. Aeron's assemblers also drop such a message.

use crate::frame::CheckedFrame;

/// Numbers of messages and payload bytes from some position on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of complete messages.
    pub messages: i64,
    /// Number of payload bytes of these messages, without headers.
    pub payload_bytes: i64,
}

/// Progress of the messages of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// End of the last complete message. If no message is complete, this is the start of the first
    /// message. If no message has begun, this is `None`.
    pub head: Option<i64>,
    /// Number and payload bytes of the complete messages up to the head.
    pub counts: Counts,
    /// Payload bytes so far of the incomplete message; `None` if no message is incomplete.
    pub unfinished: Option<i64>,
}

/// Computes the progress from consecutive frames of a recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadTracker {
    progress: Progress,
    first_begin: Option<i64>,
    last_begin: i64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    /// Adds with wrapping, because only differences of counts are used, and the counts in a damaged
    /// file may have any value.
    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages.wrapping_add(other.messages),
            payload_bytes: self.payload_bytes.wrapping_add(other.payload_bytes),
        }
    }
}

impl std::ops::Sub for Counts {
    type Output = Self;

    /// Subtracts with wrapping, like `add`.
    fn sub(self, other: Self) -> Self {
        Self {
            messages: self.messages.wrapping_sub(other.messages),
            payload_bytes: self.payload_bytes.wrapping_sub(other.payload_bytes),
        }
    }
}

impl HeadTracker {
    /// Creates a tracker that continues at the position at which `progress` was taken.
    pub fn new(progress: Progress) -> Self {
        Self {
            progress,
            first_begin: None,
            last_begin: 0,
        }
    }

    /// Returns the progress after the processed frames.
    #[inline]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Returns the start of the incomplete message; `None` if no message is incomplete. Returns 0 if
    /// this tracker has not processed the first fragment of the message.
    pub fn unfinished_begin(&self) -> Option<i64> {
        self.progress.unfinished.map(|_| self.last_begin)
    }

    /// Returns the start of the first message that begins in the processed frames.
    pub fn first_begin(&self) -> Option<i64> {
        self.first_begin
    }

    /// Processes the next frame.
    #[inline]
    pub fn take(&mut self, frame: &CheckedFrame<'_>) {
        let progress = &mut self.progress;
        if frame.is_padding() {
            progress.unfinished = None;
            return;
        }
        if frame.is_begin() {
            self.last_begin = frame.position();
            self.first_begin.get_or_insert(self.last_begin);
            progress.head.get_or_insert(self.last_begin);
            progress.unfinished = Some(0);
        }
        let Some(before) = progress.unfinished else {
            return;
        };
        let payload_bytes = before.saturating_add(frame.payload().len() as i64);
        progress.unfinished = Some(payload_bytes);
        if frame.is_end() {
            progress.unfinished = None;
            progress.head = Some(frame.end_position());
            progress.counts = progress.counts
                + Counts {
                    messages: 1,
                    payload_bytes,
                };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{RecordedStream, StreamDescription};

    const BEGIN: u8 = 0x80;
    const END: u8 = 0x40;
    const PADDING: u8 = 0x01;

    /// Returns a tracker that has processed frames with these flags from position 0 on. Each frame
    /// has 64 bytes, with 20 bytes of payload.
    fn track(flags: &[u8]) -> HeadTracker {
        let stream = RecordedStream::new(&StreamDescription {
            recording_id: 0,
            start_position: 0,
            segment_length: 65536,
            term_length: 65536,
            initial_term_id: 0,
            session_id: 1,
            stream_id: 2,
        })
        .unwrap();
        let mut tracker = HeadTracker::default();
        for (number, &flags) in flags.iter().enumerate() {
            let position = number as i64 * 64;
            let mut bytes = [0; 64];
            bytes[0] = 52;
            bytes[5] = flags & (BEGIN | END);
            bytes[6] = u8::from(flags & PADDING == 0);
            bytes[8..12].copy_from_slice(&(position as i32).to_le_bytes());
            bytes[12] = 1;
            bytes[16] = 2;
            tracker.take(&stream.rules().check(position, &bytes).unwrap());
        }
        tracker
    }

    fn head(flags: &[u8]) -> (Option<i64>, i64, i64) {
        let Progress { head, counts, .. } = track(flags).progress();
        (head, counts.messages, counts.payload_bytes)
    }

    /// 08-21
    #[test]
    fn the_head_is_the_end_of_the_last_complete_message() {
        assert_eq!(head(&[]), (None, 0, 0));
        assert_eq!(head(&[BEGIN | END, BEGIN | END]), (Some(128), 2, 40));
        assert_eq!(head(&[BEGIN]), (Some(0), 0, 0));
        assert_eq!(head(&[BEGIN | END, BEGIN, 0]), (Some(64), 1, 20));
        assert_eq!(head(&[BEGIN | END, BEGIN, 0, END]), (Some(256), 2, 80));
    }

    /// 08-21
    #[test]
    fn fragments_before_the_first_begin_belong_to_no_message() {
        assert_eq!(head(&[0, END]), (None, 0, 0));
        assert_eq!(head(&[0, END, BEGIN]), (Some(128), 0, 0));
        assert_eq!(head(&[END, BEGIN | END, END]), (Some(128), 1, 20));
        assert_eq!(
            track(&[END, BEGIN | END, BEGIN | END]).first_begin(),
            Some(64)
        );
    }

    #[test]
    fn a_message_that_is_interrupted_by_padding_or_a_begin_is_not_counted() {
        assert_eq!(head(&[BEGIN | END, BEGIN, PADDING, END]), (Some(64), 1, 20));
        assert_eq!(head(&[BEGIN, BEGIN, END]), (Some(192), 1, 40));
        assert_eq!(head(&[BEGIN | END, PADDING]), (Some(64), 1, 20));
        assert_eq!(head(&[PADDING]), (None, 0, 0));
        assert_eq!(track(&[BEGIN, PADDING]).unfinished_begin(), None);
        assert_eq!(track(&[BEGIN | END, BEGIN]).unfinished_begin(), Some(64));
    }
}

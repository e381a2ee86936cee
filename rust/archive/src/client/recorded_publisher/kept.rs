//! [`KeptMessages`]: the messages that are not recorded yet.

use std::collections::VecDeque;

use super::error::RecordedPublisherError;
use super::geometry::{MessagePlace, StreamGeometry};

/// Number of bytes of the buffer that each message uses in addition to its own length.
pub(super) const MESSAGE_OVERHEAD: usize = 32;

/// A queue of messages in the order of their positions. The first messages of the queue were sent;
/// the others were not.
///
/// Two ring buffers hold the bytes and the descriptions of the messages. After they have grown to
/// their full length, they do not allocate.
#[derive(Debug)]
pub(super) struct KeptMessages {
    /// Maximum length of all kept messages together, in bytes, with [`MESSAGE_OVERHEAD`] for each message.
    limit: usize,
    bytes: VecDeque<u8>,
    messages: VecDeque<KeptMessage>,
    /// Number of messages that were sent on the current stream.
    sent: usize,
    /// Number of bytes of these messages.
    sent_bytes: usize,
    /// Number of messages that were sent on the current stream or on an earlier stream.
    offered: usize,
    recorded_position: i64,
    /// Position after the last message that was dropped. At the start: the position of the first message.
    dropped_position: i64,
    end_position: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeptMessage {
    place: MessagePlace,
    length: usize,
}

/// The next message to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnsentMessage<'a> {
    /// The bytes of the message, in two parts because the buffer is a ring.
    pub(super) parts: [&'a [u8]; 2],
    /// Position after the message.
    pub(super) end: i64,
    /// Whether the message was sent on an earlier stream.
    pub(super) is_again: bool,
}

/// A message that is recorded only in part: the recording has its first fragments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TornMessage {
    pub(super) bytes: Vec<u8>,
    pub(super) place: MessagePlace,
}

impl UnsentMessage<'_> {
    /// Returns the length of the message, in bytes.
    pub(super) fn length(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

impl KeptMessages {
    /// Creates an empty buffer of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: VecDeque::new(),
            messages: VecDeque::new(),
            sent: 0,
            sent_bytes: 0,
            offered: 0,
            recorded_position: 0,
            dropped_position: 0,
            end_position: 0,
        }
    }

    /// Sets the position of the next message. The buffer must be empty.
    pub(super) fn begin_at(&mut self, position: i64) {
        debug_assert!(
            self.messages.is_empty(),
            "{} kept messages would lose their positions, because the stream begins again at {position}",
            self.messages.len()
        );
        self.recorded_position = position;
        self.dropped_position = position;
        self.end_position = position;
    }

    /// Returns the position up to which the stream is recorded.
    pub(super) const fn recorded_position(&self) -> i64 {
        self.recorded_position
    }

    /// Returns the position up to which no message is kept any more. Between this position and the recorded position
    /// there are only padding and the first fragments of the first kept message.
    pub(super) const fn dropped_position(&self) -> i64 {
        self.dropped_position
    }

    /// Returns the position after the last message.
    pub(super) const fn end_position(&self) -> i64 {
        self.end_position
    }

    /// Returns the highest position at which a recording of the sent messages can end. Padding
    /// before the next message may have been sent without the message.
    pub(super) fn highest_sent_position(&self) -> i64 {
        let next = self.messages.get(self.offered);
        next.map_or(self.end_position, |next| next.place.begin)
    }

    /// Returns the number of kept messages.
    pub(super) fn count(&self) -> usize {
        self.messages.len()
    }

    /// Returns the number of payload bytes of the kept messages.
    pub(super) fn payload_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns whether all messages were sent on the current stream.
    #[inline]
    pub(super) fn are_all_sent(&self) -> bool {
        self.sent == self.messages.len()
    }

    /// Returns the length of the longest message that fits into an empty buffer, in bytes.
    pub(super) const fn max_message_length(&self) -> usize {
        self.limit.saturating_sub(MESSAGE_OVERHEAD)
    }

    /// Returns the number of free bytes. Each further message uses its length and
    /// [`MESSAGE_OVERHEAD`].
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.limit - self.bytes.len() - self.messages.len() * MESSAGE_OVERHEAD
    }

    /// Adds a message. The caller has checked that there is [`room`](Self::room).
    #[inline]
    pub(super) fn push(&mut self, message: &[u8], place: MessagePlace, is_sent: bool) {
        debug_assert!(
            message.len() + MESSAGE_OVERHEAD <= self.room(),
            "a message of {} bytes does not fit into the {} free bytes",
            message.len(),
            self.room()
        );
        debug_assert!(
            !is_sent || self.are_all_sent(),
            "a message is sent before {} older messages",
            self.messages.len() - self.sent
        );
        debug_assert!(
            place.begin >= self.end_position && place.end > place.begin,
            "a message from {} to {} must follow the messages up to {}",
            place.begin,
            place.end,
            self.end_position
        );
        self.bytes.extend(message);
        self.messages.push_back(KeptMessage {
            place,
            length: message.len(),
        });
        self.end_position = place.end;
        if is_sent {
            self.mark_sent();
        }
    }

    /// Returns the first message that was not sent on the current stream.
    pub(super) fn next_unsent(&self) -> Option<UnsentMessage<'_>> {
        let message = self.messages.get(self.sent)?;
        Some(UnsentMessage {
            parts: self.parts(self.sent_bytes, message.length),
            end: message.place.end,
            is_again: self.sent < self.offered,
        })
    }

    /// Marks the first unsent message as sent.
    #[inline]
    pub(super) fn mark_sent(&mut self) {
        let Some(message) = self.messages.get(self.sent) else {
            return;
        };
        self.sent += 1;
        self.sent_bytes += message.length;
        self.offered = self.offered.max(self.sent);
        debug_assert!(
            self.sent_bytes <= self.bytes.len(),
            "{} bytes were sent, but only {} are kept",
            self.sent_bytes,
            self.bytes.len()
        );
    }

    /// Drops the messages that end at or before `position`, up to which the stream is recorded.
    #[inline]
    pub(super) fn drop_recorded(&mut self, position: i64) {
        debug_assert!(
            position <= self.end_position,
            "messages up to {position} are recorded, but the last message ends at {}",
            self.end_position
        );
        while let Some(first) = self.messages.front()
            && first.place.end <= position
        {
            self.dropped_position = first.place.end;
            self.bytes.drain(..first.length);
            self.sent_bytes = self.sent_bytes.saturating_sub(first.length);
            self.sent = self.sent.saturating_sub(1);
            self.offered = self.offered.saturating_sub(1);
            self.messages.pop_front();
        }
        self.recorded_position = self.recorded_position.max(position);
        debug_assert!(
            self.sent <= self.offered && self.offered <= self.messages.len(),
            "of {} kept messages, {} were offered and {} sent: each sent message is offered first",
            self.messages.len(),
            self.offered,
            self.sent
        );
        debug_assert!(
            self.dropped_position <= self.recorded_position,
            "messages up to {} were dropped, but only those up to {} are recorded",
            self.dropped_position,
            self.recorded_position
        );
    }

    /// Prepares the messages for a new stream, which begins at the end of the recording. If the
    /// recording ends between the fragments of a message, returns this message.
    ///
    /// # Errors
    /// [`RecordedPublisherError::NotBetweenFrames`]: no frame of the messages ends at `position`.
    pub(super) fn resume_at(
        &mut self,
        recording_id: i64,
        position: i64,
        geometry: StreamGeometry,
    ) -> Result<Option<TornMessage>, RecordedPublisherError> {
        debug_assert!(
            position >= self.dropped_position,
            "recording {recording_id} ends at {position}, but messages up to {} were dropped and cannot be sent again",
            self.dropped_position
        );
        self.drop_recorded(position);
        (self.sent, self.sent_bytes) = (0, 0);
        let Some(&KeptMessage { place, length }) = self.messages.front() else {
            return Ok(None);
        };
        if geometry.place(position, length) == Some(place) {
            return Ok(None);
        }
        if !geometry.is_between_fragments(place, position) {
            return Err(RecordedPublisherError::NotBetweenFrames {
                recording_id,
                stop_position: position,
            });
        }
        let bytes = self.parts(0, length).concat();
        Ok(Some(TornMessage { bytes, place }))
    }

    /// Returns copies of the messages, in order.
    pub(super) fn to_vec(&self) -> Vec<Vec<u8>> {
        let mut begin = 0;
        let copy = |message: &KeptMessage| {
            let parts = self.parts(begin, message.length);
            begin += message.length;
            parts.concat()
        };
        self.messages.iter().map(copy).collect()
    }

    fn parts(&self, begin: usize, length: usize) -> [&[u8]; 2] {
        let end = begin + length;
        debug_assert!(
            end <= self.bytes.len(),
            "a message at byte {begin} would be sent without its end: {length} bytes long, {} bytes are kept",
            self.bytes.len()
        );
        let (first, second) = self.bytes.as_slices();
        let split = first.len();
        let part = |slice: &'_ [u8], offset: usize| {
            let from = begin.clamp(offset, offset + slice.len()) - offset;
            let to = end.clamp(offset, offset + slice.len()) - offset;
            from..to
        };
        [&first[part(first, 0)], &second[part(second, split)]]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::{NULL_VALUE, RecordingDescriptor};

    const TERM_LENGTH: i64 = 64 * 1024;
    const MTU_LENGTH: i64 = 256;
    const LIMIT: usize = 32 * 1024;

    fn geometry() -> StreamGeometry {
        StreamGeometry::of_recording(&RecordingDescriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id: 7,
            start_timestamp_ms: 0,
            stop_timestamp_ms: NULL_VALUE,
            start_position: 0,
            stop_position: NULL_VALUE,
            initial_term_id: 0,
            segment_length: TERM_LENGTH as i32,
            term_length: TERM_LENGTH as i32,
            mtu_length: MTU_LENGTH as i32,
            session_id: 1,
            stream_id: 2,
            stripped_channel: "".into(),
            original_channel: "".into(),
            source_identity: "".into(),
        })
        .unwrap()
    }

    /// Returns a buffer that begins at `position` with messages of these lengths. The value of each
    /// byte is the number of its message.
    fn kept(position: i64, lengths: &[usize], are_sent: bool) -> KeptMessages {
        let mut kept = KeptMessages::new(LIMIT);
        kept.begin_at(position);
        for (number, length) in lengths.iter().enumerate() {
            push(&mut kept, number, *length, are_sent);
        }
        kept
    }

    fn push(kept: &mut KeptMessages, number: usize, length: usize, is_sent: bool) {
        let place = geometry().place(kept.end_position(), length).unwrap();
        kept.push(&vec![number as u8; length], place, is_sent);
    }

    fn numbers(kept: &KeptMessages) -> Vec<u8> {
        kept.to_vec().iter().map(|message| message[0]).collect()
    }

    #[test]
    fn recorded_messages_are_dropped_and_a_partly_recorded_message_is_kept() {
        let mut kept = kept(0, &[1, 600, 1], true);
        kept.drop_recorded(64);
        assert_eq!(numbers(&kept), [1, 2]);
        kept.drop_recorded(64 + 512);
        assert_eq!(numbers(&kept), [1, 2]);
        assert_eq!(kept.recorded_position(), 576);
        kept.drop_recorded(64 + 512 + 192);
        assert_eq!(numbers(&kept), [2]);
        assert_eq!(kept.count(), 1);
        assert!(kept.are_all_sent() && !kept.is_empty());
    }

    #[test]
    fn the_next_message_to_send_is_the_first_unsent_message() {
        let mut kept = kept(0, &[10, 20], true);
        push(&mut kept, 2, 30, false);
        push(&mut kept, 3, 40, false);
        let next = kept.next_unsent().unwrap();
        assert_eq!(next.parts.concat(), [2; 30]);
        assert_eq!((next.end, next.is_again, next.length()), (192, false, 30));
        assert_eq!(kept.highest_sent_position(), 128);
        kept.mark_sent();
        assert_eq!(kept.next_unsent().unwrap().parts.concat(), [3; 40]);
        kept.mark_sent();
        assert_eq!(kept.next_unsent(), None);
        assert_eq!(kept.highest_sent_position(), kept.end_position());
    }

    #[test]
    fn messages_after_the_end_of_the_recording_are_sent_again() {
        let mut kept = kept(0, &[10, 20, 30], true);
        push(&mut kept, 3, 40, false);
        assert_eq!(kept.resume_at(7, 64, geometry()).unwrap(), None);
        let mut sent = Vec::new();
        while let Some(next) = kept.next_unsent() {
            sent.push((next.parts[0][0], next.is_again));
            kept.mark_sent();
        }
        assert_eq!(sent, [(1, true), (2, true), (3, false)]);
    }

    #[test]
    fn a_recording_may_end_between_the_fragments_of_a_message() {
        let mut kept = kept(64, &[10, 600, 20], true);
        let torn = kept.resume_at(7, 128 + 256, geometry()).unwrap().unwrap();
        assert_eq!(torn.bytes, [1; 600]);
        assert_eq!((torn.place.begin, torn.place.end), (128, 128 + 704));
        assert_eq!(numbers(&kept), [1, 2]);
    }

    #[test]
    fn a_recording_may_end_before_or_after_the_padding_before_a_message() {
        let begin = TERM_LENGTH - 96;
        for position in [begin + 32, TERM_LENGTH] {
            let mut kept = kept(begin, &[0, 200], true);
            assert_eq!(kept.resume_at(7, position, geometry()).unwrap(), None);
            assert_eq!(kept.count(), 1);
        }
    }

    /// After a kill, an archive can remove the last frame of a recording, although it had reported this frame as
    /// recorded.
    #[test]
    fn padding_and_fragments_that_a_recording_has_lost_are_sent_again() {
        let mut padded = kept(TERM_LENGTH - 96, &[0, 200], true);
        padded.drop_recorded(TERM_LENGTH);
        let end = TERM_LENGTH - 64;
        assert_eq!((padded.dropped_position(), padded.count()), (end, 1));
        assert_eq!(padded.resume_at(7, end, geometry()).unwrap(), None);
        assert_eq!(padded.count(), 1);

        let mut torn = kept(0, &[10, 600], true);
        torn.drop_recorded(64 + 512);
        assert_eq!(torn.dropped_position(), 64);
        assert!(torn.resume_at(7, 64 + 256, geometry()).unwrap().is_some());
    }

    #[test]
    fn a_recording_that_ends_within_a_frame_is_refused() {
        let mut kept = kept(0, &[10, 600], true);
        let error = kept.resume_at(7, 64 + 128, geometry()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "recording 7 ends at position 192, where no frame of the publisher ends"
        );
    }

    #[test]
    fn an_empty_message_also_uses_room() {
        let mut kept = KeptMessages::new(100);
        assert_eq!(kept.max_message_length(), 68);
        for left in [68, 36, 4] {
            push(&mut kept, 0, 0, true);
            assert_eq!(kept.room(), left);
        }
        kept.drop_recorded(32);
        assert_eq!(kept.room(), 36);
    }

    proptest! {
        /// The buffer wraps around many times, and the bytes of each message stay unchanged.
        #[test]
        fn messages_are_kept_and_dropped_in_order(
            steps in prop::collection::vec((0..9_000_usize, 0..4_usize), 1..200),
        ) {
            let mut kept = kept(0, &[], true);
            let mut model = VecDeque::new();
            for (number, (length, dropped)) in steps.into_iter().enumerate() {
                if length <= 8192 && length + MESSAGE_OVERHEAD <= kept.room() {
                    let is_sent = number % 3 == 0 && kept.are_all_sent();
                    push(&mut kept, number, length, is_sent);
                    model.push_back((kept.end_position(), vec![number as u8; length]));
                }
                for _ in 0..dropped {
                    if let Some((end, _)) = model.pop_front() {
                        kept.drop_recorded(end);
                    }
                }
                let expected: Vec<_> = model.iter().map(|(_, bytes)| bytes.clone()).collect();
                prop_assert_eq!(kept.to_vec(), expected);
                prop_assert_eq!(kept.count(), model.len());
            }
        }
    }
}

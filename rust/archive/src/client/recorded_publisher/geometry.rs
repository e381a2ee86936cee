//! [`StreamGeometry`]: the positions of messages and of their fragments in a stream.
//!
//! An exclusive publication appends the same messages at the same positions each time. So the positions of messages are
//! known before the publication accepts them.

use aeron_client::ExclusivePublication;
use aeron_layout::frame::{FirstWord, flags, frame_type, place_word, stream_word};
use aeron_memory::log::frame::{Framing, HEADER_LENGTH, aligned_length};
use aeron_memory::log::{LogError, Positions};

use crate::catalog::RecordingDescriptor;

/// Term length, first term and MTU of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamGeometry {
    positions: Positions,
    framing: Framing,
}

/// The range of a message's frames, in bytes of the stream. If the message does not fit into the
/// current term, padding precedes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessagePlace {
    /// Position of the first frame.
    pub(super) begin: i64,
    /// Position after the last frame.
    pub(super) end: i64,
}

/// The ids in the headers of a stream's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameIds {
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
}

impl StreamGeometry {
    fn new(initial_term_id: i32, term_length: usize, mtu_length: i64) -> Result<Self, LogError> {
        Ok(Self {
            positions: Positions::new(term_length, initial_term_id)?,
            framing: Framing::new(mtu_length, term_length)?,
        })
    }

    /// Returns the geometry of a recorded stream.
    pub(super) fn of_recording(recording: &RecordingDescriptor) -> Result<Self, LogError> {
        let term_length = usize::try_from(recording.term_length).unwrap_or(0);
        Self::new(
            recording.initial_term_id,
            term_length,
            recording.mtu_length.into(),
        )
    }

    /// Returns the geometry of a publication's stream.
    pub(super) fn of_publication(publication: &ExclusivePublication) -> Result<Self, LogError> {
        let mtu_length = publication.max_payload_length() + HEADER_LENGTH;
        Self::new(
            publication.initial_term_id(),
            publication.term_buffer_length(),
            i64::try_from(mtu_length).unwrap_or(i64::MAX),
        )
    }

    /// Returns the id of the first term.
    pub(super) fn initial_term_id(self) -> i32 {
        self.positions.initial_term_id()
    }

    /// Returns the length of a term, in bytes.
    pub(super) fn term_length(self) -> usize {
        self.positions.term_length()
    }

    /// Returns the length of the longest frame, in bytes.
    pub(super) fn mtu_length(self) -> usize {
        self.framing.mtu_length()
    }

    /// Returns the maximum length of a message, in bytes.
    pub(super) fn max_message_length(self) -> usize {
        self.framing.max_message_length()
    }

    /// Returns the place of a message of `length` bytes that is appended at `position`. Returns
    /// `None` if the message is too long, or if it would end after the last possible position of
    /// the stream.
    #[inline]
    pub(super) fn place(self, position: i64, length: usize) -> Option<MessagePlace> {
        let framed = self.framing.framed_length(length)?;
        // A position at the end of a term has offset 0 in the next term.
        let offset = self.positions.term_offset(position);
        let room = self.positions.term_length() - offset;
        let begin = match framed <= room {
            true => position,
            false => position + room as i64,
        };
        let end = begin + framed as i64;
        (end <= self.positions.max_position()).then_some(MessagePlace { begin, end })
    }

    /// Returns whether a fragment of a message at `place` ends at `position`, and another fragment follows.
    pub(super) fn is_between_fragments(self, place: MessagePlace, position: i64) -> bool {
        let mtu_length = self.mtu_length() as i64;
        place.begin < position && position < place.end && (position - place.begin) % mtu_length == 0
    }

    /// Returns the frames of a message's fragments from `position` on. `position` is between two
    /// fragments.
    pub(super) fn fragments_from(
        self,
        place: MessagePlace,
        position: i64,
        message: &[u8],
        ids: FrameIds,
    ) -> Vec<u8> {
        let payload_length = self.framing.max_payload_length();
        let first = ((position - place.begin) as usize) / self.mtu_length();
        let rest = message.get(first * payload_length..).unwrap_or_default();
        let mut block = Vec::with_capacity((place.end - position) as usize);
        let count = rest.chunks(payload_length).len();
        for (number, payload) in rest.chunks(payload_length).enumerate() {
            let flags = match number + 1 == count {
                true => flags::END,
                false => 0,
            };
            let begin = block.len();
            self.append_frame(&mut block, position + begin as i64, flags, payload, ids);
        }
        debug_assert_eq!(
            block.len() as i64,
            place.end - position,
            "the rest of the message from {position} on must end at {}",
            place.end
        );
        block
    }

    fn append_frame(
        self,
        block: &mut Vec<u8>,
        position: i64,
        flags: u8,
        payload: &[u8],
        ids: FrameIds,
    ) {
        let length = HEADER_LENGTH + payload.len();
        let end = block.len() + aligned_length(length);
        let first = FirstWord::new(length as i32, flags, frame_type::DATA).0 as u64;
        let place = place_word(self.positions.term_offset(position), ids.session_id);
        let stream = stream_word(ids.stream_id, self.positions.term_id(position));
        for word in [first, place, stream, 0] {
            block.extend_from_slice(&word.to_le_bytes());
        }
        block.extend_from_slice(payload);
        block.resize(end, 0);
    }
}

const _: () = assert!(HEADER_LENGTH == 4 * size_of::<u64>());

#[cfg(test)]
mod tests {
    use aeron_client::SharedBuffer;
    use aeron_memory::Words;
    use aeron_memory::log::append::ExclusiveAppender;
    use aeron_memory::log::buffers::log_length;
    use aeron_memory::log::{AppendError, LogBuffers, LogDescription, LogType};
    use proptest::prelude::*;

    use super::*;

    const TERM_LENGTH: usize = 64 * 1024;
    const MTU_LENGTH: i64 = 256;
    const INITIAL_TERM_ID: i32 = -7;
    const IDS: FrameIds = FrameIds {
        session_id: 11,
        stream_id: 12,
    };

    fn geometry() -> StreamGeometry {
        StreamGeometry::new(INITIAL_TERM_ID, TERM_LENGTH, MTU_LENGTH).unwrap()
    }

    fn appender(position: i64) -> ExclusiveAppender<SharedBuffer> {
        let mut description = LogDescription::new(
            LogType::ExclusivePublication,
            IDS.session_id,
            IDS.stream_id,
            INITIAL_TERM_ID,
        );
        description.term_length = TERM_LENGTH as i32;
        description.mtu_length = MTU_LENGTH as i32;
        let memory = SharedBuffer::heap(log_length(TERM_LENGTH as i64, 4096).unwrap());
        let log = LogBuffers::create(&memory, &description, position).unwrap();
        ExclusiveAppender::new(log).unwrap()
    }

    fn offer(appender: &mut ExclusiveAppender<SharedBuffer>, message: &[u8]) -> i64 {
        match appender.offer(i64::MAX, message) {
            Err(AppendError::AdminAction) => appender.offer(i64::MAX, message).unwrap(),
            position => position.unwrap(),
        }
    }

    /// Returns the bytes of the active term before the appender's offset.
    fn term(appender: &ExclusiveAppender<SharedBuffer>, position: i64) -> Vec<u8> {
        let mut bytes = vec![0; appender.term_offset()];
        let partition = appender.log().positions().partition(position);
        appender.log().term(partition).copy_out(0, &mut bytes);
        bytes
    }

    #[test]
    fn a_message_that_does_not_fit_into_the_current_term_begins_in_the_next_term() {
        let geometry = geometry();
        let last = TERM_LENGTH as i64 - 64;
        assert_eq!(
            geometry.place(last, 33),
            Some(MessagePlace {
                begin: TERM_LENGTH as i64,
                end: TERM_LENGTH as i64 + 96
            })
        );
        assert_eq!(
            geometry.place(last, 32),
            Some(MessagePlace {
                begin: last,
                end: TERM_LENGTH as i64
            })
        );
    }

    #[test]
    fn a_message_that_is_too_long_or_ends_after_the_last_position_has_no_place() {
        let geometry = geometry();
        assert_eq!(geometry.place(0, TERM_LENGTH / 8 + 1), None);
        let max = geometry.positions.max_position();
        assert_eq!(geometry.place(max - 64, 33), None);
        assert_eq!(geometry.place(max - 64, 32).unwrap().end, max);
    }

    proptest! {
        #[test]
        fn computed_places_are_the_places_at_which_a_publication_appends(
            begin in 0..3 * TERM_LENGTH as i64 / 32,
            lengths in prop::collection::vec(0..TERM_LENGTH / 8 + 1, 1..40),
        ) {
            let geometry = geometry();
            let mut position = begin * 32;
            let mut appender = appender(position);
            for length in lengths {
                let place = geometry.place(position, length).unwrap();
                position = offer(&mut appender, &vec![1; length]);
                prop_assert_eq!(place.end, position);
            }
        }

        #[test]
        fn the_last_frames_of_a_message_have_the_bytes_that_the_whole_message_has_there(
            begin in 0..TERM_LENGTH as i64 / 32,
            length in 225..TERM_LENGTH / 8 + 1,
            cut in 1..40_i64,
        ) {
            let geometry = geometry();
            let message: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let place = geometry.place(begin * 32, length).unwrap();
            let position = place.begin + cut * MTU_LENGTH;
            prop_assume!(geometry.is_between_fragments(place, position));
            let mut whole = appender(begin * 32);
            offer(&mut whole, &message);
            let mut rest = appender(position);
            let block = geometry.fragments_from(place, position, &message, IDS);
            prop_assert_eq!(rest.offer_block(i64::MAX, &block).unwrap(), place.end);
            let from = geometry.positions.term_offset(position);
            prop_assert_eq!(&term(&rest, position)[from..], &term(&whole, place.begin)[from..]);
        }
    }
}

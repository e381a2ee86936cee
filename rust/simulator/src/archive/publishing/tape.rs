//! [`PublishedTape`]: the messages that a publisher has accepted. Compares them with the recording.

use aeron_archive::catalog::{Catalog, RecordingDescriptor};
use aeron_archive::reader::RecordingReader;
use aeron_archive::stream::RecordedStream;

use super::super::disk::SimulatedDisk;
use crate::payload::Message;
use crate::truth::Finding;

/// The messages that a publisher has accepted, in order.
#[derive(Debug, Default)]
pub struct PublishedTape {
    /// The messages, each with the position after it. Within a batch, only the position after the last message is
    /// known.
    messages: Vec<(Message, Option<i64>)>,
    /// Highest position that was reported as recorded.
    pub recorded: i64,
    /// End of the recording at the start of the present process.
    continued_at: i64,
    /// Recording id, once it is known.
    pub recording_id: Option<i64>,
}

impl PublishedTape {
    /// Whether this position is after the end of a message, and before the end of the next message. Within a batch,
    /// this is not known.
    pub fn is_between_ends(&self, position: i64) -> bool {
        let mut next_end = None;
        for (_, end) in self.messages.iter().rev() {
            match *end {
                Some(end) if end <= position => return end < position && next_end.is_some(),
                end => next_end = end,
            }
        }
        false
    }

    /// Returns the number of messages.
    pub fn count(&self) -> usize {
        self.messages.len()
    }

    /// Adds a message, with the position after it if that is known.
    pub fn add(&mut self, message: Message, end: Option<i64>) {
        self.messages.push((message, end));
    }

    /// Registers a position that was reported as recorded.
    ///
    /// # Errors
    /// The position is beyond the end of the messages.
    pub fn on_recorded(&mut self, position: i64) -> Result<(), Finding> {
        let end = self.messages.last().and_then(|(_, end)| *end);
        if end.is_some_and(|end| position > end && position != self.recorded) {
            return Err(format!(
                "recording {:?} is at {position}, and the last message ends at {end:?}",
                self.recording_id
            ));
        }
        self.recorded = self.recorded.max(position);
        Ok(())
    }

    /// Registers the position at which a new process continues the recording. Removes the messages after this position,
    /// because the new process offers them again.
    ///
    /// # Errors
    /// The recording ends before a position that was reported as recorded.
    pub fn continue_at(&mut self, position: i64) -> Result<(), Finding> {
        // A recovery may have removed padding, and the first fragments of a message.
        let whole = self.recorded_messages_end();
        if position < whole {
            return Err(format!(
                "recording {:?} ends at {position}, and messages up to {whole} were recorded",
                self.recording_id
            ));
        }
        self.messages
            .retain(|(_, end)| end.is_some_and(|end| end <= position));
        self.recorded = position;
        self.continued_at = position;
        Ok(())
    }

    /// Returns the end of the last message that was reported as recorded.
    fn recorded_messages_end(&self) -> i64 {
        let mut ends = self.messages.iter().rev().filter_map(|(_, end)| *end);
        ends.find(|end| *end <= self.recorded)
            .map_or(self.continued_at, |end| end.max(self.continued_at))
    }

    /// Compares the recording on the disk with the messages. Returns the number of messages, and the number of those
    /// with fragments of two sessions.
    ///
    /// # Errors
    /// A message is missing, occurs twice, or is out of order.
    pub fn check(&self, disk: &SimulatedDisk, seed: u64) -> Result<(u64, u64), Finding> {
        let Some(id) = self.recording_id else {
            return match self.messages.is_empty() {
                true => Ok((0, 0)),
                false => Err("messages were accepted without a recording".to_owned()),
            };
        };
        let catalog = Catalog::open_read_only(disk).map_err(|error| error.to_string())?;
        let recording = catalog.recording(id).map_err(|error| error.to_string())?;
        let (recorded, joined) = read(disk, recording, seed)?;
        for (number, (found, expected)) in recorded.iter().zip(&self.messages).enumerate() {
            let is_equal = found.0 == expected.0 && expected.1.is_none_or(|end| end == found.1);
            if !is_equal {
                return Err(format!(
                    "message {number} of recording {id} is {found:?}, not {expected:?}"
                ));
            }
        }
        if recorded.len() != self.messages.len() {
            return Err(format!(
                "recording {id} has {} messages, and {} were accepted; it is from {} to {}",
                recorded.len(),
                self.messages.len(),
                recording.start_position,
                recording.stop_position
            ));
        }
        Ok((recorded.len() as u64, joined))
    }
}

/// Reads the complete messages of a recording in the same way as a subscriber of a replay. Also returns the number of
/// messages with fragments of two sessions. If frames have checksums, the sessions of the frames are not known.
fn read(
    disk: &SimulatedDisk,
    recording: &RecordingDescriptor,
    seed: u64,
) -> Result<(Vec<(Message, i64)>, u64), Finding> {
    let stream = RecordedStream::of_recording(recording).map_err(|error| error.to_string())?;
    let (start, stop) = (recording.start_position, recording.stop_position);
    let mut reader = RecordingReader::new(disk.clone(), stream, start, stop)
        .map_err(|error| error.to_string())?;
    let (mut messages, mut joined) = (Vec::new(), 0);
    let mut unfinished: Option<Vec<u8>> = None;
    let mut sessions = Vec::new();
    while let Some(frame) = reader.next_frame().map_err(|error| error.to_string())? {
        if frame.is_padding() {
            unfinished = None;
            continue;
        }
        if frame.is_begin() {
            unfinished = Some(Vec::new());
            sessions.clear();
        }
        let Some(bytes) = &mut unfinished else {
            return Err(format!(
                "the frame at {} of recording {} belongs to no message",
                frame.position(),
                recording.recording_id
            ));
        };
        bytes.extend_from_slice(frame.payload());
        sessions.push(frame.session_id());
        if frame.is_end() {
            let end = frame.end_position();
            let message = Message::recognise(bytes, seed).ok_or_else(|| {
                format!(
                    "the message of recording {} up to {end} was never offered",
                    recording.recording_id
                )
            })?;
            messages.push((message, end));
            unfinished = None;
            sessions.dedup();
            joined += u64::from(sessions.len() == 2);
        }
    }
    Ok((messages, joined))
}

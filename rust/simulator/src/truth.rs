//! The published messages, and checks of the received messages.

use std::collections::BTreeMap;

use aeron_client::{LostStreamKind, StreamReport};
use aeron_memory::log::Positions;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_protocol::frame::Nak;
use fastrand::Rng;

use crate::network::HostId;
use crate::payload::Message;

/// Description of the rule that a driver or client broke.
pub type Finding = String;

/// Identifies a publication: host, number of driver starts on the host so far, original registration id.
pub type PublicationOrigin = (HostId, u64, i64);

/// A stream within its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelStream {
    /// Session id of the publication.
    pub session_id: i32,
    /// Stream id of the publication.
    pub stream_id: i32,
}

/// Maximum number of messages between the last message and the message near which a forged NAK begins.
const MAX_FORGED_DISTANCE: usize = 60;
/// Maximum distance from the end of that message to the start of a forged NAK, in multiples of the frame alignment. The
/// NAK may start at a frame, or within a claim or a message.
const MAX_FORGED_FRAMES: i64 = 40;

/// All publications and messages of a schedule.
#[derive(Debug, Default)]
pub struct Truth {
    publications: Vec<PublicationRecord>,
    /// Numbers of the publications.
    numbers: BTreeMap<PublicationOrigin, u32>,
    received: u64,
}

/// A publication and its messages.
#[derive(Debug)]
pub struct PublicationRecord {
    /// The publication's stream.
    pub stream: ChannelStream,
    /// Maximum length of a message in one frame.
    pub max_payload_length: usize,
    /// End position and length of each message.
    messages: Vec<(i64, usize)>,
    start_position: i64,
    positions: Positions,
    /// Greatest end position of a received message.
    received_position: i64,
    /// Position after which no subscriber will get anything, because the driver was lost.
    sent_position: Option<i64>,
}

/// Progress of one subscriber in one image.
#[derive(Debug)]
pub struct ImageProgress {
    /// Join position of the image.
    pub join_position: i64,
    /// Whether the stream must be complete.
    pub is_reliable: bool,
    /// Number of the publication; `None` before the first message.
    pub publication: Option<u32>,
    /// Number of the next expected message.
    pub next: u32,
}

impl Truth {
    /// Registers a publication if it is not registered yet. Returns its number.
    pub fn open_publication(
        &mut self,
        origin: PublicationOrigin,
        record: impl FnOnce() -> PublicationRecord,
    ) -> u32 {
        *self.numbers.entry(origin).or_insert_with(|| {
            self.publications.push(record());
            self.publications.len() as u32 - 1
        })
    }

    /// Returns a publication.
    pub fn publication(&self, number: u32) -> &PublicationRecord {
        &self.publications[number as usize]
    }

    /// Returns the next message of a publication.
    pub fn next_message(&self, publication: u32, length: usize) -> Message {
        Message {
            publication,
            number: self.publication(publication).count(),
            length,
        }
    }

    /// Registers a message that its publication accepted, with its end position.
    pub fn on_published(&mut self, message: Message, end_position: i64) {
        let record = &mut self.publications[message.publication as usize];
        record.messages.push((end_position, message.length));
    }

    /// Returns the number of messages that all publishers have published.
    pub fn published(&self) -> u64 {
        let counts = self.publications.iter().map(|record| record.messages.len());
        counts.sum::<usize>() as u64
    }

    /// Returns the number of received messages, summed over all subscribers.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Checks the report of a publication whose driver was lost, and remembers what was certainly lost.
    ///
    /// # Errors
    /// The report contradicts the published messages, or a subscriber has received what was certainly lost.
    pub fn on_report(
        &mut self,
        report: &StreamReport,
        current: Option<u32>,
    ) -> Result<(), Finding> {
        if report.kind == LostStreamKind::Image {
            return Ok(());
        }
        let stream = ChannelStream {
            session_id: report.session_id,
            stream_id: report.stream_id,
        };
        let mut records = self.publications.iter_mut().enumerate();
        let Some((number, record)) = records.rfind(|(_, record)| record.stream == stream) else {
            return Ok(());
        };
        // A driver that goes on may still have the log of a shared publication. Then the stream goes on too.
        if current == Some(number as u32) {
            return Ok(());
        }
        if let Some(lost) = report.lost_bytes {
            let sent = report.position - lost;
            record.check_sent(sent)?;
            record.sent_position = Some(sent);
        }
        Ok(())
    }

    /// Checks the bytes of a received message. `end_position` is the position after the message in `stream`.
    ///
    /// # Errors
    /// The bytes were not published, or they are not the next message.
    pub fn on_received(
        &mut self,
        progress: &mut ImageProgress,
        stream: ChannelStream,
        message: Option<Message>,
        end_position: i64,
    ) -> Result<(), Finding> {
        let ChannelStream {
            session_id,
            stream_id,
        } = stream;
        let Some(message) = message else {
            return Err(format!(
                "session {session_id} stream {stream_id}: bytes at {end_position} were never published"
            ));
        };
        let record = self
            .publications
            .get(message.publication as usize)
            .filter(|record| record.stream == stream)
            .ok_or_else(|| {
                format!("session {session_id} stream {stream_id} got {message:?} of another stream")
            })?;
        let published = record.messages.get(message.number as usize);
        if published != Some(&(end_position, message.length)) {
            return Err(format!(
                "{message:?} came at {end_position}, but its published end and length are {published:?}"
            ));
        }
        let expected = match progress.publication {
            Some(_) => progress.next..=progress.next,
            None => record.first_from(progress.join_position),
        };
        let is_next = match progress.is_reliable {
            true => expected.contains(&message.number),
            false => message.number >= *expected.start(),
        };
        if !is_next {
            return Err(format!(
                "{message:?} came at {end_position}, expected {expected:?} after joining at {}",
                progress.join_position
            ));
        }
        let record = &mut self.publications[message.publication as usize];
        record.received_position = record.received_position.max(end_position);
        if let Some(sent) = record.sent_position {
            record.check_sent(sent)?;
        }
        progress.publication = Some(message.publication);
        progress.next = message.number + 1;
        self.received += 1;
        Ok(())
    }
}

impl PublicationRecord {
    /// Creates a publication without messages.
    pub fn new(
        stream: ChannelStream,
        start_position: i64,
        positions: Positions,
        max_payload_length: usize,
    ) -> Self {
        Self {
            start_position,
            positions,
            stream,
            max_payload_length,
            messages: Vec::new(),
            received_position: start_position,
            sent_position: None,
        }
    }

    /// Checks that no subscriber has received a message that was not sent.
    fn check_sent(&self, sent_position: i64) -> Result<(), Finding> {
        match self.received_position <= sent_position {
            true => Ok(()),
            false => Err(format!(
                "{:?} was received up to {}, but the report says that it is lost after {sent_position}",
                self.stream, self.received_position
            )),
        }
    }

    /// Returns the number of messages so far.
    pub fn count(&self) -> u32 {
        self.messages.len() as u32
    }

    /// Returns a NAK for bytes near the end of a random message. The bytes need not have been sent.
    pub fn any_nak(&self, random: &mut Rng) -> Nak {
        let ends = self.messages.iter().rev().map(|(end, _)| *end);
        let position = ends
            .chain([self.start_position])
            .nth(random.usize(..=self.messages.len().min(MAX_FORGED_DISTANCE)))
            .unwrap_or(self.start_position);
        let position = position + random.i64(0..MAX_FORGED_FRAMES) * FRAME_ALIGNMENT as i64;
        let term_length = self.positions.term_length() as i32;
        Nak {
            session_id: self.stream.session_id,
            stream_id: self.stream.stream_id,
            term_id: self.positions.term_id(position),
            term_offset: self.positions.term_offset(position) as i32,
            length: random.i32(1..=2 * term_length),
        }
    }

    /// Returns the range of messages that may be the first one for a subscriber that joins at a position. The range
    /// begins with the first message that ends after the position. If this message has several frames, the position may
    /// be inside the message, so the next message may be the first one too.
    fn first_from(&self, join_position: i64) -> std::ops::RangeInclusive<u32> {
        let first = self
            .messages
            .partition_point(|(end, _)| *end <= join_position);
        let is_inside = self.messages.get(first).is_some_and(|(_, length)| {
            let begin = first
                .checked_sub(1)
                .map_or(self.start_position, |before| self.messages[before].0);
            *length > self.max_payload_length && join_position > begin
        });
        first as u32..=(first + usize::from(is_inside)) as u32
    }
}

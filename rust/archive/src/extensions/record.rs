//! The bytes of the file of extensions: a header, and then a record for each change.
//!
//! A record holds a message of the control protocol. The message contains its block length, so this
//! version can read messages of later versions. The control session id and the correlation id of the
//! message are 0.

use aeron_layout::private_archive::{ExtensionFileLayout, ExtensionRecordLayout};
use aeron_layout::{Layout, U32};
use aeron_protocol::archive::extension::{
    ClockNote, ExtensionNote, ExtensionRequest, ExtensionResponse, ReaderDescriptor,
    RecordingInfo as RecordingInfoMessage, RemoveReaderRequest, RetentionDescriptor, RetentionStep,
    SubscriptionNote,
};
use aeron_protocol::archive::{NULL_VALUE, RetentionHolder, SourceLocation};

use super::state::{
    ClockState, ExtensionChange, NamedReader, RecordingLabels, RecordingLink,
    ResumableSubscription, RetentionPolicy, RetentionScope, SegmentDeletion,
};
use crate::damage::NewerVersion;

/// Length of the header of the file in bytes.
pub(super) const FILE_HEADER_LENGTH: usize = ExtensionFileLayout::LENGTH;
const RECORD_HEADER_LENGTH: usize = ExtensionRecordLayout::LENGTH;
/// Upper bound for the length of a record. The longest record has the longest metadata and the longest name.
const MAX_RECORD_LENGTH: usize = 32 * 1024;
/// Records begin at multiples of this number of bytes.
const ALIGNMENT: usize = 8;
const MAGIC: [u8; 4] = *b"AEXT";
/// Version of the layout. A later version keeps the layout of the header, so that this software can refuse its files.
const VERSION: u32 = 1;

/// The changes in a file, and the end of the last whole record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadRecords {
    pub changes: Vec<ExtensionChange>,
    pub end: usize,
}

/// Decodes the bytes of a file.
///
/// The last record is ignored if it is incomplete or has a wrong checksum, because a kill or a loss of power may have
/// interrupted its write. Returns `None` if other bytes are damaged. Never panics.
pub fn decode_records(bytes: &[u8]) -> Option<Vec<ExtensionChange>> {
    read_records(bytes).map(|records| records.changes)
}

/// Decodes the bytes of a file, with the same rules as [`decode_records`].
pub(super) fn read_records(bytes: &[u8]) -> Option<ReadRecords> {
    let (header, _) = bytes.split_first_chunk::<FILE_HEADER_LENGTH>()?;
    if *header != file_header() {
        return None;
    }
    let mut changes = Vec::new();
    let mut end = FILE_HEADER_LENGTH;
    while let Some(rest) = bytes.get(end..).filter(|rest| !rest.is_empty()) {
        match read_record(rest) {
            Record::Whole { change, length } => {
                changes.push(change);
                end += length;
            }
            // A kill or a loss of power during the write leaves such a record at the end of the file.
            Record::Incomplete => break,
            Record::Damaged => return None,
        }
    }
    Some(ReadRecords { changes, end })
}

/// Returns the version in a sound header if it is later than the version of this software.
pub(super) fn newer_version(bytes: &[u8; FILE_HEADER_LENGTH]) -> Option<NewerVersion> {
    let header = ExtensionFileLayout::of(bytes);
    let version = header.version.get();
    let is_sound =
        header.magic == MAGIC && header.checksum == checksum(&[&bytes[..FILE_HEADER_LENGTH - 4]]);
    (is_sound && version > VERSION).then_some(NewerVersion {
        version,
        newest: VERSION,
    })
}

/// Returns the first bytes of the file.
pub(super) fn file_header() -> [u8; FILE_HEADER_LENGTH] {
    let mut layout = ExtensionFileLayout {
        magic: MAGIC,
        version: VERSION.into(),
        reserved: [0; 4],
        checksum: U32::ZERO,
    };
    layout.checksum = checksum(&[&layout.to_bytes()[..FILE_HEADER_LENGTH - 4]]);
    layout.to_bytes()
}

/// Appends the record of a change to `out`.
pub(super) fn write_record(change: &ExtensionChange, out: &mut Vec<u8>) {
    let message = message_of(change);
    let length = U32::new(message.len() as u32);
    let header = ExtensionRecordLayout {
        length,
        checksum: checksum(&[&length.to_bytes(), &message]),
    };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(&message);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

enum Record {
    Whole {
        change: ExtensionChange,
        length: usize,
    },
    /// A last record that is incomplete or has a wrong checksum.
    Incomplete,
    Damaged,
}

fn read_record(bytes: &[u8]) -> Record {
    let Some(header) = ExtensionRecordLayout::first_in(bytes) else {
        return Record::Incomplete;
    };
    let rest = &bytes[RECORD_HEADER_LENGTH..];
    let declared = header.length.get() as usize;
    let padded = declared.next_multiple_of(ALIGNMENT);
    let is_last = padded >= rest.len();
    let message = rest.get(..declared).filter(|_| is_sound(bytes));
    match message.filter(|_| padded <= rest.len()) {
        Some(message) => match change_of(message) {
            Some(change) => Record::Whole {
                change,
                length: RECORD_HEADER_LENGTH + padded,
            },
            None => Record::Damaged,
        },
        // A loss of power may keep the new length of the file and lose the bytes.
        None if is_last || bytes.iter().all(|byte| *byte == 0) => Record::Incomplete,
        None if has_lost_its_begin(bytes) => Record::Incomplete,
        None => Record::Damaged,
    }
}

/// Returns whether the bytes are a last record of which a loss of power has kept only later sectors.
fn has_lost_its_begin(bytes: &[u8]) -> bool {
    let is_begin_lost = bytes
        .iter()
        .take(RECORD_HEADER_LENGTH)
        .all(|byte| *byte == 0);
    let mut later = (ALIGNMENT..bytes.len()).step_by(ALIGNMENT);
    is_begin_lost && bytes.len() <= MAX_RECORD_LENGTH && !later.any(|at| is_sound(&bytes[at..]))
}

/// Returns whether the bytes begin with a record that has a correct checksum.
fn is_sound(bytes: &[u8]) -> bool {
    let Some(header) = ExtensionRecordLayout::first_in(bytes) else {
        return false;
    };
    let message = bytes[RECORD_HEADER_LENGTH..].get(..header.length.get() as usize);
    message
        .is_some_and(|message| header.checksum == checksum(&[&header.length.to_bytes(), message]))
}

fn checksum(parts: &[&[u8]]) -> U32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    U32::new(hasher.finalize())
}

fn message_of(change: &ExtensionChange) -> Vec<u8> {
    let (control_session_id, correlation_id) = (0, 0);
    match change {
        ExtensionChange::Reader(reader) => {
            let mut bytes = response(&ExtensionResponse::Reader(reader.descriptor(0, 0)));
            // The owner follows the message: clients do not get it, and earlier releases ignore it.
            bytes.extend_from_slice(&reader.owner);
            bytes
        }
        ExtensionChange::ReaderRemoved { recording_id, name } => {
            let message = ExtensionRequest::RemoveReader(RemoveReaderRequest {
                control_session_id,
                correlation_id,
                recording_id: *recording_id,
                name: name.as_bytes(),
            });
            let mut bytes = vec![0; message.encoded_length()];
            message.encode(&mut bytes).expect("the length fits");
            bytes
        }
        ExtensionChange::Policy(policy) => {
            response(&ExtensionResponse::Retention(policy.descriptor(0, 0)))
        }
        ExtensionChange::Info { recording_id, info } => response(
            &ExtensionResponse::RecordingInfo(info.message(0, 0, *recording_id)),
        ),
        ExtensionChange::Subscription(subscription) => {
            note(&ExtensionNote::Subscription(SubscriptionNote {
                control_session_id,
                correlation_id,
                recording_id: subscription.recording_id.unwrap_or(NULL_VALUE),
                stream_id: subscription.stream_id,
                source_location: subscription.source_location,
                is_removed: false,
                channel: subscription.channel.as_bytes(),
            }))
        }
        ExtensionChange::SubscriptionStopped { channel, stream_id } => {
            note(&ExtensionNote::Subscription(SubscriptionNote {
                control_session_id,
                correlation_id,
                recording_id: NULL_VALUE,
                stream_id: *stream_id,
                source_location: SourceLocation::Local,
                is_removed: true,
                channel: channel.as_bytes(),
            }))
        }
        ExtensionChange::Deleting {
            recording_id,
            deletion:
                SegmentDeletion {
                    range,
                    keeps_indexes,
                },
        } => response(&ExtensionResponse::RetentionStep(RetentionStep {
            control_session_id,
            correlation_id,
            recording_id: *recording_id,
            start_position: range.start,
            new_start_position: range.end,
            allowed_position: range.end,
            is_purge: false,
            held_by: match keeps_indexes {
                true => RetentionHolder::Copy,
                false => RetentionHolder::Nothing,
            },
            reader: &[],
        })),
        ExtensionChange::Clock(clock) => note(&ExtensionNote::Clock(ClockNote {
            control_session_id,
            correlation_id,
            last_ms: clock.last_ms,
            remaining_ms: clock.remaining_ms,
        })),
    }
}

fn response(message: &ExtensionResponse<'_>) -> Vec<u8> {
    let mut bytes = vec![0; message.encoded_length()];
    message.encode(&mut bytes).expect("the length fits");
    bytes
}

fn note(message: &ExtensionNote<'_>) -> Vec<u8> {
    let mut bytes = vec![0; message.encoded_length()];
    message.encode(&mut bytes).expect("the length fits");
    bytes
}

fn change_of(message: &[u8]) -> Option<ExtensionChange> {
    match ExtensionNote::decode(message) {
        Ok(ExtensionNote::Subscription(note)) => {
            let (channel, stream_id) = (text(note.channel)?, note.stream_id);
            return Some(match note.is_removed {
                true => ExtensionChange::SubscriptionStopped { channel, stream_id },
                false => ExtensionChange::Subscription(ResumableSubscription {
                    channel,
                    stream_id,
                    source_location: note.source_location,
                    recording_id: limit(note.recording_id),
                }),
            });
        }
        Ok(ExtensionNote::Clock(note)) => {
            return Some(ExtensionChange::Clock(ClockState {
                last_ms: note.last_ms,
                remaining_ms: note.remaining_ms,
            }));
        }
        Err(_) => {}
    }
    if let Ok(ExtensionRequest::RemoveReader(removed)) = ExtensionRequest::decode(message) {
        return Some(ExtensionChange::ReaderRemoved {
            recording_id: removed.recording_id,
            name: text(removed.name)?,
        });
    }
    match ExtensionResponse::decode(message).ok()? {
        found @ ExtensionResponse::Reader(reader) => Some(ExtensionChange::Reader(NamedReader {
            recording_id: reader.recording_id,
            name: text(reader.name)?,
            owner: message.get(found.encoded_length()..)?.to_vec(),
            position: reader.position,
            committed_ms: reader.committed_ms,
            max_age_ms: limit(reader.max_age_ms),
            max_lag: limit(reader.max_lag),
        })),
        ExtensionResponse::Retention(policy) => Some(ExtensionChange::Policy(RetentionPolicy {
            scope: match limit(policy.recording_id) {
                Some(recording_id) => RetentionScope::Recording(recording_id),
                None => RetentionScope::Matching {
                    stream_id: policy.apply_stream_id.then_some(policy.stream_id),
                    channel_fragment: text(policy.channel)?,
                },
            },
            max_bytes: limit(policy.max_bytes),
            max_age_ms: limit(policy.max_age_ms),
        })),
        ExtensionResponse::RecordingInfo(info) => Some(ExtensionChange::Info {
            recording_id: info.recording_id,
            info: RecordingLabels {
                name: text(info.name)?,
                metadata: info.metadata.to_vec(),
                link: limit(info.predecessor_id).map(|predecessor_id| RecordingLink {
                    predecessor_id,
                    gap_from: info.gap_from,
                    gap_to: limit(info.gap_to),
                }),
            },
        }),
        ExtensionResponse::RetentionStep(step) => Some(ExtensionChange::Deleting {
            recording_id: step.recording_id,
            deletion: SegmentDeletion {
                range: step.start_position..step.new_start_position,
                keeps_indexes: step.held_by == RetentionHolder::Copy,
            },
        }),
        ExtensionResponse::TimePosition(_) | ExtensionResponse::CopiedRange(_) => None,
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// Returns an optional limit or id of a message. In the message, a negative value means that it is not set.
fn limit(value: i64) -> Option<i64> {
    (value >= 0).then_some(value)
}

impl NamedReader {
    /// Returns the reader as a message.
    pub(crate) fn descriptor(
        &self,
        control_session_id: i64,
        correlation_id: i64,
    ) -> ReaderDescriptor<'_> {
        ReaderDescriptor {
            control_session_id,
            correlation_id,
            recording_id: self.recording_id,
            position: self.position,
            committed_ms: self.committed_ms,
            max_age_ms: self.max_age_ms.unwrap_or(NULL_VALUE),
            max_lag: self.max_lag.unwrap_or(NULL_VALUE),
            name: self.name.as_bytes(),
        }
    }
}

impl RetentionPolicy {
    /// Returns the policy as a message.
    pub(crate) fn descriptor(
        &self,
        control_session_id: i64,
        correlation_id: i64,
    ) -> RetentionDescriptor<'_> {
        let (recording_id, stream_id, channel) = match &self.scope {
            RetentionScope::Recording(recording_id) => (*recording_id, None, ""),
            RetentionScope::Matching {
                stream_id,
                channel_fragment,
            } => (NULL_VALUE, *stream_id, channel_fragment.as_str()),
        };
        RetentionDescriptor {
            control_session_id,
            correlation_id,
            recording_id,
            max_bytes: self.max_bytes.unwrap_or(NULL_VALUE),
            max_age_ms: self.max_age_ms.unwrap_or(NULL_VALUE),
            apply_stream_id: stream_id.is_some(),
            stream_id: stream_id.unwrap_or(0),
            channel: channel.as_bytes(),
        }
    }
}

impl RecordingLabels {
    /// Returns the values as a message.
    pub(crate) fn message(
        &self,
        control_session_id: i64,
        correlation_id: i64,
        recording_id: i64,
    ) -> RecordingInfoMessage<'_> {
        RecordingInfoMessage {
            control_session_id,
            correlation_id,
            recording_id,
            predecessor_id: self.link.map_or(NULL_VALUE, |link| link.predecessor_id),
            gap_from: self.link.map_or(NULL_VALUE, |link| link.gap_from),
            gap_to: self.link.and_then(|link| link.gap_to).unwrap_or(NULL_VALUE),
            name: self.name.as_bytes(),
            metadata: &self.metadata,
        }
    }
}

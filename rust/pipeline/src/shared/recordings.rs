//! [`SharedRecording`]: a recording of an archive server. [`SharedSelection`]: selects the recordings that a query
//! reads.

use std::collections::BTreeMap;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{ArchiveCall, ArchiveClientError};
use aeron_archive::stream::RecordedStream;
use aeron_protocol::archive::ArchiveErrorCode;

use super::connection::{ArchiveAccess, ConnectionLease};
use super::links::links;
use crate::error::{LiveCode, LiveError};
use crate::offsets::RecordingOffset;
use crate::partition::RecordingPiece;

/// Selects recordings of an archive.
#[derive(Debug, Clone)]
pub enum SharedSelection {
    /// Recordings by their ids, as inclusive ranges of first and last id, and the recordings that continue them.
    Ids(Vec<(i64, i64)>),
    /// Recordings by channel and stream.
    Channel(ChannelSelection),
}

/// Selects recordings by channel and stream.
#[derive(Debug, Clone)]
pub struct ChannelSelection {
    /// Text that the channel of the recording contains; an empty text selects all channels.
    pub fragment: String,
    /// Streams; an empty list selects all streams.
    pub stream_ids: Vec<i32>,
}

/// A recording, with the position up to which it is recorded.
#[derive(Debug, Clone)]
pub(super) struct SharedRecording {
    pub descriptor: RecordingDescriptor,
    pub stream: RecordedStream,
    /// Recorded position of an active recording, else the stop position.
    pub end: i64,
}

impl SharedSelection {
    /// Lists the selected recordings in the order of their ids.
    pub(super) fn list(
        &self,
        access: &ArchiveAccess,
        connection: &ConnectionLease,
    ) -> Result<Vec<SharedRecording>, LiveError> {
        let failed = |error: ArchiveClientError| access.error(&error);
        let mut found = self.descriptors(connection).map_err(failed)?;
        let has_stopped = || found.values().any(|recording| !recording.is_unfinished());
        if matches!(self, Self::Ids(_)) && has_stopped() {
            // A later recording has a higher id than the recording that it continues.
            for (id, link) in links(access, connection)? {
                if found.contains_key(&link.predecessor_id) && !found.contains_key(&id) {
                    let listed = connection
                        .call(ArchiveCall::list_recordings(id, 1))
                        .map_err(failed)?;
                    let later = listed.into_iter().find(|later| later.recording_id == id);
                    found.extend(later.map(|later| (id, later)));
                }
            }
        }
        let listed = found.into_values().collect();
        let listed = with_copies(connection, listed).map_err(failed)?;
        with_ends(access, connection, listed)
    }

    /// Checks that each range of ids has a recording in the list.
    ///
    /// # Errors
    /// A range has none.
    pub(super) fn check_exists(&self, listed: &[SharedRecording]) -> Result<(), LiveError> {
        let Self::Ids(ranges) = self else {
            return Ok(());
        };
        let is_empty = |&&(first, last): &&(i64, i64)| {
            !listed
                .iter()
                .any(|recording| (first..=last).contains(&recording.id()))
        };
        match ranges.iter().find(is_empty) {
            None => Ok(()),
            Some((first, last)) => {
                let ids = match first == last {
                    true => format!("recording {first}"),
                    false => format!("recording from {first} to {last}"),
                };
                let text = format!("option recordingId: the archive has no {ids}");
                Err(LiveError::new(LiveCode::Option, text))
            }
        }
    }

    fn descriptors(
        &self,
        connection: &ConnectionLease,
    ) -> Result<BTreeMap<i64, RecordingDescriptor>, ArchiveClientError> {
        let mut found = BTreeMap::new();
        match self {
            Self::Ids(ranges) => {
                for &(first, last) in ranges {
                    let count = i32::try_from(last - first)
                        .map_or(i32::MAX, |count| count.saturating_add(1));
                    let listed = connection.call(ArchiveCall::list_recordings(first, count))?;
                    let listed = listed.into_iter();
                    found.extend(
                        listed
                            .filter(|recording| recording.recording_id <= last)
                            .map(|recording| (recording.recording_id, recording)),
                    );
                }
            }
            Self::Channel(selection) if selection.stream_ids.is_empty() => {
                let listed = connection.call(ArchiveCall::list_recordings(0, i32::MAX))?;
                let is_selected = |recording: &RecordingDescriptor| {
                    recording.original_channel.contains(&selection.fragment)
                };
                found.extend(
                    listed
                        .into_iter()
                        .filter(is_selected)
                        .map(|recording| (recording.recording_id, recording)),
                );
            }
            Self::Channel(selection) => {
                for &stream_id in &selection.stream_ids {
                    let fragment = &selection.fragment;
                    let listed = connection.call(ArchiveCall::list_recordings_for_uri(
                        0,
                        i32::MAX,
                        fragment,
                        stream_id,
                    ))?;
                    found.extend(
                        listed
                            .into_iter()
                            .map(|recording| (recording.recording_id, recording)),
                    );
                }
            }
        }
        Ok(found)
    }
}

/// Lowers the start positions of recordings to the start positions of their copies in object storage.
fn with_copies(
    connection: &ConnectionLease,
    mut descriptors: Vec<RecordingDescriptor>,
) -> Result<Vec<RecordingDescriptor>, ArchiveClientError> {
    // A recording that begins at position 0 has nothing before its start.
    let later = descriptors
        .iter()
        .filter(|descriptor| descriptor.start_position > 0);
    let ids: Vec<_> = later.map(|descriptor| descriptor.recording_id).collect();
    let ranges = connection.copied_ranges(&ids)?;
    for descriptor in &mut descriptors {
        let id = descriptor.recording_id;
        if let Some(range) = ranges.iter().find(|range| range.recording_id == id) {
            // The recording may have been listed before local files were deleted.
            descriptor.start_position = descriptor.start_position.min(range.start_position);
        }
    }
    Ok(descriptors)
}

/// Adds the end of each recording. Leaves out recordings that were purged after they were listed.
fn with_ends(
    access: &ArchiveAccess,
    connection: &ConnectionLease,
    descriptors: Vec<RecordingDescriptor>,
) -> Result<Vec<SharedRecording>, LiveError> {
    let failed = |error: &ArchiveClientError| access.error(error);
    // All requests are sent before the first wait: one round trip for all active recordings.
    let begin = |descriptor: &RecordingDescriptor| {
        let id = descriptor.recording_id;
        let position = || connection.begin(ArchiveCall::max_recorded_position(id));
        descriptor.is_unfinished().then(position).transpose()
    };
    let requests = descriptors.iter().map(begin);
    let requests: Vec<_> = requests
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    let mut recordings = Vec::with_capacity(descriptors.len());
    for (descriptor, request) in descriptors.into_iter().zip(requests) {
        let end = match request.map(|mut request| request.wait()) {
            None => descriptor.stop_position,
            Some(Ok(end)) => end,
            Some(Err(error))
                if error.archive_code() == Some(ArchiveErrorCode::UnknownRecording) =>
            {
                continue;
            }
            Some(Err(error)) => return Err(failed(&error)),
        };
        let stream = RecordedStream::of_recording(&descriptor)
            .map_err(|error| LiveError::new(LiveCode::Archive, error.to_string()))?;
        recordings.push(SharedRecording {
            end: end.max(descriptor.start_position),
            descriptor,
            stream,
        });
    }
    debug_assert!(
        recordings.is_sorted_by(|one, next| one.id() < next.id()),
        "the recordings must be in the order of their ids, because they are found by binary search"
    );
    Ok(recordings)
}

impl SharedRecording {
    pub fn id(&self) -> i64 {
        self.descriptor.recording_id
    }

    pub fn start(&self) -> i64 {
        self.descriptor.start_position
    }

    /// Returns a position in the recording in the form in which an offset contains it.
    pub fn at(&self, position: i64) -> RecordingOffset {
        RecordingOffset {
            stream_id: self.descriptor.stream_id,
            session_id: self.descriptor.session_id,
            recording_id: self.id(),
            position,
        }
    }

    /// Returns the fields that a worker needs.
    pub fn piece(&self) -> RecordingPiece {
        let descriptor = &self.descriptor;
        RecordingPiece {
            id: descriptor.recording_id,
            stream_id: descriptor.stream_id,
            session_id: descriptor.session_id,
            initial_term_id: descriptor.initial_term_id,
            term_length: descriptor.term_length,
            segment_length: descriptor.segment_length,
            start_position: descriptor.start_position,
            channel: Some(descriptor.original_channel.to_string()),
        }
    }

    /// Returns the start of the term that contains `position`, or the start of the recording if it is later.
    pub fn term_begin(&self, position: i64) -> i64 {
        let begin = self.stream.positions().term_begin(position);
        begin.max(self.start())
    }
}

/// Returns the recording with this id.
pub(super) fn find(recordings: &[SharedRecording], recording_id: i64) -> Option<&SharedRecording> {
    let at = recordings.binary_search_by_key(&recording_id, SharedRecording::id);
    at.ok().map(|at| &recordings[at])
}

//! Links between recordings. If an archive cannot extend a recording, it begins a new recording of the same stream,
//! with a link to the earlier recording.
//!
//! The messages between the two recordings were not recorded.

use std::collections::{BTreeMap, HashSet};

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{ArchiveCall, ArchiveClientError, ListedInfo};
use aeron_archive::extensions::RecordingLink;

use super::connection::{ArchiveAccess, ArchiveConnections, ConnectionLease};
use crate::error::LiveError;

/// Returns the links of an archive, by the id of the later recording. The map is empty if the archive does not support
/// links.
///
/// # Errors
/// The archive cannot be reached, or refuses the request.
pub(super) fn links(
    access: &ArchiveAccess,
    connection: &ConnectionLease,
) -> Result<BTreeMap<i64, RecordingLink>, LiveError> {
    if connection.has_no_links() {
        return Ok(BTreeMap::new());
    }
    let page = |from| ArchiveCall::list_recording_info(None, "", from);
    match connection.list(page).and_then(|mut listing| listing.wait()) {
        Ok(infos) => {
            let link = |listed: ListedInfo| Some((listed.recording_id, listed.info.link?));
            Ok(infos.into_iter().filter_map(link).collect())
        }
        Err(ArchiveClientError::NotSupported { .. }) => {
            connection.note_no_links();
            Ok(BTreeMap::new())
        }
        Err(error) => Err(access.error(&error)),
    }
}

/// Returns whether a link between two of these recordings is possible: only recordings of one session are linked.
pub(super) fn may_be_linked<'a>(
    mut recordings: impl Iterator<Item = &'a RecordingDescriptor>,
) -> bool {
    let mut sessions = HashSet::new();
    recordings.any(|recording| !sessions.insert((recording.stream_id, recording.session_id)))
}

/// Returns the range of positions that neither recording of a link has; `None` if there is no such range.
pub(super) fn gap(link: &RecordingLink) -> Option<(i64, i64)> {
    let to = link.gap_to?;
    (link.gap_from < to).then_some((link.gap_from, to))
}

/// Returns a log line for each of `recordings` that continues an earlier recording after a gap, if `is_read` returns
/// `true` for the id of the earlier recording.
///
/// # Errors
/// The same errors as [`links`].
pub(super) fn gap_lines(
    connections: &ArchiveConnections,
    access: &ArchiveAccess,
    recordings: &[&RecordingDescriptor],
    is_read: impl Fn(i64) -> bool,
) -> Result<Vec<String>, LiveError> {
    if !may_be_linked(recordings.iter().copied()) {
        return Ok(Vec::new());
    }
    let links = connections.with(access, |connection| links(access, &connection))?;
    let line = |recording: &&RecordingDescriptor| {
        let link = links.get(&recording.recording_id)?;
        let (from, to) = gap(link).filter(|_| is_read(link.predecessor_id))?;
        Some(format!(
            "recording {} continues recording {} of stream {} session {}, and positions {from} to {to} were not recorded",
            recording.recording_id, link.predecessor_id, recording.stream_id, recording.session_id
        ))
    };
    Ok(recordings.iter().filter_map(line).collect())
}

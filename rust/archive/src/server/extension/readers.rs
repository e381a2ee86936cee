//! Requests about named readers.

use aeron_protocol::archive::extension::{
    CommitReaderRequest, ExtensionResponse, ListReadersRequest, ReaderDescriptor,
    RemoveReaderRequest,
};
use aeron_protocol::archive::{ArchiveErrorCode, NULL_VALUE, RequestIds};

use super::page::encoded;
use super::{DescriptorPage, name_of, not_stored};
use crate::extensions::{ExtensionChange, MAX_READERS, NamedReader};
use crate::server::ArchiveError;
use crate::server::conductor::ArchiveConductor;
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Creates a reader, or stores the position of an existing reader. Returns the position.
    ///
    /// # Errors
    /// The recording does not exist, the position is not in the recording, the name is not valid, there are too many
    /// readers, the reader belongs to another user, or the file system returns an error.
    pub(super) fn commit_reader(
        &mut self,
        ids: RequestIds,
        request: &CommitReaderRequest<'_>,
    ) -> Result<i64, ArchiveError> {
        let recording_id = request.recording_id;
        let name = name_of("reader", request.name)?;
        if name.is_empty() {
            return Err(ArchiveError::generic("the name of a reader is empty"));
        }
        self.check_reader_position(recording_id, request.position)?;
        let extensions = self.store.extensions();
        let former = extensions.reader(recording_id, &name);
        let owner = former.map_or_else(Vec::new, |reader| reader.owner.clone());
        self.sessions.check_owner(ids.control_session_id, &owner)?;
        let owner = match owner.is_empty() {
            true => self.sessions.principal(ids.control_session_id).to_vec(),
            false => owner,
        };
        if former.is_none() && extensions.reader_count() >= MAX_READERS {
            return Err(ArchiveError::generic(format!(
                "max named readers reached {MAX_READERS}: remove readers that are not used"
            )));
        }
        let reader = NamedReader {
            recording_id,
            name,
            owner,
            position: request.position,
            // Not the wall clock: it may be set by less than what counts as a step, and the reader would be too old.
            committed_ms: self.retention.now_ms(),
            max_age_ms: limit("maxAge", request.max_age_ms)?,
            max_lag: limit("maxLag", request.max_lag)?,
        };
        self.store
            .extensions_mut()
            .apply(vec![ExtensionChange::Reader(reader)])
            .map_err(not_stored)?;
        Ok(request.position)
    }

    /// Removes a reader. Returns 1, or 0 if the reader does not exist.
    ///
    /// # Errors
    /// The name is not valid, the reader belongs to another user, or the file system returns an error.
    pub(super) fn remove_reader(
        &mut self,
        ids: RequestIds,
        request: &RemoveReaderRequest<'_>,
    ) -> Result<i64, ArchiveError> {
        let recording_id = request.recording_id;
        let name = name_of("reader", request.name)?;
        let Some(reader) = self.store.extensions().reader(recording_id, &name) else {
            return Ok(0);
        };
        self.sessions
            .check_owner(ids.control_session_id, &reader.owner)?;
        self.store
            .extensions_mut()
            .apply(vec![ExtensionChange::ReaderRemoved { recording_id, name }])
            .map_err(not_stored)?;
        Ok(1)
    }

    /// Lists readers in the order of recording id and name.
    ///
    /// # Errors
    /// The same errors as [`DescriptorPage::of`]. The name is not valid.
    pub(super) fn list_readers(
        &self,
        ids: RequestIds,
        request: &ListReadersRequest<'_>,
    ) -> Result<DescriptorPage, ArchiveError> {
        let name = name_of("reader", request.name)?;
        let is_listed = |reader: &&NamedReader| {
            (request.recording_id == NULL_VALUE || request.recording_id == reader.recording_id)
                && (name.is_empty() || name == reader.name)
        };
        let readers = self.store.extensions().readers().filter(is_listed);
        DescriptorPage::of(readers, request.from_index, request.count, |reader| {
            encoded(&ExtensionResponse::Reader(ReaderDescriptor {
                control_session_id: ids.control_session_id,
                correlation_id: ids.correlation_id,
                recording_id: reader.recording_id,
                position: reader.position,
                committed_ms: reader.committed_ms,
                max_age_ms: reader.max_age_ms.unwrap_or(NULL_VALUE),
                max_lag: reader.max_lag.unwrap_or(NULL_VALUE),
                name: reader.name.as_bytes(),
            }))
        })
    }

    fn check_reader_position(&self, recording_id: i64, position: i64) -> Result<(), ArchiveError> {
        let recording = self.store.recording(recording_id)?;
        // A named reader may read the copies in object storage, which may begin before the local start position.
        let copied = self.objects.range(recording);
        let start = copied.map_or(recording.start_position, |range| range.start_position);
        let end = self.max_recorded_position(recording_id)?;
        match (start..=end).contains(&position) {
            true => Ok(()),
            false => Err(ArchiveError::new(
                ArchiveErrorCode::InvalidPosition,
                format!(
                    "position {position} of a reader is not from {start} to {end}, the range of recording {recording_id}"
                ),
            )),
        }
    }
}

/// Converts a limit of a request; −1 means no limit.
pub(super) fn limit(field: &str, value: i64) -> Result<Option<i64>, ArchiveError> {
    match value {
        NULL_VALUE => Ok(None),
        0.. => Ok(Some(value)),
        _ => Err(ArchiveError::generic(format!(
            "{field}={value} is negative: use -1 for no limit"
        ))),
    }
}

//! Requests about names, metadata and links of recordings.

use aeron_protocol::archive::extension::{
    ExtensionResponse, ListRecordingInfoRequest, MAX_METADATA_LENGTH, SetRecordingMetadataRequest,
    SetRecordingNameRequest,
};
use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use super::page::encoded;
use super::{DescriptorPage, name_of, not_stored};
use crate::extensions::{ExtensionChange, RecordingLabels};
use crate::server::ArchiveError;
use crate::server::conductor::ArchiveConductor;
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Replaces the name of a recording. An empty name removes the old name. Returns 0.
    ///
    /// # Errors
    /// The recording does not exist, the name is not valid, another recording has the same name, or
    /// the file system returns an error.
    pub(super) fn set_recording_name(
        &mut self,
        request: &SetRecordingNameRequest<'_>,
    ) -> Result<i64, ArchiveError> {
        let name = name_of("name", request.name)?;
        let is_taken = |(id, info): &(i64, &RecordingLabels)| {
            *id != request.recording_id && !name.is_empty() && info.name == name
        };
        if let Some((other, _)) = self.store.extensions().infos().find(is_taken) {
            return Err(ArchiveError::generic(format!(
                "recording {other} has the name {name:?}: choose another name"
            )));
        }
        self.change_info(request.recording_id, |info| info.name = name)
    }

    /// Replaces the metadata of a recording. Empty metadata remove the old metadata. Returns 0.
    ///
    /// # Errors
    /// The recording does not exist, the metadata are too long, or the file system returns an error.
    pub(super) fn set_recording_metadata(
        &mut self,
        request: &SetRecordingMetadataRequest<'_>,
    ) -> Result<i64, ArchiveError> {
        let length = request.metadata.len();
        if length > MAX_METADATA_LENGTH {
            return Err(ArchiveError::generic(format!(
                "metadata of {length} bytes are longer than {MAX_METADATA_LENGTH} bytes: store them elsewhere, and a reference here"
            )));
        }
        let metadata = request.metadata.to_vec();
        self.change_info(request.recording_id, |info| info.metadata = metadata)
    }

    /// Lists the recordings that have a name, metadata or a link, and match the request.
    ///
    /// # Errors
    /// The same errors as [`DescriptorPage::of`]. The name is not valid.
    pub(super) fn list_recording_info(
        &self,
        ids: RequestIds,
        request: &ListRecordingInfoRequest<'_>,
    ) -> Result<DescriptorPage, ArchiveError> {
        let name = name_of("name", request.name)?;
        let is_listed = |(id, info): &(i64, &RecordingLabels)| {
            (request.recording_id == NULL_VALUE || request.recording_id == *id)
                && (name.is_empty() || name == info.name)
        };
        let infos = self.store.extensions().infos().filter(is_listed);
        DescriptorPage::of(infos, request.from_index, request.count, |(id, info)| {
            let message = info.message(ids.control_session_id, ids.correlation_id, id);
            encoded(&ExtensionResponse::RecordingInfo(message))
        })
    }

    fn change_info(
        &mut self,
        recording_id: i64,
        change: impl FnOnce(&mut RecordingLabels),
    ) -> Result<i64, ArchiveError> {
        self.store.recording(recording_id)?;
        let mut info = self.store.extensions().info(recording_id);
        change(&mut info);
        self.store
            .extensions_mut()
            .apply(vec![ExtensionChange::Info { recording_id, info }])
            .map_err(not_stored)?;
        Ok(0)
    }
}

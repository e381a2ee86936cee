//! Requests about copies in object storage.

use aeron_protocol::archive::extension::{
    CopiedRangeDescriptor, ExtensionResponse, ListCopiedRangesRequest,
};
use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use super::DescriptorPage;
use super::page::encoded;
use crate::server::ArchiveError;
use crate::server::conductor::ArchiveConductor;
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Lists the recordings of which the first segments have copies.
    ///
    /// # Errors
    /// See [`DescriptorPage::of`].
    pub(super) fn list_copied_ranges(
        &self,
        ids: RequestIds,
        request: &ListCopiedRangesRequest<'_>,
    ) -> Result<DescriptorPage, ArchiveError> {
        let wanted = request.recording_id;
        let recordings = self.store.recordings_from(wanted.max(0));
        let recordings = recordings
            .take_while(|recording| wanted == NULL_VALUE || recording.recording_id == wanted);
        let ranges = recordings.filter_map(|recording| self.objects.range(recording));
        DescriptorPage::of(ranges, request.from_index, request.count, |range| {
            encoded(&ExtensionResponse::CopiedRange(CopiedRangeDescriptor {
                control_session_id: ids.control_session_id,
                correlation_id: ids.correlation_id,
                recording_id: range.recording_id,
                start_position: range.start_position,
                local_start_position: range.local_start_position,
                copied_position: range.copied_position,
            }))
        })
    }
}

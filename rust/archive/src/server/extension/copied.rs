//! Requests about copies in object storage. After the start of the archive they wait until the copies are known.

use aeron_protocol::archive::extension::{
    CopiedRangeDescriptor, ExtensionResponse, ListCopiedRangesRequest,
};
use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use super::DescriptorPage;
use super::page::encoded;
use crate::server::ArchiveError;
use crate::server::conductor::ArchiveConductor;
use crate::server::listing::Listing;
use crate::storage::Storage;

/// Maximum number of requests that wait at the same time.
const MAX_HELD: usize = 64;

/// Requests that wait until the copies are known.
#[derive(Debug, Default)]
pub(in crate::server) struct HeldRanges {
    held: Vec<(RequestIds, RangesRequest)>,
}

/// A request for copied ranges.
#[derive(Clone, Copy, Debug)]
struct RangesRequest {
    /// `None` for all recordings.
    recording_id: Option<i64>,
    from_index: i32,
    count: i32,
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Lists the recordings of which the first segments have copies: at once, or when the copies are known.
    ///
    /// # Errors
    /// See [`DescriptorPage::of`]. Or too many requests wait. Or the request needs copies that are still unknown some
    /// seconds after the start of the archive. A request for all recordings needs the copies of all of them.
    pub(super) fn list_copied_ranges(
        &mut self,
        ids: RequestIds,
        request: &ListCopiedRangesRequest<'_>,
    ) -> Result<(), ArchiveError> {
        let wanted = request.recording_id;
        let request = RangesRequest {
            recording_id: (wanted != NULL_VALUE).then_some(wanted),
            from_index: request.from_index,
            count: request.count,
        };
        if !self.must_wait_for_copies(request.recording_id) {
            return self.list_ranges_now(ids, request);
        }
        if self.held_ranges.held.len() >= MAX_HELD {
            return Err(ArchiveError::generic(format!(
                "max waiting requests for copied ranges reached {MAX_HELD}: try again later"
            )));
        }
        self.held_ranges.held.push((ids, request));
        Ok(())
    }

    /// Serves the requests that need not wait any more. Returns the work count.
    pub(in crate::server) fn list_held_ranges(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.held_ranges.held);
        let is_ready = |held: &mut (RequestIds, RangesRequest)| {
            !self.must_wait_for_copies(held.1.recording_id)
        };
        let ready: Vec<_> = held.extract_if(.., is_ready).collect();
        self.held_ranges.held = held;
        for (ids, request) in &ready {
            if let Err(error) = self.list_ranges_now(*ids, *request) {
                self.outbox.refuse(*ids, error);
            }
        }
        ready.len()
    }

    /// Returns whether a request must wait until the copies of a recording are known. If `recording_id` is `None`, the
    /// request needs the copies of all recordings.
    pub(super) fn must_wait_for_copies(&self, recording_id: Option<i64>) -> bool {
        self.objects.unknown.is_awaited(recording_id, self.now_ns)
    }

    fn list_ranges_now(
        &mut self,
        ids: RequestIds,
        request: RangesRequest,
    ) -> Result<(), ArchiveError> {
        let wanted = request.recording_id;
        let unknown = &self.objects.unknown;
        match wanted {
            Some(recording_id) => unknown.check(recording_id)?,
            None => unknown.check_all(|id| self.store.recording(id).is_ok())?,
        }
        let recordings = self.store.recordings_from(wanted.unwrap_or(0).max(0));
        let recordings =
            recordings.take_while(|recording| wanted.is_none_or(|id| id == recording.recording_id));
        let ranges = recordings.filter_map(|recording| self.objects.range(recording));
        let page = DescriptorPage::of(ranges, request.from_index, request.count, |range| {
            encoded(&ExtensionResponse::CopiedRange(CopiedRangeDescriptor {
                control_session_id: ids.control_session_id,
                correlation_id: ids.correlation_id,
                recording_id: range.recording_id,
                start_position: range.start_position,
                local_start_position: range.local_start_position,
                copied_position: range.copied_position,
            }))
        })?;
        self.list(ids, Listing::descriptors(ids.correlation_id, page));
        Ok(())
    }
}

//! Lists the copies in object storage. After the start of the archive a request waits until the copies are known.

use super::{ArchiveConductor, Caller, Execution};
use crate::objects::CopiedRange;
use crate::server::ArchiveError;
use crate::server::listing::{DescriptorPage, Listing, PageEntry, PageRange};
use crate::storage::Storage;

/// Maximum number of requests that wait at the same time.
const MAX_HELD: usize = 64;

/// A request for copied ranges.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangesRequest {
    /// `None` for all recordings.
    recording_id: Option<i64>,
    range: PageRange,
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Lists the recordings of which the first segments have copies: at once, or when the copies are known.
    ///
    /// # Errors
    /// See [`DescriptorPage::of`]. Or too many requests wait. Or the request needs copies that are still unknown some
    /// seconds after the start of the archive. A request for all recordings needs the copies of all of them.
    pub(super) fn list_copied_ranges(
        &mut self,
        caller: &Caller<'_>,
        recording_id: Option<i64>,
        range: PageRange,
    ) -> Result<Execution, ArchiveError> {
        let request = RangesRequest {
            recording_id,
            range,
        };
        if !self.must_wait_for_copies(recording_id) {
            return self.list_ranges_now(request).map(Execution::from);
        }
        if self.held_ranges.count() >= MAX_HELD {
            return Err(ArchiveError::generic(format!(
                "max waiting requests for copied ranges reached {MAX_HELD}: try again later"
            )));
        }
        self.held_ranges.hold(caller.ids, request);
        Ok(Execution::Pending)
    }

    /// Serves the requests that need not wait any more. Returns the work count.
    pub(super) fn list_held_ranges(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.held_ranges);
        let ready = held.take_ready(|held| !self.must_wait_for_copies(held.recording_id));
        self.held_ranges = held;
        for (requester, request) in &ready {
            let reply = self.list_ranges_now(*request);
            self.outlets.reply(*requester, reply);
        }
        ready.len()
    }

    fn list_ranges_now(&self, request: RangesRequest) -> Result<Listing, ArchiveError> {
        let wanted = request.recording_id;
        match wanted {
            Some(recording_id) => self.objects.unknown().check(recording_id)?,
            None => self
                .objects
                .unknown()
                .check_all(|id| self.store.recording(id).is_ok())?,
        }
        let recordings = self.store.recordings_from(wanted.unwrap_or(0).max(0));
        let recordings =
            recordings.take_while(|recording| wanted.is_none_or(|id| id == recording.recording_id));
        let ranges = recordings.filter_map(|recording| self.objects.range(recording));
        let entry = |range: CopiedRange| PageEntry::CopiedRange(range);
        DescriptorPage::of(ranges, request.range, entry).map(Listing::from)
    }
}

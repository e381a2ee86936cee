//! Finds a position by time. A search takes many duty cycles: each duty cycle searches one segment.

use std::collections::VecDeque;

use aeron_protocol::archive::RequestIds;

use super::{ArchiveConductor, Caller, Later, WantedPosition};
use crate::index::{FindPositionError, FoundPosition, TimeSearch};
use crate::server::ArchiveError;
use crate::server::listing::{DescriptorPage, Listing, PageEntry};
use crate::storage::Storage;

/// Maximum number of searches at the same time.
const MAX_SEARCHES: usize = 64;

/// Unfinished searches. Each duty cycle continues one search, beginning with the search that has
/// waited longest.
#[derive(Debug, Default)]
pub(super) struct TimeSearches {
    running: VecDeque<(RequestIds, TimeSearch)>,
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Begins a search, as soon as the copies of the recording are known. The reply is sent when the search is
    /// finished.
    ///
    /// # Errors
    /// The recording does not exist, or there are too many searches.
    pub(super) fn find_position(
        &mut self,
        caller: &Caller<'_>,
        wanted: WantedPosition,
    ) -> Result<Later, ArchiveError> {
        self.store.recording(wanted.recording_id)?;
        if self.searches.running.len() + self.held_searches.count() >= MAX_SEARCHES {
            return Err(ArchiveError::generic(format!(
                "max searches by time reached {MAX_SEARCHES}: try again later"
            )));
        }
        match self.must_wait_for_copies(Some(wanted.recording_id)) {
            true => self.held_searches.hold(caller.ids, wanted),
            false => self.begin_search(caller.ids, &wanted)?,
        }
        Ok(Later)
    }

    /// Begins the searches that need not wait any more. Returns the work count.
    pub(super) fn begin_held_searches(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.held_searches);
        let ready = held.take_ready(|it| !self.must_wait_for_copies(Some(it.recording_id)));
        self.held_searches = held;
        for (requester, wanted) in &ready {
            if let Err(error) = self.begin_search(*requester, wanted) {
                self.outlets.refuse(*requester, error);
            }
        }
        ready.len()
    }

    fn begin_search(
        &mut self,
        requester: RequestIds,
        request: &WantedPosition,
    ) -> Result<(), ArchiveError> {
        let end_position = self.max_recorded_position(request.recording_id)?;
        let recording = self.store.recording(request.recording_id)?;
        // The search includes segments that are only in object storage, because their indexes are still on the disk.
        let whole = self.objects.whole(recording);
        let recording = whole.as_ref().unwrap_or(recording);
        let search = TimeSearch::new(recording, end_position, request.edge, request.timestamp_us)
            .map_err(ArchiveError::generic)?;
        self.searches.running.push_back((requester, search));
        Ok(())
    }

    /// Continues the search that has waited longest, by one segment. Returns the work count.
    pub(super) fn search_by_time(&mut self) -> usize {
        let Some((requester, mut search)) = self.searches.running.pop_front() else {
            return 0;
        };
        match search.step(self.store.storage()).transpose() {
            None => self.searches.running.push_back((requester, search)),
            Some(found) => {
                let reply = self.time_position(&search, found);
                self.outlets.reply(requester, reply);
            }
        }
        1
    }

    /// Returns the reply with a found position.
    ///
    /// # Errors
    /// The search failed, or the recording does not exist any more. Or the position is the start of the local files,
    /// and the copies of the recording were unknown when the search began.
    fn time_position(
        &self,
        search: &TimeSearch,
        found: Result<FoundPosition, FindPositionError>,
    ) -> Result<Listing, ArchiveError> {
        let found = found.map_err(ArchiveError::generic)?;
        let recording_id = search.recording_id();
        // The first segments may have been deleted during the search.
        let recording = self.store.recording(recording_id)?;
        let whole = self.objects.whole(recording);
        let start_position = whole.as_ref().unwrap_or(recording).start_position;
        // The search did not include copies that were unknown at its begin. They may have an earlier position.
        let searched_from = search.start_position();
        if searched_from > 0 && found.position <= searched_from {
            self.objects.unknown().check(recording_id)?;
            if start_position < searched_from {
                return Err(ArchiveError::generic(format!(
                    "the copies of recording {recording_id} in object storage became known during the search: try again"
                )));
            }
        }
        let found = FoundPosition {
            position: found.position.max(start_position),
            ..found
        };
        let entry = PageEntry::Position(recording_id, found);
        Ok(DescriptorPage::whole([entry]).into())
    }
}

//! Requests that find a position by time. A search takes many duty cycles: each duty cycle searches
//! one segment.

use std::collections::VecDeque;

use aeron_protocol::archive::extension::{ExtensionResponse, FindPositionRequest, TimePosition};
use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use super::DescriptorPage;
use super::page::encoded;
use crate::index::{FindPositionError, FoundPosition, TimeSearch};
use crate::server::ArchiveError;
use crate::server::conductor::ArchiveConductor;
use crate::server::listing::Listing;
use crate::storage::Storage;

/// Maximum number of searches at the same time.
const MAX_SEARCHES: usize = 64;

/// Unfinished searches. Each duty cycle continues one search, beginning with the search that has
/// waited longest.
#[derive(Debug, Default)]
pub(in crate::server) struct TimeSearches {
    /// Requests that wait until the copies of their recordings are known, because the archive has just started.
    held: Vec<(RequestIds, FindPositionRequest)>,
    running: VecDeque<(RequestIds, TimeSearch)>,
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Begins a search, as soon as the copies of the recording are known. The response is sent when the search is
    /// finished.
    ///
    /// # Errors
    /// The recording does not exist, or there are too many searches.
    pub(super) fn find_position(
        &mut self,
        requester: RequestIds,
        request: &FindPositionRequest,
    ) -> Result<(), ArchiveError> {
        self.store.recording(request.recording_id)?;
        if self.searches.running.len() + self.searches.held.len() >= MAX_SEARCHES {
            return Err(ArchiveError::generic(format!(
                "max searches by time reached {MAX_SEARCHES}: try again later"
            )));
        }
        match self.must_wait_for_copies(Some(request.recording_id)) {
            true => self.searches.held.push((requester, *request)),
            false => self.begin_search(requester, request)?,
        }
        Ok(())
    }

    /// Begins the searches that need not wait any more. Returns the work count.
    pub(in crate::server) fn begin_held_searches(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.searches.held);
        let is_ready = |held: &mut (RequestIds, FindPositionRequest)| {
            !self.must_wait_for_copies(Some(held.1.recording_id))
        };
        let ready: Vec<_> = held.extract_if(.., is_ready).collect();
        self.searches.held = held;
        for (requester, request) in &ready {
            if let Err(error) = self.begin_search(*requester, request) {
                self.outbox.refuse(*requester, error);
            }
        }
        ready.len()
    }

    fn begin_search(
        &mut self,
        requester: RequestIds,
        request: &FindPositionRequest,
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
    pub(in crate::server) fn search_by_time(&mut self) -> usize {
        let Some((requester, mut search)) = self.searches.running.pop_front() else {
            return 0;
        };
        match search.step(self.store.storage()).transpose() {
            None => self.searches.running.push_back((requester, search)),
            Some(found) => match self.time_position(requester, &search, found) {
                Ok(page) => self.list(
                    requester,
                    Listing::descriptors(requester.correlation_id, page),
                ),
                Err(error) => self.outbox.refuse(requester, error),
            },
        }
        1
    }

    /// Returns the descriptor of a found position.
    ///
    /// # Errors
    /// The search failed, or the recording does not exist any more. Or the position is the start of the local files,
    /// and the copies of the recording were unknown when the search began.
    fn time_position(
        &self,
        requester: RequestIds,
        search: &TimeSearch,
        found: Result<FoundPosition, FindPositionError>,
    ) -> Result<DescriptorPage, ArchiveError> {
        let found = found.map_err(ArchiveError::generic)?;
        let recording_id = search.recording_id();
        // The first segments may have been deleted during the search.
        let recording = self.store.recording(recording_id)?;
        let whole = self.objects.whole(recording);
        let start_position = whole.as_ref().unwrap_or(recording).start_position;
        // The search did not include copies that were unknown at its begin. They may have an earlier position.
        let searched_from = search.start_position();
        if searched_from > 0 && found.position <= searched_from {
            self.objects.unknown.check(recording_id)?;
            if start_position < searched_from {
                return Err(ArchiveError::generic(format!(
                    "the copies of recording {recording_id} in object storage became known during the search: try again"
                )));
            }
        }
        let position = TimePosition {
            control_session_id: requester.control_session_id,
            correlation_id: requester.correlation_id,
            recording_id,
            position: found.position.max(start_position),
            timestamp_us: found.arrival_us.unwrap_or(NULL_VALUE),
            is_approximate: found.is_approximate,
        };
        DescriptorPage::of([position].into_iter(), 0, 1, |position| {
            encoded(&ExtensionResponse::TimePosition(position))
        })
    }
}

//! Creates, moves, removes and lists named readers.

use aeron_protocol::archive::ArchiveErrorCode;

use super::recording_labels::{check_limit, check_name};
use super::{ArchiveConductor, Caller, ReaderCommit};
use crate::extensions::{ExtensionChange, MAX_READERS, NamedReader};
use crate::server::ArchiveError;
use crate::server::listing::{DescriptorPage, Listing, PageEntry, PageRange};
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Creates a reader, or stores the position of an existing reader. Returns the position.
    ///
    /// # Errors
    /// The recording does not exist, the position is not in the recording, the name is not valid, there are too many
    /// readers, the reader belongs to another user, or the file system returns an error.
    pub(super) fn commit_reader(
        &mut self,
        caller: &Caller<'_>,
        commit: &ReaderCommit<'_>,
    ) -> Result<i64, ArchiveError> {
        let &ReaderCommit {
            recording_id,
            name,
            position,
            ..
        } = commit;
        check_name("reader", name)?;
        if name.is_empty() {
            return Err(ArchiveError::generic("the name of a reader is empty"));
        }
        self.check_reader_position(recording_id, position)?;
        let extensions = self.store.extensions();
        let former = extensions.reader(recording_id, name);
        let owner = former.map_or_else(Vec::new, |reader| reader.owner.clone());
        caller.check_owner(&owner)?;
        let owner = match owner.is_empty() {
            true => caller.principal.to_vec(),
            false => owner,
        };
        if former.is_none() && extensions.reader_count() >= MAX_READERS {
            return Err(ArchiveError::generic(format!(
                "max named readers reached {MAX_READERS}: remove readers that are not used"
            )));
        }
        check_limit("maxAge", commit.max_age_ms)?;
        check_limit("maxLag", commit.max_lag)?;
        let reader = NamedReader {
            recording_id,
            name: name.to_owned(),
            owner,
            position,
            // Not the wall clock: it may be set by less than what counts as a step, and the reader would be too old.
            committed_ms: self.retention.now_ms(),
            max_age_ms: commit.max_age_ms,
            max_lag: commit.max_lag,
        };
        self.store
            .extensions_mut()
            .apply(vec![ExtensionChange::Reader(reader)])
            .map_err(ArchiveError::not_stored)?;
        Ok(position)
    }

    /// Removes a reader. Returns 1, or 0 if the reader does not exist.
    ///
    /// # Errors
    /// The name is not valid, the reader belongs to another user, or the file system returns an error.
    pub(super) fn remove_reader(
        &mut self,
        caller: &Caller<'_>,
        recording_id: i64,
        name: &str,
    ) -> Result<i64, ArchiveError> {
        check_name("reader", name)?;
        let Some(reader) = self.store.extensions().reader(recording_id, name) else {
            return Ok(0);
        };
        caller.check_owner(&reader.owner)?;
        let name = name.to_owned();
        self.store
            .extensions_mut()
            .apply(vec![ExtensionChange::ReaderRemoved { recording_id, name }])
            .map_err(ArchiveError::not_stored)?;
        Ok(1)
    }

    /// Lists readers in the order of recording id and name. An empty name lists the readers of all names.
    ///
    /// # Errors
    /// The same errors as [`DescriptorPage::of`]. The name is not valid.
    pub(super) fn list_readers(
        &self,
        recording_id: Option<i64>,
        name: &str,
        range: PageRange,
    ) -> Result<Listing, ArchiveError> {
        check_name("reader", name)?;
        let is_listed = |reader: &&NamedReader| {
            recording_id.is_none_or(|id| id == reader.recording_id)
                && (name.is_empty() || name == reader.name)
        };
        let readers = self.store.extensions().readers().filter(is_listed);
        let entry = |reader: &NamedReader| PageEntry::Reader(reader.clone());
        DescriptorPage::of(readers, range, entry).map(Listing::from)
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

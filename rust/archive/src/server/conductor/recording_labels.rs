//! Sets and lists names, metadata and links of recordings.

use aeron_protocol::archive::extension::{MAX_METADATA_LENGTH, MAX_NAME_LENGTH};

use super::ArchiveConductor;
use crate::extensions::{ExtensionChange, RecordingLabels};
use crate::server::ArchiveError;
use crate::server::listing::{DescriptorPage, Listing, PageEntry, PageRange};
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Replaces the name of a recording. An empty name removes the old name.
    ///
    /// # Errors
    /// The recording does not exist, the name is not valid, another recording has the same name, or
    /// the file system returns an error.
    pub(super) fn set_recording_name(
        &mut self,
        recording_id: i64,
        name: &str,
    ) -> Result<(), ArchiveError> {
        check_name("name", name)?;
        let is_taken = |(id, labels): &(i64, &RecordingLabels)| {
            *id != recording_id && !name.is_empty() && labels.name == name
        };
        if let Some((other, _)) = self.store.extensions().infos().find(is_taken) {
            return Err(ArchiveError::generic(format!(
                "recording {other} has the name {name:?}: choose another name"
            )));
        }
        self.change_labels(recording_id, |labels| labels.name = name.to_owned())
    }

    /// Replaces the metadata of a recording. Empty metadata remove the old metadata.
    ///
    /// # Errors
    /// The recording does not exist, the metadata are too long, or the file system returns an error.
    pub(super) fn set_recording_metadata(
        &mut self,
        recording_id: i64,
        metadata: &[u8],
    ) -> Result<(), ArchiveError> {
        let length = metadata.len();
        if length > MAX_METADATA_LENGTH {
            return Err(ArchiveError::generic(format!(
                "metadata of {length} bytes are longer than {MAX_METADATA_LENGTH} bytes: store them elsewhere, and a reference here"
            )));
        }
        self.change_labels(recording_id, |labels| labels.metadata = metadata.to_vec())
    }

    /// Lists the recordings that have a name, metadata or a link, and match the request. An empty name lists all names.
    ///
    /// # Errors
    /// The same errors as [`DescriptorPage::of`]. The name is not valid.
    pub(super) fn list_recording_info(
        &self,
        recording_id: Option<i64>,
        name: &str,
        range: PageRange,
    ) -> Result<Listing, ArchiveError> {
        check_name("name", name)?;
        let is_listed = |(id, labels): &(i64, &RecordingLabels)| {
            recording_id.is_none_or(|wanted| wanted == *id)
                && (name.is_empty() || name == labels.name)
        };
        let listed = self.store.extensions().infos().filter(is_listed);
        let entry = |(id, labels): (i64, &RecordingLabels)| PageEntry::Labels(id, labels.clone());
        DescriptorPage::of(listed, range, entry).map(Listing::from)
    }

    fn change_labels(
        &mut self,
        recording_id: i64,
        change: impl FnOnce(&mut RecordingLabels),
    ) -> Result<(), ArchiveError> {
        self.store.recording(recording_id)?;
        let mut info = self.store.extensions().info(recording_id);
        change(&mut info);
        self.store
            .extensions_mut()
            .apply(vec![ExtensionChange::Info { recording_id, info }])
            .map_err(ArchiveError::not_stored)
    }
}

/// Checks the name of a recording or a reader.
pub(super) fn check_name(field: &str, name: &str) -> Result<(), ArchiveError> {
    check_text(field, name, MAX_NAME_LENGTH)
}

/// Checks the length of a text, and that it has no control characters.
pub(super) fn check_text(field: &str, text: &str, max_length: usize) -> Result<(), ArchiveError> {
    let length = text.len();
    if length > max_length {
        return Err(ArchiveError::generic(format!(
            "{field} of {length} bytes is longer than {max_length} bytes: choose a shorter one"
        )));
    }
    if text.chars().any(char::is_control) {
        return Err(ArchiveError::generic(format!(
            "{field} {text:?} contains a control character: use printable characters"
        )));
    }
    Ok(())
}

/// Checks a limit; `None` for no limit.
pub(super) fn check_limit(field: &str, limit: Option<i64>) -> Result<(), ArchiveError> {
    match limit {
        Some(value) if value < 0 => Err(ArchiveError::generic(format!(
            "{field}={value} is negative: use -1 for no limit"
        ))),
        _ => Ok(()),
    }
}

//! Methods for names and metadata of recordings.

use aeron_archive::client::ArchiveCall;
use pyo3::prelude::*;

use super::super::extensions::{PyCopiedRange, PyRecordingInfo};
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument;
use crate::operations::PyPendingOperation;
use crate::snapshot::Octets;
archive_methods! {
    /// Sets the name of a recording. The archive stores the name.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     name: Name, unique in the archive: at most 255 bytes of UTF-8, without control characters. An empty string
    ///         removes the name.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    set_recording_name, async_set_recording_name (recording_id, name) [slf, recording_id: i64, name: String] {
        Self::request(slf, ArchiveCall::set_recording_name(recording_id, &name))
    }

    /// Sets the metadata of a recording. The archive stores the metadata, which may be any bytes.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     metadata: At most 16 KiB. An empty value removes the metadata.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    set_recording_metadata, async_set_recording_metadata (recording_id, metadata)
    [slf, recording_id: i64, metadata: Octets] {
        Self::request(slf, ArchiveCall::set_recording_metadata(recording_id, &metadata.0))
    }

    /// Lists the recordings that have a name, metadata or a link, in the order of their ids.
    ///
    /// Args:
    ///     recording_id: Id of the recording. `None` lists all recordings.
    ///     name: Name of the recording. `None` lists recordings with any name and without a name.
    ///
    /// Returns:
    ///     A list of `RecordingInfo`.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    list_recording_info, async_list_recording_info (*, recording_id = None, name = None)
    [slf, recording_id: Option<i64>, name: Option<String>] {
        let name = name.unwrap_or_default();
        let page = move |from| ArchiveCall::list_recording_info(recording_id, &name, from);
        Self::list::<_, PyRecordingInfo>(slf, page)
    }

    /// Lists the recordings of which segments have copies in object storage, in the order of their ids.
    ///
    /// After its start, an archive may not know the copies of a recording yet. The request then waits up to 5 seconds,
    /// and is refused after that. A request for all recordings needs the copies of each recording in the catalog.
    ///
    /// Args:
    ///     recording_id: Id of the recording. `None` lists all recordings.
    ///
    /// Returns:
    ///     A list of `CopiedRange`. A recording without copies is not in the list.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    list_copied_ranges, async_list_copied_ranges (*, recording_id = None)
    [slf, recording_id: Option<i64>] {
        let page = move |from| ArchiveCall::list_copied_ranges(recording_id, from);
        Self::list::<_, PyCopiedRange>(slf, page)
    }
}

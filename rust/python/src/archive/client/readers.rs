//! Methods for named readers.

use aeron_archive::client::ArchiveCall;
use pyo3::prelude::*;

use super::super::extensions::PyNamedReader;
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument;
use crate::operations::PyPendingOperation;

archive_methods! {
    /// Stores the position of a named reader of a recording in the archive. Creates the reader if it does not exist.
    ///
    /// Retention never deletes data after the position of a reader, unless the reader expires or object storage has a
    /// copy of the data. Each commit replaces both limits, `max_age_ms` and `max_lag_bytes`.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     name: Name of the reader, unique for the recording: 1 to 255 bytes of UTF-8, without control characters.
    ///     position: Position up to which the reader has processed the recording, in bytes. It must be within the
    ///         recording, and may be less than the stored position.
    ///     max_age_ms: Milliseconds without a commit after which the reader expires. `None` sets no limit.
    ///     max_lag_bytes: Maximum number of bytes recorded after the position. With more bytes, the reader expires.
    ///         `None` sets no limit.
    ///
    /// Returns:
    ///     The position.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    ///
    /// Example:
    ///     ```python
    ///     archive.commit_reader(recording.recording_id, "bars", batch.positions[-1])
    ///     ```
    commit_reader, async_commit_reader (recording_id, name, position, *, max_age_ms = None, max_lag_bytes = None)
    [slf, recording_id: i64, name: String, position: i64, max_age_ms: Option<i64>, max_lag_bytes: Option<i64>] {
        Self::request(slf, ArchiveCall::commit_reader(recording_id, &name, position, max_age_ms, max_lag_bytes))
    }

    /// Removes a named reader. Retention then no longer keeps data for this reader.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     name: Name of the reader.
    ///
    /// Returns:
    ///     `True` if there was a reader to remove.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    remove_reader, async_remove_reader (recording_id, name) [slf, recording_id: i64, name: String] {
        Self::request_count(slf, ArchiveCall::remove_reader(recording_id, &name))
    }

    /// Lists named readers in the order of recording ids and names.
    ///
    /// Args:
    ///     recording_id: Id of the recording. `None` lists the readers of all recordings.
    ///     name: Name of the readers. `None` lists readers with any name.
    ///
    /// Returns:
    ///     A list of `NamedReader`.
    ///
    /// Raises:
    ///     NotSupportedByArchiveError: If the archive does not have this request, for example Aeron's own archive. The
    ///         archive must report its capabilities within a second.
    list_readers, async_list_readers (*, recording_id = None, name = None)
    [slf, recording_id: Option<i64>, name: Option<String>] {
        let name = name.unwrap_or_default();
        let page = move |from| ArchiveCall::list_readers(recording_id, &name, from);
        Self::list::<_, PyNamedReader>(slf, page)
    }
}

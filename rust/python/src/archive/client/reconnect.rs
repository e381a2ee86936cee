//! The method that connects again.

use pyo3::prelude::*;

use super::super::connect::ArchiveClientSettings;
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::operations::PyPendingOperation;

archive_methods! {
    /// Connects another client with the same settings, for example to an archive that was restarted.
    ///
    /// A session with an archive ends when the archive ends, and its client closes itself. One method of the client may
    /// then raise `ArchiveDisconnectedError`, and all later calls raise `ArchiveClosedError`. If the archive was killed
    /// a moment ago, methods raise `ArchiveTimeoutError`. The new client has neither `on_signal` nor `error_handler`.
    /// This client stays as it is.
    ///
    /// Returns:
    ///     The new `AeronArchive`.
    ///
    /// Raises:
    ///     ArchiveTimeoutError: If the archive does not respond within the message timeout.
    ///     ArchiveError: If the archive refuses the connection.
    ///     ClientClosedError: If the Aeron client is closed.
    ///
    /// Example:
    ///     ```python
    ///     try:
    ///         recordings = archive.list_recordings()
    ///     except (aeron.ArchiveDisconnectedError, aeron.ArchiveClosedError):
    ///         archive = archive.reconnect()
    ///     ```
    reconnect, async_reconnect () [slf] {
        let py = slf.py();
        let this = slf.get();
        let (context, credentials) = this.settings_for_another(py)?;
        ArchiveClientSettings::of(context, credentials).connect(this.client.bind(py))
    }
}

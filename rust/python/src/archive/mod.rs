//! Bindings of the archive: `Archive` runs an archive in this process, and `AeronArchive` is a client of any archive.

mod authentication;
mod client;
mod columns;
mod connect;
mod credentials;
mod errors;
mod extensions;
mod files;
mod link;
mod persistent;
mod persistent_options;
mod queued_events;
mod recorded;
mod recorded_publisher;
mod recorded_publisher_options;
mod recorded_rows;
mod recording;
pub mod replay;
mod replay_merge;
pub mod server;
mod signals;
mod single_caller;
mod time;

use aeron_archive::client::{FROM_LIVE, FROM_START};
use aeron_protocol::archive::{REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP};
use pyo3::prelude::*;

/// Adds the classes, functions and constants of the archive to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<client::PyAeronArchive>()?;
    module.add_class::<authentication::PyAuthenticatingSession>()?;
    module.add_class::<authentication::PyAuthenticationDecision>()?;
    module.add_class::<extensions::PyNamedReader>()?;
    module.add_class::<extensions::PyRecordingInfo>()?;
    module.add_class::<extensions::PyCopiedRange>()?;
    module.add_class::<extensions::PyRetentionOutcome>()?;
    module.add_class::<extensions::PyRetentionPolicy>()?;
    module.add_class::<recorded_rows::PyRecordedRows>()?;
    module.add_class::<persistent::PyPersistentBatches>()?;
    module.add_class::<persistent::PyPersistentSubscription>()?;
    module.add_class::<recorded_publisher::PyRecordedPublisher>()?;
    module.add_class::<recording::PyRecording>()?;
    module.add_class::<recording::PyRecordingSignal>()?;
    module.add_class::<recording::PyRecordingSubscription>()?;
    module.add_class::<replay_merge::PyReplayMerge>()?;
    module.add_class::<time::PyFoundPosition>()?;
    module.add_class::<server::PyArchive>()?;
    module.add_class::<signals::PyRecordingSignals>()?;
    files::register(module)?;
    module.add_function(wrap_pyfunction!(columns::_recording_columns, module)?)?;
    module.add_function(wrap_pyfunction!(extensions::_policy_of, module)?)?;
    module.add_function(wrap_pyfunction!(connect::async_connect_archive, module)?)?;
    module.add_function(wrap_pyfunction!(connect::connect_archive, module)?)?;
    module.add("FROM_LIVE", FROM_LIVE)?;
    module.add("FROM_START", FROM_START)?;
    module.add("REPLAY_ALL_AND_FOLLOW", REPLAY_ALL_AND_FOLLOW)?;
    module.add("REPLAY_ALL_AND_STOP", REPLAY_ALL_AND_STOP)
}

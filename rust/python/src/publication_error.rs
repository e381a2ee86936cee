//! [`PyPublicationErrorFrame`]: an error that a receiver reported, and the handler for such errors.

use std::sync::Arc;

use aeron_client::{PublicationErrorFrame, PublicationErrorHandler};
use pyo3::prelude::*;

use crate::events::{ErrorReporter, EventHandler, attach};
use crate::snapshot::snapshot;

snapshot! {
    /// An error that a receiver reported to a publication. Immutable. Comparison and pickling use the values.
    PyPublicationErrorFrame("PublicationErrorFrame") {
        /// Original registration id of the publication.
        registration_id: i64,
        /// Registration id of the destination that reported the error; -1 if no destination reported the error.
        destination_registration_id: i64,
        /// Session id of the publication.
        session_id: i32,
        /// Stream id of the publication.
        stream_id: i32,
        /// Id of the receiver, -1 for IPC.
        receiver_id: i64,
        /// Group tag of the receiver; -1 if it has no tag.
        group_tag: i64,
        /// Error code; 13 if the image was rejected.
        error_code: i32,
        /// Error text from the receiver.
        error_message: String,
        /// Source address of the report, `None` if it is not known.
        source_address: Option<String>,
    }

    fn __repr__(&self) -> String {
        format!(
            "<PublicationErrorFrame code {} {:?}, session {} stream {}, from {}>",
            self.error_code,
            self.error_message,
            self.session_id,
            self.stream_id,
            self.source_address.as_deref().unwrap_or("unknown"),
        )
    }
}

impl From<&PublicationErrorFrame> for PyPublicationErrorFrame {
    fn from(frame: &PublicationErrorFrame) -> Self {
        Self {
            registration_id: frame.registration_id,
            destination_registration_id: frame.destination_registration_id,
            session_id: frame.session_id,
            stream_id: frame.stream_id,
            receiver_id: frame.receiver_id,
            group_tag: frame.group_tag,
            error_code: frame.error_code,
            error_message: frame.error_message.clone(),
            source_address: frame.source_address.map(|address| address.to_string()),
        }
    }
}

/// Returns a native handler that calls `handler(error_frame)`.
pub fn publication_error_handler(
    reporter: &ErrorReporter,
    handler: &EventHandler,
) -> PublicationErrorHandler {
    let registered = reporter.register(handler);
    Arc::new(move |frame: &PublicationErrorFrame| {
        attach(|py| registered.call(py, (PyPublicationErrorFrame::from(frame),)));
    })
}

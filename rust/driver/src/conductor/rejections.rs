//! Rejections of publications by receivers, written into the error log as far as there is room for them.

use std::collections::HashSet;

use crate::diagnostics::ErrorRecorder;
use crate::sender::PublicationErrorReport;

/// Rejections with different texts that get an entry of their own in the error log. All others share one entry.
///
/// The text has the receiver's own words, so the network says how many different ones there are. 64 of the longest take less than
/// a tenth of the default error log.
pub const MAX_NOTED_REJECTIONS: usize = 64;

/// The rejections that have an entry of their own.
#[derive(Debug, Default)]
pub(super) struct NotedRejections(HashSet<Box<str>>);

impl NotedRejections {
    /// Writes a rejection into the error log.
    pub(super) fn note(&mut self, report: &PublicationErrorReport, errors: &ErrorRecorder) {
        let text = format!(
            "onPublicationError: registrationId={}, destinationRegistrationId={}, sessionId={}, streamId={}, \
             receiverId={}, groupId={}, errorCode={}, errorMessage={}\n",
            report.registration_id,
            report.destination_registration_id,
            report.session_id,
            report.stream_id,
            report.receiver_id,
            report.group_tag,
            report.error_code,
            String::from_utf8_lossy(&report.message),
        );
        if self.admit(&text) {
            errors.note(&text);
        } else {
            errors.note(&format!(
                "onPublicationError: more than {MAX_NOTED_REJECTIONS} different ones, the others are counted here\n"
            ));
        }
    }

    /// Whether the text has an entry of its own, or gets one now.
    fn admit(&mut self, text: &str) -> bool {
        if self.0.contains(text) {
            return true;
        }
        let has_room = self.0.len() < MAX_NOTED_REJECTIONS;
        if has_room {
            self.0.insert(text.into());
        }
        has_room
    }
}

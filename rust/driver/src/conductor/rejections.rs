//! [`NotedRejections`]: writes rejections of publications by receivers into the error log, up to a limit.

use std::collections::HashSet;

use crate::diagnostics::ErrorRecorder;
use crate::sender::PublicationErrorReport;

/// Maximum number of different rejection texts with their own entry in the error log. All other rejections share one
/// entry.
///
/// Each receiver chooses its text, so the number of different texts has no limit of its own. 64 entries with the
/// longest text use less than a tenth of the default error log.
pub const MAX_NOTED_REJECTIONS: usize = 64;

/// The rejections with their own entry.
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
                "onPublicationError: more than {MAX_NOTED_REJECTIONS} different rejections: this entry counts all others\n"
            ));
        }
    }

    /// Returns whether the text has its own entry. Adds the entry if there is room for it.
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

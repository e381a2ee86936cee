//! Rejections of publications by receivers: told to clients, and written into the error log as far as there is room for them.

use std::collections::HashSet;

use super::Outlets;
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

impl Outlets {
    /// Tells clients, and the error log, that a publication is refused.
    pub(super) fn announce_publication_error(&mut self, report: &PublicationErrorReport) {
        self.events.on_publication_error(report);
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
        if self.noted_rejections.admit(&text) {
            self.errors.note(&text);
        } else {
            self.errors.note(&format!(
                "onPublicationError: more than {MAX_NOTED_REJECTIONS} different ones, the others are counted here\n"
            ));
        }
    }
}

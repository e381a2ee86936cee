//! What a conductor does for a driver that is to close: it ends the network publications and
//! the images that nobody reads, and reports what is left to do.

use std::time::Duration;

use super::Conductor;
use crate::closing::{ClosingReport, UnconsumedStream};
use crate::publication::NetworkPublication;

impl Conductor {
    /// One step, in each duty cycle after the commands that were sent before.
    pub(super) fn drain(&mut self) {
        for publication in &mut self.network_publications {
            publication.remove_all_references(self.now_ns);
        }
        // At once and not at the next timer tick: closing waits for it.
        self.check_network_publications();
        let unconsumed = self
            .network_publications
            .iter()
            .filter_map(|publication| self.unconsumed(publication))
            .collect();
        let is_last_call = self.closing.is_last_call();
        let untold_images = self
            .images
            .iter()
            .filter(|image| !image.leave(is_last_call))
            .count();
        self.closing.report(ClosingReport {
            unconsumed,
            untold_images,
        });
    }

    fn unconsumed(&self, publication: &NetworkPublication) -> Option<UnconsumedStream> {
        let (unsent_bytes, unconsumed_bytes) = publication.unconsumed_bytes()?;
        let (config, options) = (publication.config(), publication.options());
        let mut endpoints = self.send_endpoints.all().iter();
        let endpoint = endpoints.find(|endpoint| endpoint.id == options.endpoint);
        Some(UnconsumedStream {
            channel: endpoint
                .map_or_else(String::new, |endpoint| endpoint.channel.text.to_string()),
            stream_id: config.stream_id,
            session_id: config.session_id,
            unsent_bytes,
            unconsumed_bytes,
            linger: Duration::from_nanos(options.linger_timeout_ns.unsigned_abs()),
        })
    }
}

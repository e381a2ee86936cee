//! [`ReplayPublications`]: the publications of replay requests for response channels.

use std::collections::HashMap;

use aeron_client::ExclusivePublication;

/// The publications of replay requests for response channels. Each publication sends one request.
///
/// A publication stays open for some time after the response, because the driver uses it to find the source of the
/// replay.
pub(super) struct ReplayPublications {
    linger_ns: i64,
    by_correlation_id: HashMap<i64, RequestPublication>,
}

struct RequestPublication {
    publication: ExclusivePublication,
    /// Last time at which the request was outstanding, in nanoseconds.
    in_use_ns: i64,
}

impl ReplayPublications {
    pub(super) fn new(linger_ns: i64) -> Self {
        Self {
            linger_ns,
            by_correlation_id: HashMap::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        correlation_id: i64,
        publication: ExclusivePublication,
        now_ns: i64,
    ) {
        let added = RequestPublication {
            publication,
            in_use_ns: now_ns,
        };
        self.by_correlation_id.insert(correlation_id, added);
    }

    pub(super) fn get(&self, correlation_id: i64) -> Option<&ExclusivePublication> {
        let found = self.by_correlation_id.get(&correlation_id)?;
        Some(&found.publication)
    }

    /// Closes each publication if more than the linger time has passed since the response to its
    /// request.
    pub(super) fn close_idle(&mut self, now_ns: i64, is_waiting: impl Fn(i64) -> bool) {
        let linger_ns = self.linger_ns;
        self.by_correlation_id.retain(|&id, replay| {
            if is_waiting(id) {
                replay.in_use_ns = now_ns;
            }
            now_ns.wrapping_sub(replay.in_use_ns) <= linger_ns
        });
    }
}

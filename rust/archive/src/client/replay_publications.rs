//! [`ReplayPublications`]: publications on which one request is sent each.

use std::collections::HashMap;

use aeron_client::ExclusivePublication;

/// Publications on which one request is sent each.
///
/// A publication stays for a while after its request is answered, because its driver learns by it where the replay comes from.
pub(super) struct ReplayPublications {
    linger_ns: i64,
    by_correlation_id: HashMap<i64, ReplayPublication>,
}

struct ReplayPublication {
    publication: ExclusivePublication,
    /// When the request was seen to be outstanding last.
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
        let added = ReplayPublication {
            publication,
            in_use_ns: now_ns,
        };
        self.by_correlation_id.insert(correlation_id, added);
    }

    pub(super) fn get(&self, correlation_id: i64) -> Option<&ExclusivePublication> {
        let found = self.by_correlation_id.get(&correlation_id)?;
        Some(&found.publication)
    }

    /// Closes the publications whose requests have not been waiting for longer than the linger time.
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

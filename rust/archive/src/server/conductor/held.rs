//! [`HeldRequests`]: requests that wait until the archive can execute them.

use aeron_protocol::archive::RequestIds;

/// Accepted requests of one kind that the conductor executes later, in order.
#[derive(Debug)]
pub(super) struct HeldRequests<T> {
    held: Vec<(RequestIds, T)>,
}

impl<T> Default for HeldRequests<T> {
    fn default() -> Self {
        Self { held: Vec::new() }
    }
}

impl<T> HeldRequests<T> {
    pub fn hold(&mut self, requester: RequestIds, request: T) {
        self.held.push((requester, request));
    }

    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// Removes and returns the requests that need not wait any more.
    pub fn take_ready(&mut self, is_ready: impl Fn(&T) -> bool) -> Vec<(RequestIds, T)> {
        let is_ready = |(_, request): &mut (RequestIds, T)| is_ready(request);
        self.held.extract_if(.., is_ready).collect()
    }
}
